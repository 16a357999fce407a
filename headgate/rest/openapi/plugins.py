"""/connector-plugins described."""

from __future__ import annotations

from typing import Final

from headgate.rest.openapi.parts import PLUGIN, Json, array_of, call, found, json_content, query_flag, query_text, ref

_TAG: Final = "plugins"
_PLUGIN: Final = {
    "class": "headgate.connectors.file_source.FileStreamSourceConnector",
    "type": "source",
    "version": "0.1.0",
}
_KEY: Final = {
    "name": "tasks.max", "type": "INT", "required": False, "default_value": "1", "importance": "HIGH",
    "documentation": "Most tasks of this connector.", "group": "Common", "order_in_group": 4, "width": "SHORT",
    "display_name": "Tasks max", "dependents": [],
}  # fmt: skip
_VALUE: Final = {"name": "tasks.max", "value": "1", "recommended_values": [], "errors": [], "visible": True}
_VALIDATION: Final = {
    "name": "FileStreamSource",
    "error_count": 0,
    "groups": ["Common"],
    "configs": [{"definition": _KEY, "value": _VALUE}],
    "unknown_keys": [{"name": "task.max", "did_you_mean": "tasks.max"}],
}

PATHS: Final[Json] = {
    "/connector-plugins": {
        "get": call(
            _TAG, "listPlugins", "List the installed plugins",
            {200: found("The plugins.", array_of(ref("Plugin")), plugins=[_PLUGIN])},
            query=[query_flag("connectorsOnly", "Whether to list connectors only.", default=True)],
        ),
    },
    "/connector-plugins/{plugin}/config": {
        "parameters": [PLUGIN],
        "get": call(
            _TAG, "getPluginConfig", "List a plugin's configuration keys",
            {200: found("The keys.", array_of(ref("KeyDefinition")), keys=[_KEY])}, (400, 404),
            query=[query_text("version", "Version of the plugin; the newest when absent.")],
        ),
    },
    "/connector-plugins/{plugin}/config/validate": {
        "parameters": [PLUGIN],
        "put": call(
            _TAG, "validateConfig", "Check a configuration without creating a connector",
            {200: found("What was found, errors included.", ref("Validation"), validation=_VALIDATION)},
            body=json_content(
                ref("ConfigChange"),
                config={"connector.class": "FileStreamSource", "name": "lines-in", "topic": "lines"},
            ),
        ),
    },
}  # fmt: skip
