"""The REST API: every route in one list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from headgate.rest import errors
from headgate.rest.admin import AdminEndpoints
from headgate.rest.commands import Commands
from headgate.rest.connectors import ConnectorEndpoints
from headgate.rest.forwarding import Forwarding
from headgate.rest.headers import ResponseHeaders
from headgate.rest.health import Healths
from headgate.rest.internal import InternalEndpoints
from headgate.rest.limits import Limited
from headgate.rest.loggers import Loggers
from headgate.rest.masks import Masks
from headgate.rest.offsets import OffsetEndpoints
from headgate.rest.openapi import OpenApiEndpoints
from headgate.rest.plugins import PluginEndpoints
from headgate.rest.root import MetricsEndpoints, Readiness, RootEndpoints
from headgate.rest.routing import Resource
from headgate.rest.settings import RestSettings
from headgate.runtime.herder import Herder


def build_app(
    herder: Herder,
    settings: RestSettings,
    *,
    metrics: Callable[[], bytes] | None = None,
    commit: str = "unknown",
    loggers: Loggers | None = None,
    extra: Sequence[BaseRoute] = (),
) -> Starlette:
    """The application of the main listeners.

    `metrics` writes the Prometheus text; without it there is no /metrics. `extra` routes come last, e.g. the pages of
    the UI. The admin endpoints are here unless `settings` has listeners of their own for them."""
    forwarding = Forwarding(settings.peer_tls)
    routes = main_routes(herder, settings, commit, forwarding)
    if metrics is not None:
        routes.append(Resource("/metrics", produces=None, GET=MetricsEndpoints(metrics).read))
    if settings.admin_on_main:
        routes += admin_routes(herder, loggers or Loggers())
    return _application(herder, settings, [*_described(routes), *extra], forwarding.opened)


def build_admin_app(herder: Herder, settings: RestSettings, *, loggers: Loggers | None = None) -> Starlette:
    """The application of the admin listeners, when they are not the main ones."""
    return _application(herder, settings, _described(admin_routes(herder, loggers or Loggers())))


def main_routes(
    herder: Herder, settings: RestSettings, commit: str, forwarding: Forwarding | None = None
) -> list[Resource]:
    """What `placed` stands around has its place, the leader or an owner; the rest is done wherever it is asked for."""
    root = RootEndpoints(herder, commit, settings.health_timeout)
    forwarding = forwarding or Forwarding(settings.peer_tls)
    masks = Masks(herder, settings.mask_secrets)
    connectors = ConnectorEndpoints(herder, Healths(herder, forwarding), masks)
    offsets = OffsetEndpoints(herder)
    plugins = PluginEndpoints(herder, masks)
    internal = InternalEndpoints(herder)
    placed = forwarding.wrap
    one = "/connectors/{connector}"
    return [
        Resource("/", GET=root.describe),
        Resource("/health", GET=root.health),
        Resource("/connectors", GET=connectors.names, POST=placed(connectors.create)),
        Resource(one, GET=connectors.info, DELETE=placed(connectors.delete)),
        Resource(
            f"{one}/config",
            GET=connectors.config,
            PUT=placed(connectors.put_config),
            PATCH=placed(connectors.patch_config),
        ),
        Resource(f"{one}/status", GET=connectors.status),
        Resource(f"{one}/tasks", GET=connectors.tasks, POST=placed(internal.put_tasks)),
        Resource(f"{one}/tasks/{{task}}/status", GET=connectors.task_status),
        Resource(f"{one}/tasks/{{task}}/restart", POST=placed(connectors.restart_task)),
        Resource(f"{one}/pause", PUT=connectors.pause),
        Resource(f"{one}/resume", PUT=connectors.resume),
        Resource(f"{one}/stop", PUT=placed(connectors.stop)),
        Resource(f"{one}/restart", POST=placed(connectors.restart)),
        Resource(f"{one}/offsets", GET=offsets.read, PATCH=placed(offsets.alter), DELETE=placed(offsets.reset)),
        Resource(f"{one}/topics", GET=connectors.topics),
        Resource(f"{one}/topics/reset", PUT=connectors.reset_topics),
        Resource(f"{one}/fence", PUT=placed(internal.fence)),
        Resource("/internal/members/{member}", DELETE=internal.remove_member),
        Resource("/connector-plugins", GET=plugins.names),
        Resource("/connector-plugins/{plugin}/config", GET=plugins.config),
        Resource("/connector-plugins/{plugin}/config/validate", PUT=plugins.validate),
    ]


def admin_routes(herder: Herder, loggers: Loggers) -> list[Resource]:
    admin = AdminEndpoints(herder, loggers)
    return [
        Resource("/admin/loggers", GET=admin.levels),
        Resource("/admin/loggers/{logger}", GET=admin.level, PUT=admin.set_level),
    ]


def _described(routes: Sequence[Resource]) -> list[Resource]:
    """With the description of exactly these."""
    path = "/openapi.json"
    described = OpenApiEndpoints((*(route.path for route in routes), path))
    return [*routes, Resource(path, GET=described.document)]


def _application(
    herder: Herder,
    settings: RestSettings,
    routes: Sequence[BaseRoute],
    opened: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> Starlette:
    middleware = [Middleware(Commands), Middleware(Limited, settings.limits), Middleware(Readiness, herder)]
    if settings.allow_origins:
        middleware.insert(0, _cors(settings))
    if settings.header_rules:
        middleware.insert(0, Middleware(ResponseHeaders, settings.header_rules))
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: errors.answer, Exception: errors.answer},
        lifespan=lambda app: opened(),
    )
    app.router.redirect_slashes = False  # Both forms are routed.
    return app


def _cors(settings: RestSettings) -> Middleware:
    if "*" in settings.allow_origins:
        return Middleware(
            CORSMiddleware, allow_origins=["*"], allow_methods=settings.allow_methods, allow_headers=["*"]
        )
    return Middleware(
        CORSMiddleware,
        allow_origin_regex=settings.origin_pattern,
        allow_methods=settings.allow_methods,
        allow_headers=["*"],
    )
