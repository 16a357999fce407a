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
from headgate.rest.access import Access
from headgate.rest.admin import AdminEndpoints
from headgate.rest.commands import Commands
from headgate.rest.connectors import ConnectorEndpoints
from headgate.rest.forwarding import Forwarding
from headgate.rest.guard import ADMINISTER, EDIT, NOTHING, OPERATE, SIGNED, VIEW, VIEW_ALL, Guard
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
    access: Access | None = None,
    warnings: Callable[[], Sequence[str]] = tuple,
) -> Starlette:
    """The application of the main listeners.

    `metrics` writes the Prometheus text; without it there is no /metrics. `extra` routes come last, e.g. the pages of
    the UI. The admin endpoints are here unless `settings` has listeners of their own for them. `access` says who is let
    in, and who may do what; without it, everybody everything. `warnings` are what /health shows besides."""
    access = access or Access()
    guard = access.guard(herder)
    forwarding = Forwarding(guard.callers, settings.peer_tls)
    routes = main_routes(guard, settings, commit, forwarding, warnings)
    if metrics is not None:
        routes.append(Resource("/metrics", produces=None, GET=guard(VIEW_ALL, MetricsEndpoints(metrics).read)))
    if settings.admin_on_main:
        routes += admin_routes(guard, loggers or Loggers())
    return _application(herder, settings, access, [*_described(guard, routes), *extra], forwarding.opened)


def build_admin_app(
    herder: Herder, settings: RestSettings, *, loggers: Loggers | None = None, access: Access | None = None
) -> Starlette:
    """The application of the admin listeners, when they are not the main ones."""
    access = access or Access()
    guard = access.guard(herder)
    return _application(herder, settings, access, _described(guard, admin_routes(guard, loggers or Loggers())))


def main_routes(
    guard: Guard,
    settings: RestSettings,
    commit: str,
    forwarding: Forwarding,
    warnings: Callable[[], Sequence[str]] = tuple,
) -> list[Resource]:
    """Each call with what it needs of its caller. What `placed` stands around has its place, the leader or an owner;
    the rest is done wherever it is asked for."""
    herder = guard.herder
    root = RootEndpoints(herder, commit, settings.health_timeout, warnings)
    masks = Masks(herder, guard, settings.mask_secrets)
    connectors = ConnectorEndpoints(herder, Healths(herder, forwarding), masks, guard)
    offsets = OffsetEndpoints(herder)
    plugins = PluginEndpoints(herder, masks, guard)
    internal = InternalEndpoints(herder)
    placed = forwarding.wrap
    one = "/connectors/{connector}"
    return [
        Resource("/", GET=guard(VIEW, root.describe)),
        Resource("/health", GET=guard(NOTHING, root.health)),
        Resource("/connectors", GET=guard(VIEW, connectors.names), POST=guard(EDIT, placed(connectors.create))),
        Resource(one, GET=guard(VIEW, connectors.info), DELETE=guard(EDIT, placed(connectors.delete))),
        Resource(
            f"{one}/config",
            GET=guard(VIEW, connectors.config),
            PUT=guard(EDIT, placed(connectors.put_config)),
            PATCH=guard(EDIT, placed(connectors.patch_config)),
        ),
        Resource(f"{one}/status", GET=guard(VIEW, connectors.status)),
        Resource(f"{one}/tasks", GET=guard(VIEW, connectors.tasks), POST=guard(SIGNED, placed(internal.put_tasks))),
        Resource(f"{one}/tasks/{{task}}/status", GET=guard(VIEW, connectors.task_status)),
        Resource(f"{one}/tasks/{{task}}/restart", POST=guard(OPERATE, placed(connectors.restart_task))),
        Resource(f"{one}/pause", PUT=guard(OPERATE, connectors.pause)),
        Resource(f"{one}/resume", PUT=guard(OPERATE, connectors.resume)),
        Resource(f"{one}/stop", PUT=guard(OPERATE, placed(connectors.stop))),
        Resource(f"{one}/restart", POST=guard(OPERATE, placed(connectors.restart))),
        Resource(
            f"{one}/offsets",
            GET=guard(VIEW, offsets.read),
            PATCH=guard(OPERATE, placed(offsets.alter)),
            DELETE=guard(OPERATE, placed(offsets.reset)),
        ),
        Resource(f"{one}/topics", GET=guard(VIEW, connectors.topics)),
        Resource(f"{one}/topics/reset", PUT=guard(OPERATE, connectors.reset_topics)),
        Resource(f"{one}/fence", PUT=guard(SIGNED, placed(internal.fence))),
        Resource("/internal/members/{member}", DELETE=guard(SIGNED, internal.remove_member)),
        Resource("/connector-plugins", GET=guard(VIEW, plugins.names)),
        Resource("/connector-plugins/{plugin}/config", GET=guard(VIEW, plugins.config)),
        Resource("/connector-plugins/{plugin}/config/validate", PUT=guard(EDIT, plugins.validate)),
    ]


def admin_routes(guard: Guard, loggers: Loggers) -> list[Resource]:
    admin = AdminEndpoints(guard.herder, loggers)
    return [
        Resource("/admin/loggers", GET=guard(ADMINISTER, admin.levels)),
        Resource("/admin/loggers/{logger}", GET=guard(ADMINISTER, admin.level), PUT=guard(ADMINISTER, admin.set_level)),
    ]


def _described(guard: Guard, routes: Sequence[Resource]) -> list[Resource]:
    """With the description of exactly these, and of what they need."""
    logins = guard.callers.logins
    described = OpenApiEndpoints(logins.ways if logins else ())
    own = Resource("/openapi.json", GET=guard(VIEW, described.document))
    described.resources = [*routes, own]
    return described.resources


def _application(
    herder: Herder,
    settings: RestSettings,
    access: Access,
    routes: Sequence[BaseRoute],
    opened: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> Starlette:
    middleware = [
        Middleware(Commands, access.audit),
        Middleware(Limited, settings.limits),
        Middleware(Readiness, herder),
    ]
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
