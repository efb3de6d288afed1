"""What each address takes: one line a route and method. The matrix test asks every role in every
scope and compares.

`at` says whose scope decides: "project" (team-a), "department" (research), "cluster" (here),
"tenant"; "anywhere": the permission in any scope opens the door, and what was chosen inside is
judged again; "around": in any scope that team-a's cluster has something of.
"""

from dataclasses import dataclass

from projects.permissions import Permission


@dataclass(frozen=True)
class Need:
    """A permission and where it has to be had."""

    permission: Permission
    at: str
    hidden: int = 404
    """How a scope that one may not see is refused: 400 where a body names it."""


OPEN = "open"
"""For everybody, signed in or not."""
SIGNED_IN = "signed in"
"""For whoever is signed in, each with what is theirs in it."""
OWN = "own"
"""Somebody else's: there for nobody but them."""

Rule = Need | str


def need(permission: str, at: str = "project", hidden: int = 404) -> Need:
    return Need(Permission.parse(permission), at, hidden)


def _of(entity: str, at: str = "project") -> dict[str, Need]:
    return {verb: need(f"{entity}:{verb}", at) for verb in ("view", "create", "edit", "delete")}


_WORKLOAD = _of("workloads")
_CLUSTER = _of("clusters", "cluster")
_PROJECT = _of("projects")
_DEPARTMENT = _of("departments", "department")
_POOL = _of("node-pools", "cluster")
_RULE = _of("access-rules")
_ACCOUNT = _of("service-accounts")

SIGNING_IN: dict[str, dict[str, Rule]] = {
    "healthz": {"GET": OPEN},
    "readyz": {"GET": OPEN},
    "sign-in": {"GET": OPEN, "POST": OPEN},
    "sign-out": {"POST": SIGNED_IN},
    "sign-in-code": {"GET": OPEN, "POST": OPEN},
    "sign-on": {"POST": OPEN},
    "sign-on-callback": {"GET": OPEN},
    "account": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    **{
        name: {"GET": SIGNED_IN, "POST": SIGNED_IN}
        for name in (
            "second-factor",
            "second-factor-remove",
            "second-factor-codes",
            "sign-on-connect",
            "sign-on-disconnect",
        )
    },
    "sessions-end-others": {"POST": SIGNED_IN},
    "session-end": {"POST": OWN},
    "settings": {"GET": need("settings:view", "tenant")},
    "sign-on-test": {"POST": need("settings:edit", "tenant")},
    "api-token": {"POST": OPEN},
    "api-schema": {"GET": SIGNED_IN},
    "api-not-there": {},
}

ACCESS: dict[str, dict[str, Rule]] = {
    "users": {"GET": need("users:view", "tenant")},
    "user-new": {method: need("users:create", "tenant") for method in ("GET", "POST")},
    "user-reset": {"POST": need("users:edit", "tenant")},
    "user-active": {"POST": need("users:edit", "tenant")},
    "user-second-factor-reset": {"POST": need("users:edit", "tenant")},
    "user-sessions-end": {"POST": need("users:edit", "tenant")},
    "user-keys": {"GET": need("users:edit", "tenant")},
    "user-keys-end": {"POST": need("users:edit", "tenant")},
    "user-key-end": {"POST": need("users:edit", "tenant")},
    "look-as": {"POST": need("users:edit", "tenant")},
    "look-as-end": {"POST": SIGNED_IN},
    "why": {"GET": SIGNED_IN},
    "key-new": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "key-secret": {"POST": OWN},
    "key-delete": {"POST": OWN},
    "access-rules": {"GET": need("access-rules:view", "anywhere")},
    "access-rule-new": {
        method: need("access-rules:create", "anywhere") for method in ("GET", "POST")
    },
    "access-rule-delete": {"POST": _RULE["delete"]},
    "roles": {"GET": SIGNED_IN},
    "role-new": {method: need("roles:create", "tenant") for method in ("GET", "POST")},
    "role-edit": {method: need("roles:edit", "tenant") for method in ("GET", "POST")},
    "role-delete": {method: need("roles:delete", "tenant") for method in ("GET", "POST")},
    "accounts": {"GET": need("service-accounts:view", "anywhere")},
    "account-new": {
        method: need("service-accounts:create", "anywhere") for method in ("GET", "POST")
    },
    "account-secret": {"POST": _ACCOUNT["edit"]},
    "account-delete": {"POST": _ACCOUNT["delete"]},
    "api-roles": {"GET": SIGNED_IN, "POST": need("roles:create", "tenant")},
    "api-role": {
        "GET": need("access-rules:view", "anywhere"),
        "PUT": need("roles:edit", "tenant"),
        "DELETE": need("roles:delete", "tenant"),
    },
    "api-access-rules": {
        "GET": need("access-rules:view", "anywhere"),
        "POST": need("access-rules:create", "anywhere"),
    },
    "api-access-rules-count": {"GET": need("access-rules:view", "anywhere")},
    "api-my-access-rules": {"GET": SIGNED_IN},
    "api-access-rule": {"GET": _RULE["view"], "DELETE": _RULE["delete"]},
    "api-permissions": {"GET": SIGNED_IN},
    "api-permitted-scopes": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "api-users": {"GET": need("users:view", "tenant"), "POST": need("users:create", "tenant")},
    "api-users-count": {"GET": need("users:view", "tenant")},
    "api-user": {"GET": need("users:view", "tenant"), "PATCH": need("users:edit", "tenant")},
    "api-user-password": {"POST": need("users:edit", "tenant")},
    "api-user-logout": {"POST": need("users:edit", "tenant")},
    "api-user-access-keys": {"DELETE": need("users:edit", "tenant")},
    "api-service-accounts": {
        "GET": need("service-accounts:view", "anywhere"),
        "POST": need("service-accounts:create", "anywhere"),
    },
    "api-service-account": {"GET": _ACCOUNT["view"], "DELETE": _ACCOUNT["delete"]},
    "api-service-account-secret": {"POST": _ACCOUNT["edit"]},
    "api-apps": {
        "GET": need("service-accounts:view", "anywhere"),
        "POST": need("service-accounts:create", "anywhere"),
    },
    "api-app": {"GET": _ACCOUNT["view"], "DELETE": _ACCOUNT["delete"]},
    "api-app-secret": {"POST": _ACCOUNT["edit"]},
    "api-access-keys": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "api-access-key": {"GET": OWN, "DELETE": OWN},
    "api-access-key-secret": {"POST": OWN},
    "api-everybodys-access-keys": {"GET": need("users:edit", "tenant")},
    "api-anybodys-access-key": {"DELETE": need("users:edit", "tenant")},
    "person-add": {"POST": _RULE["create"]},
    "person-role": {"POST": _RULE["create"]},
    "person-remove": {"POST": _RULE["delete"]},
    "service-account-create": {"POST": _ACCOUNT["create"]},
    "service-account-rotate": {"POST": _ACCOUNT["edit"]},
    "service-account-delete": {"POST": _ACCOUNT["delete"]},
    **{
        name: {"GET": need("audit:view", "tenant")}
        for name in ("audit", "audit-export", "audit-entry", "api-audit-log")
    },
}

ORGANISATION: dict[str, dict[str, Rule]] = {
    "projects": {"GET": SIGNED_IN},
    "project": {"GET": _PROJECT["view"]},
    "project-now": {"GET": _PROJECT["view"]},
    "project-allocation": {"GET": _WORKLOAD["view"]},
    "api-project-metrics": {"GET": _WORKLOAD["view"]},
    "api-department-metrics": {"GET": _DEPARTMENT["view"]},
    **{
        name: {"GET": need("overview:view", "anywhere")}
        for name in ("overview", "overview-allocation", "overview-csv")
    },
    "project-new": {method: need("projects:create", "anywhere") for method in ("GET", "POST")},
    "project-edit": dict.fromkeys(("GET", "POST"), _PROJECT["edit"]),
    "project-delete": dict.fromkeys(("GET", "POST"), _PROJECT["delete"]),
    "departments": {"GET": SIGNED_IN},
    "department": {"GET": _DEPARTMENT["view"]},
    "department-new": {method: need("departments:create", "tenant") for method in ("GET", "POST")},
    "department-edit": dict.fromkeys(("GET", "POST"), _DEPARTMENT["edit"]),
    "department-delete": dict.fromkeys(("GET", "POST"), _DEPARTMENT["delete"]),
    "node-pools": {"GET": SIGNED_IN},
    "node-pool": {"GET": need("node-pools:view", "around")},
    "node-pool-new": {method: need("node-pools:create", "anywhere") for method in ("GET", "POST")},
    "node-pool-edit": dict.fromkeys(("GET", "POST"), _POOL["edit"]),
    "node-pool-delete": dict.fromkeys(("GET", "POST"), _POOL["delete"]),
    "api-departments": {"GET": SIGNED_IN, "POST": need("departments:create", "tenant")},
    "api-departments-count": {"GET": SIGNED_IN},
    "api-departments-telemetry": {"GET": SIGNED_IN},
    "api-department-resources": {"PUT": _DEPARTMENT["edit"], "PATCH": _DEPARTMENT["edit"]},
    "api-department": {
        "GET": _DEPARTMENT["view"],
        "PUT": _DEPARTMENT["edit"],
        "PATCH": _DEPARTMENT["edit"],
        "DELETE": _DEPARTMENT["delete"],
    },
    "api-projects-count": {"GET": SIGNED_IN},
    "api-projects-telemetry": {"GET": SIGNED_IN},
    "api-project": {
        "GET": _PROJECT["view"],
        "PUT": _PROJECT["edit"],
        "PATCH": _PROJECT["edit"],
        "DELETE": _PROJECT["delete"],
    },
    "api-project-resources": {"PUT": _PROJECT["edit"], "PATCH": _PROJECT["edit"]},
    "api-node-pools": {"GET": SIGNED_IN, "POST": need("node-pools:create", "anywhere")},
    "api-node-pools-count": {"GET": SIGNED_IN},
    "api-node-pool": {
        "GET": need("node-pools:view", "around"),
        "PUT": _POOL["edit"],
        "PATCH": _POOL["edit"],
        "DELETE": _POOL["delete"],
    },
    "clusters": {"GET": SIGNED_IN},
    "single-trust": {"GET": SIGNED_IN},
    "cluster": {"GET": need("clusters:view", "around")},
    "cluster-checks": {"GET": need("clusters:view", "around")},
    "cluster-node": {"GET": need("clusters:view", "around")},
    "cluster-new": {method: need("clusters:create", "tenant") for method in ("GET", "POST")},
    "cluster-edit": dict.fromkeys(("GET", "POST"), _CLUSTER["edit"]),
    "cluster-check": {"POST": _CLUSTER["edit"]},
    "cluster-enable": {"POST": _CLUSTER["edit"]},
    "cluster-disable": {"POST": _CLUSTER["edit"]},
    "cluster-remove": dict.fromkeys(("GET", "POST"), _CLUSTER["delete"]),
    "api-projects": {"GET": SIGNED_IN, "POST": need("projects:create", "anywhere")},
    "api-clusters": {"GET": SIGNED_IN, "POST": need("clusters:create", "tenant")},
    "api-clusters-test": {"POST": need("clusters:create", "tenant")},
    "api-cluster": {
        "GET": need("clusters:view", "around"),
        "PATCH": _CLUSTER["edit"],
        "DELETE": _CLUSTER["delete"],
    },
    "api-cluster-test": {"POST": _CLUSTER["edit"]},
    "api-nodes": {"GET": SIGNED_IN},
    "api-nodes-count": {"GET": SIGNED_IN},
}


def _changed_whole_or_in_part(entity: str) -> dict[str, Rule]:
    of = _of(entity)
    return {"GET": of["view"], "PUT": of["edit"], "PATCH": of["edit"], "DELETE": of["delete"]}


def _asset(entity: str, one: str, *subtypes: str) -> dict[str, dict[str, Rule]]:
    of = _of(entity)
    anywhere: dict[str, Rule] = {
        method: need(f"{entity}:create", "anywhere") for method in ("GET", "POST")
    }
    table = entity
    return {
        table: {"GET": SIGNED_IN},
        one: {"GET": of["view"]},
        f"{one}-new": anywhere,
        **({f"{one}-new-of": anywhere} if subtypes else {}),
        f"{one}-edit": {"GET": of["edit"], "POST": of["edit"]},
        f"{one}-copy": {"GET": of["create"], "POST": of["create"]},
        f"{one}-delete": {"GET": of["delete"], "POST": of["delete"]},
    }


def _asset_api(entity: str, *names: str) -> dict[str, dict[str, Rule]]:
    one = _changed_whole_or_in_part(entity)
    found: dict[str, dict[str, Rule]] = {}
    for name in names:
        found[f"api-asset-{name}"] = {
            "GET": SIGNED_IN,
            "POST": need(f"{entity}:create", "anywhere"),
        }
        found[f"api-asset-{name}-one"] = one
    return found


ASSETS: dict[str, dict[str, Rule]] = {
    **_asset("environments", "environment"),
    **_asset("compute-resources", "compute-resource"),
    **_asset("data-sources", "data-source", "git"),
    **_asset("credentials", "credential", "registry"),
    **_asset("templates", "template"),
    **_asset("policies", "policy"),
    **_asset_api("environments", "environment"),
    **_asset_api("compute-resources", "compute"),
    **_asset_api(
        "data-sources",
        *(
            f"datasource-{kind}"
            for kind in ("git", "pvc", "nfs", "s3", "host-path", "config-map", "secrets")
        ),
    ),
    **_asset_api(
        "credentials",
        *(
            f"credentials-{kind}"
            for kind in ("docker-registry", "access-key", "password", "ssh-key", "generic-secret")
        ),
    ),
    **_asset_api("policies", "policies"),
    "api-asset-credentials": {"GET": SIGNED_IN},
    "api-asset-datasource": {"GET": SIGNED_IN},
    "api-templates-count": {"GET": SIGNED_IN},
    **{
        name: rules
        for end in ("", "-distributed", "-trainings")
        for name, rules in (
            (
                f"api-templates{end}",
                {"GET": SIGNED_IN, "POST": need("templates:create", "anywhere")},
            ),
            (f"api-template{end}", _changed_whole_or_in_part("templates")),
        )
    },
    "template-design": {"GET": need("templates:create", "anywhere")},
    "template-redesign": {"GET": need("templates:edit")},
    "policies-effective": {"GET": SIGNED_IN},
    **{
        f"api-policy-{word}": {
            "GET": SIGNED_IN,
            "PUT": need("policies:create", "anywhere"),
            "PATCH": need("policies:edit", "anywhere"),
            "DELETE": need("policies:delete", "anywhere"),
        }
        for word in ("distributed", "trainings")
    },
}

WORKLOADS: dict[str, dict[str, Rule]] = {
    **{
        name: {"GET": SIGNED_IN}
        for name in ("home", "workloads", "workloads-changes", "workloads-live", "workloads-csv")
    },
    "workloads-bulk": {"POST": SIGNED_IN},
    **{
        name: {"GET": _WORKLOAD["view"]}
        for name in (
            *(
                "workload",
                "workload-head",
                "workload-events",
                "workload-pods",
                "workload-live",
                "workload-tab",
            ),
            *("log-window", "log-search", "log-stream", "log-download"),
        )
    },
    "workload-stop": {"POST": _WORKLOAD["edit"]},
    "workload-run": {"POST": _WORKLOAD["edit"]},
    "workload-delete": {"POST": _WORKLOAD["delete"]},
    "workload-new": {"GET": need("workloads:create", "anywhere")},
    "wizard": {"GET": OWN, "POST": OWN},
    "wizard-save": {"POST": OWN},
    "wizard-asset": {"GET": OWN, "POST": OWN},
    "wizard-template": {"GET": OWN, "POST": OWN},
    "wizard-templates": {"GET": OWN},
    "api-workloads": {"GET": SIGNED_IN},
    "api-workloads-count": {"GET": SIGNED_IN},
    "api-pods": {"GET": SIGNED_IN},
    **{
        name: {"GET": _WORKLOAD["view"]}
        for name in (
            "api-workload",
            "api-workload-pods",
            "api-workload-events",
            "api-workload-history",
            "api-pod-logs",
        )
    },
    **{
        name: rules
        for kind in ("distributed", "trainings")
        for name, rules in (
            (f"api-{kind}", {"POST": need("workloads:create", hidden=400)}),
            (f"api-{kind}-one", {"GET": _WORKLOAD["view"], "DELETE": _WORKLOAD["delete"]}),
            (f"api-{kind}-suspend", {"POST": _WORKLOAD["edit"]}),
            (f"api-{kind}-resume", {"POST": _WORKLOAD["edit"]}),
        )
    },
}

TABLE: dict[str, dict[str, Rule]] = {**SIGNING_IN, **ACCESS, **ORGANISATION, **ASSETS, **WORKLOADS}
