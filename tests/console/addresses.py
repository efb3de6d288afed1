"""Every address of the URL table, and whom each is for: a new one needs its rule here."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

from environments.kinds import KINDS

SECRET = "train-of-team-a"
METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
UNSAFE = ("post", "put", "patch", "delete")


@dataclass(frozen=True)
class Address:
    name: str
    route: str
    arguments: tuple[str, ...]


def list_addresses(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[Address]:
    for entry in (resolver or get_resolver()).url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from list_addresses(entry, route)
        elif isinstance(entry, URLPattern):
            assert entry.name, f"{route} has no name"
            yield Address(entry.name, route, tuple(entry.pattern.converters))


ASYNC = {
    "workloads-live",
    "workload-live",
    "workloads-csv",
    "log-stream",
    "log-download",
    "api-pod-logs",
}
"""Answered by streams that only an event loop can read."""

EVERY = {address.name: address for address in list_addresses()}

OPEN = {
    "healthz",
    "readyz",
    "metrics",
    "sign-in",
    "sign-in-code",
    "sign-on",
    "sign-on-callback",
    "api-token",
    "api-token-device",
    "api-token-device-claim",
    "api-not-there",
}
"""For everybody, signed in or not."""

EVERYBODYS = {
    *(
        "home",
        "workloads",
        "workloads-changes",
        "workloads-csv",
        "workloads-bulk",
        "workloads-view-new",
        "workload-new",
        "workload-new-menu",
    ),
    *(
        "environments",
        "environment-new",
        "compute-resources",
        "compute-resource-new",
        "projects",
        "clusters",
        "cluster",
    ),
    *("overview", "overview-allocation", "overview-csv"),
    *("usage", "api-usage"),
    *("forecasts", "forecasts-csv", "api-forecast-calibration"),
    *("time-machine", "api-time-machine"),
    *("quota-trials", "api-quota-trials"),
    *(
        name
        for kind in KINDS
        for name in (
            kind.name,
            f"{kind.url}-new",
            *([f"{kind.url}-new-of"] if kind.has_subtypes else []),
        )
    ),
    *(
        f"api-asset-{form.rest.name}{end}"
        for kind in KINDS
        for form in kind.forms.values()
        if form.rest
        for end in ("", "-name")
    ),
    *(
        "template-design",
        "api-templates",
        "api-templates-count",
        "api-templates-distributed",
        "api-templates-trainings",
    ),
    *("policies-effective", "api-policy-distributed", "api-policy-trainings"),
    *(
        "access-rules",
        "access-rule-new",
        "accounts",
        "account-new",
        "roles",
        "why",
        "key-new",
        "look-as-end",
    ),
    *(
        "api-roles",
        "api-role",
        "api-access-rules",
        "api-permissions",
        "api-permitted-scopes",
        "api-service-accounts",
        "api-access-keys",
    ),
    *(
        "second-factor",
        "second-factor-remove",
        "second-factor-codes",
        "sign-on-connect",
        "sign-on-disconnect",
        "sessions-end-others",
    ),
    *("rest-reference", "rest-operation"),
    *("account", "account-shortcuts", "sign-in-program", "sign-out"),
    *("single-trust", "cluster-checks", "cluster-node"),
    *("departments", "api-departments", "api-departments-count", "api-projects-count"),
    *(
        "api-departments-telemetry",
        "api-projects-telemetry",
        "api-node-pools-count",
        "api-nodes-count",
        "api-workloads-count",
    ),
    *(
        "api-access-rules-count",
        "api-my-access-rules",
        "api-me",
        "api-apps",
        "api-asset-credentials",
        "api-asset-datasource",
    ),
    *("node-pools", "node-pool", "api-node-pools", "api-node-pool"),
    *("node-metric-frames", "node-pool-metric-frames"),
    *(
        "api-cluster",
        "api-nodes",
        "api-projects",
        "api-clusters",
        "api-workloads",
        "api-workloads-batch",
        "api-workloads-name",
        "api-templates-name",
        "api-workloads-telemetry",
        "api-nodes-telemetry",
        "api-node-metrics",
        "api-cluster-metrics",
        "api-pods",
        "api-distributed",
        "api-trainings",
        "api-distributed-preview",
        "api-trainings-preview",
        "api-distributed-preflight",
        "api-distributed-alternatives",
        "api-trainings-alternatives",
        "api-trainings-preflight",
        "api-schema",
    ),
}
"""For whoever is signed in, each with what is theirs in it."""

ADMINISTRATORS = {
    *("role-new", "role-edit", "role-delete", "look-as", "api-users", "api-user"),
    *("api-users-count", "api-user-password", "api-user-logout"),
    *("settings", "sign-on-test", "user-second-factor-reset", "user-sessions-end"),
    *("user-keys", "user-keys-end", "user-key-end"),
    *("api-user-access-keys", "api-everybodys-access-keys", "api-anybodys-access-key"),
    *(
        "users",
        "user-new",
        "user-reset",
        "user-active",
        "project-new",
        "project-edit",
        "project-delete",
    ),
    *("department-new", "node-pool-new", "node-pool-edit", "node-pool-delete"),
    *(
        "cluster-new",
        "cluster-edit",
        "cluster-check",
        "cluster-enable",
        "cluster-disable",
        "cluster-remove",
    ),
    *(
        "api-clusters-test",
        "api-cluster-test",
        "audit",
        "audit-export",
        "audit-entry",
        "api-audit-log",
        "api-departments-name",
        "api-projects-name",
        "api-audit-log-file",
    ),
}
"""Refused with 403, or 404 where even that would tell something."""

STREAMS = {"workloads-live"}
"""For everybody as well, but without an end: tested with the live pages."""

THEIRS = sorted(set(EVERY) - OPEN - EVERYBODYS - ADMINISTRATORS - STREAMS)
