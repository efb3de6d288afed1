"""The permission that each address needs: one line for each route and method.

The matrix test requests every address with every role in every scope, and compares. `at` says whose
scope decides: "project" (team-a), "department" (research), "cluster" (here), "tenant"; "anywhere":
the permission in any scope opens the page, and what was chosen inside is judged again; "around": in
any scope that team-a's cluster has something of.
"""

from dataclasses import dataclass

from projects.permissions import Permission


@dataclass(frozen=True)
class Need:
    """A permission and where it is needed."""

    permission: Permission
    at: str
    hidden: int = 404
    """The status for a scope that one may not see: 400 where a body names it."""


OPEN = "open"
"""For everybody, signed in or not."""
SIGNED_IN = "signed in"
"""For whoever is signed in, each with their own data in it."""
OWN = "own"
"""Somebody's own: for others it does not exist."""
PROGRAMS = "programs"
"""For programs with a token of the settings, or on the same machine: no role lets anybody in."""

Rule = Need | str


def parse_need(permission: str, at: str = "project", hidden: int = 404) -> Need:
    return Need(Permission.parse(permission), at, hidden)


def _list_needs(entity: str, at: str = "project") -> dict[str, Need]:
    return {
        verb: parse_need(f"{entity}:{verb}", at) for verb in ("view", "create", "edit", "delete")
    }


_WORKLOAD = _list_needs("workloads")
_CLUSTER = _list_needs("clusters", "cluster")
_PROJECT = _list_needs("projects")
_DEPARTMENT = _list_needs("departments", "department")
_POOL = _list_needs("node-pools", "cluster")
_TRIAL = parse_need("departments:edit", "cluster")
"""It takes `projects:edit` and `workloads:view` there, too: no predefined role has one alone."""
_RULE = _list_needs("access-rules")
_ACCOUNT = _list_needs("service-accounts")

SIGNING_IN: dict[str, dict[str, Rule]] = {
    "healthz": {"GET": OPEN},
    "readyz": {"GET": OPEN},
    "metrics": {"GET": PROGRAMS},
    "sign-in": {"GET": OPEN, "POST": OPEN},
    "sign-out": {"POST": SIGNED_IN},
    "sign-in-code": {"GET": OPEN, "POST": OPEN},
    "sign-on": {"POST": OPEN},
    "sign-on-callback": {"GET": OPEN},
    "account": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "account-shortcuts": {"POST": SIGNED_IN},
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
    "settings": {"GET": parse_need("settings:view", "tenant")},
    "sign-on-test": {"POST": parse_need("settings:edit", "tenant")},
    "api-token": {"POST": OPEN},
    "api-token-device": {"POST": OPEN},
    "api-token-device-claim": {"POST": OPEN},
    "sign-in-program": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "api-schema": {"GET": SIGNED_IN},
    "rest-reference": {"GET": SIGNED_IN},
    "rest-operation": {"GET": SIGNED_IN},
    "api-not-there": {},
}

ACCESS: dict[str, dict[str, Rule]] = {
    "users": {"GET": parse_need("users:view", "tenant")},
    "user-new": {method: parse_need("users:create", "tenant") for method in ("GET", "POST")},
    "user-reset": {"POST": parse_need("users:edit", "tenant")},
    "user-active": {"POST": parse_need("users:edit", "tenant")},
    "user-second-factor-reset": {"POST": parse_need("users:edit", "tenant")},
    "user-sessions-end": {"POST": parse_need("users:edit", "tenant")},
    "user-keys": {"GET": parse_need("users:edit", "tenant")},
    "user-keys-end": {"POST": parse_need("users:edit", "tenant")},
    "user-key-end": {"POST": parse_need("users:edit", "tenant")},
    "look-as": {"POST": parse_need("users:edit", "tenant")},
    "look-as-end": {"POST": SIGNED_IN},
    "why": {"GET": SIGNED_IN},
    "key-new": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "key-secret": {"POST": OWN},
    "key-delete": {"POST": OWN},
    "access-rules": {"GET": parse_need("access-rules:view", "anywhere")},
    "access-rule-new": {
        method: parse_need("access-rules:create", "anywhere") for method in ("GET", "POST")
    },
    "access-rule-delete": {"POST": _RULE["delete"]},
    "roles": {"GET": SIGNED_IN},
    "role-new": {method: parse_need("roles:create", "tenant") for method in ("GET", "POST")},
    "role-edit": {method: parse_need("roles:edit", "tenant") for method in ("GET", "POST")},
    "role-delete": {method: parse_need("roles:delete", "tenant") for method in ("GET", "POST")},
    "accounts": {"GET": parse_need("service-accounts:view", "anywhere")},
    "account-new": {
        method: parse_need("service-accounts:create", "anywhere") for method in ("GET", "POST")
    },
    "account-secret": {"POST": _ACCOUNT["edit"]},
    "account-delete": {"POST": _ACCOUNT["delete"]},
    "account-enabled": {"POST": _ACCOUNT["edit"]},
    "api-roles": {"GET": SIGNED_IN, "POST": parse_need("roles:create", "tenant")},
    "api-role": {
        "GET": parse_need("access-rules:view", "anywhere"),
        "PUT": parse_need("roles:edit", "tenant"),
        "DELETE": parse_need("roles:delete", "tenant"),
    },
    "api-access-rules": {
        "GET": parse_need("access-rules:view", "anywhere"),
        "POST": parse_need("access-rules:create", "anywhere"),
    },
    "api-access-rules-count": {"GET": parse_need("access-rules:view", "anywhere")},
    "api-my-access-rules": {"GET": SIGNED_IN},
    "api-me": {"GET": SIGNED_IN},
    "api-access-rule": {
        "GET": _RULE["view"],
        "PATCH": _RULE["delete"],
        "DELETE": _RULE["delete"],
    },
    "api-permissions": {"GET": SIGNED_IN},
    "api-permitted-scopes": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "api-users": {
        "GET": parse_need("users:view", "tenant"),
        "POST": parse_need("users:create", "tenant"),
    },
    "api-users-count": {"GET": parse_need("users:view", "tenant")},
    "api-user": {
        "GET": parse_need("users:view", "tenant"),
        "PATCH": parse_need("users:edit", "tenant"),
    },
    "api-user-password": {"POST": parse_need("users:edit", "tenant")},
    "api-user-logout": {"POST": parse_need("users:edit", "tenant")},
    "api-user-access-keys": {"DELETE": parse_need("users:edit", "tenant")},
    "api-service-accounts": {
        "GET": parse_need("service-accounts:view", "anywhere"),
        "POST": parse_need("service-accounts:create", "anywhere"),
    },
    "api-service-account": {
        "GET": _ACCOUNT["view"],
        "PATCH": _ACCOUNT["edit"],
        "DELETE": _ACCOUNT["delete"],
    },
    "api-service-account-secret": {"POST": _ACCOUNT["edit"]},
    "api-apps": {
        "GET": parse_need("service-accounts:view", "anywhere"),
        "POST": parse_need("service-accounts:create", "anywhere"),
    },
    "api-app": {
        "GET": _ACCOUNT["view"],
        "PATCH": _ACCOUNT["edit"],
        "DELETE": _ACCOUNT["delete"],
    },
    "api-app-secret": {"POST": _ACCOUNT["edit"]},
    "api-access-keys": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "api-access-key": {"GET": OWN, "DELETE": OWN},
    "api-access-key-secret": {"POST": OWN},
    "api-everybodys-access-keys": {"GET": parse_need("users:edit", "tenant")},
    "api-anybodys-access-key": {"DELETE": parse_need("users:edit", "tenant")},
    "person-add": {"POST": _RULE["create"]},
    "person-role": {"POST": _RULE["create"]},
    "person-remove": {"POST": _RULE["delete"]},
    "service-account-create": {"POST": _ACCOUNT["create"]},
    "service-account-rotate": {"POST": _ACCOUNT["edit"]},
    "service-account-delete": {"POST": _ACCOUNT["delete"]},
    **{
        name: {"GET": parse_need("audit:view", "tenant")}
        for name in (
            "audit",
            "audit-export",
            "audit-entry",
            "api-audit-log",
            "api-audit-log-file",
        )
    },
}

ORGANISATION: dict[str, dict[str, Rule]] = {
    "projects": {"GET": SIGNED_IN},
    "project": {"GET": _PROJECT["view"]},
    "project-now": {"GET": _PROJECT["view"]},
    "project-allocation": {"GET": _WORKLOAD["view"]},
    "project-usage": {"GET": _WORKLOAD["view"]},
    **{
        name: {"GET": parse_need("workloads:view", "anywhere")}
        for name in (
            *("usage", "api-usage"),
            *("forecasts", "forecasts-csv", "api-forecast-calibration"),
        )
    },
    "quota-trials": {"GET": parse_need("departments:edit", "anywhere")},
    "quota-trial-new": dict.fromkeys(("GET", "POST"), _TRIAL),
    "quota-trial": {"GET": _TRIAL},
    "quota-trial-cancel": {"POST": _TRIAL},
    "api-quota-trials": {
        "GET": parse_need("departments:edit", "anywhere"),
        "POST": parse_need("departments:edit", "cluster", 400),
    },
    "api-quota-trial": {"GET": _TRIAL},
    "project-metric-frames": {"GET": _WORKLOAD["view"]},
    "api-project-metrics": {"GET": _WORKLOAD["view"]},
    "api-department-metrics": {"GET": _DEPARTMENT["view"]},
    **{
        name: {"GET": parse_need("overview:view", "anywhere")}
        for name in (
            *("overview", "overview-allocation", "overview-csv"),
            *("time-machine", "api-time-machine"),
        )
    },
    "project-new": {
        method: parse_need("projects:create", "anywhere") for method in ("GET", "POST")
    },
    "project-edit": dict.fromkeys(("GET", "POST"), _PROJECT["edit"]),
    "project-delete": dict.fromkeys(("GET", "POST"), _PROJECT["delete"]),
    "departments": {"GET": SIGNED_IN},
    "department": {"GET": _DEPARTMENT["view"]},
    "department-new": {
        method: parse_need("departments:create", "tenant") for method in ("GET", "POST")
    },
    "department-edit": dict.fromkeys(("GET", "POST"), _DEPARTMENT["edit"]),
    "department-delete": dict.fromkeys(("GET", "POST"), _DEPARTMENT["delete"]),
    "node-pools": {"GET": SIGNED_IN},
    "node-pool": {"GET": parse_need("node-pools:view", "around")},
    "node-pool-metric-frames": {"GET": parse_need("node-pools:view", "around")},
    "node-pool-new": {
        method: parse_need("node-pools:create", "anywhere") for method in ("GET", "POST")
    },
    "node-pool-edit": dict.fromkeys(("GET", "POST"), _POOL["edit"]),
    "node-pool-delete": dict.fromkeys(("GET", "POST"), _POOL["delete"]),
    "api-departments": {"GET": SIGNED_IN, "POST": parse_need("departments:create", "tenant")},
    "api-departments-count": {"GET": SIGNED_IN},
    "api-departments-name": {"GET": parse_need("departments:create", "tenant")},
    "api-departments-telemetry": {"GET": SIGNED_IN},
    "api-department-resources": {"PUT": _DEPARTMENT["edit"], "PATCH": _DEPARTMENT["edit"]},
    "api-department": {
        "GET": _DEPARTMENT["view"],
        "PUT": _DEPARTMENT["edit"],
        "PATCH": _DEPARTMENT["edit"],
        "DELETE": _DEPARTMENT["delete"],
    },
    "api-projects-count": {"GET": SIGNED_IN},
    "api-projects-name": {"GET": parse_need("projects:create", "anywhere")},
    "api-projects-telemetry": {"GET": SIGNED_IN},
    "api-project": {
        "GET": _PROJECT["view"],
        "PUT": _PROJECT["edit"],
        "PATCH": _PROJECT["edit"],
        "DELETE": _PROJECT["delete"],
    },
    "api-project-resources": {"PUT": _PROJECT["edit"], "PATCH": _PROJECT["edit"]},
    "api-node-pools": {"GET": SIGNED_IN, "POST": parse_need("node-pools:create", "anywhere")},
    "api-node-pools-count": {"GET": SIGNED_IN},
    "api-node-pool": {
        "GET": parse_need("node-pools:view", "around"),
        "PUT": _POOL["edit"],
        "PATCH": _POOL["edit"],
        "DELETE": _POOL["delete"],
    },
    "clusters": {"GET": SIGNED_IN},
    "single-trust": {"GET": SIGNED_IN},
    "cluster": {"GET": parse_need("clusters:view", "around")},
    "cluster-checks": {"GET": parse_need("clusters:view", "around")},
    "cluster-node": {"GET": parse_need("clusters:view", "around")},
    "node-metric-frames": {"GET": parse_need("clusters:view", "around")},
    "cluster-new": {method: parse_need("clusters:create", "tenant") for method in ("GET", "POST")},
    "cluster-edit": dict.fromkeys(("GET", "POST"), _CLUSTER["edit"]),
    "cluster-check": {"POST": _CLUSTER["edit"]},
    "cluster-enable": {"POST": _CLUSTER["edit"]},
    "cluster-disable": {"POST": _CLUSTER["edit"]},
    "cluster-remove": dict.fromkeys(("GET", "POST"), _CLUSTER["delete"]),
    "api-projects": {"GET": SIGNED_IN, "POST": parse_need("projects:create", "anywhere")},
    "api-clusters": {"GET": SIGNED_IN, "POST": parse_need("clusters:create", "tenant")},
    "api-clusters-test": {"POST": parse_need("clusters:create", "tenant")},
    "api-cluster": {
        "GET": parse_need("clusters:view", "around"),
        "PATCH": _CLUSTER["edit"],
        "DELETE": _CLUSTER["delete"],
    },
    "api-cluster-test": {"POST": _CLUSTER["edit"]},
    "api-nodes": {"GET": SIGNED_IN},
    "api-nodes-count": {"GET": SIGNED_IN},
    "api-nodes-telemetry": {"GET": SIGNED_IN},
    "api-node-metrics": {"GET": parse_need("clusters:view", "around")},
    "api-cluster-metrics": {"GET": parse_need("clusters:view", "around")},
}


def _build_detail_rules(entity: str) -> dict[str, Rule]:
    needs = _list_needs(entity)
    return {
        "GET": needs["view"],
        "PUT": needs["edit"],
        "PATCH": needs["edit"],
        "DELETE": needs["delete"],
    }


def _build_asset_rules(entity: str, one: str, *subtypes: str) -> dict[str, dict[str, Rule]]:
    needs = _list_needs(entity)
    anywhere: dict[str, Rule] = {
        method: parse_need(f"{entity}:create", "anywhere") for method in ("GET", "POST")
    }
    table = entity
    return {
        table: {"GET": SIGNED_IN},
        one: {"GET": needs["view"]},
        f"{one}-new": anywhere,
        **({f"{one}-new-of": anywhere} if subtypes else {}),
        f"{one}-edit": {"GET": needs["edit"], "POST": needs["edit"]},
        f"{one}-copy": {"GET": needs["create"], "POST": needs["create"]},
        f"{one}-delete": {"GET": needs["delete"], "POST": needs["delete"]},
    }


def _build_asset_api_rules(entity: str, *names: str) -> dict[str, dict[str, Rule]]:
    one = _build_detail_rules(entity)
    found: dict[str, dict[str, Rule]] = {}
    for name in names:
        found[f"api-asset-{name}"] = {
            "GET": SIGNED_IN,
            "POST": parse_need(f"{entity}:create", "anywhere"),
        }
        found[f"api-asset-{name}-one"] = one
        found[f"api-asset-{name}-name"] = {"GET": parse_need(f"{entity}:create", "anywhere")}
    return found


def _build_template_api_rules(end: str) -> dict[str, dict[str, Rule]]:
    return {
        f"api-templates{end}": {
            "GET": SIGNED_IN,
            "POST": parse_need("templates:create", "anywhere"),
        },
        f"api-template{end}": _build_detail_rules("templates"),
    }


ASSETS: dict[str, dict[str, Rule]] = {
    **_build_asset_rules("environments", "environment"),
    **_build_asset_rules("compute-resources", "compute-resource"),
    **_build_asset_rules("data-sources", "data-source", "git"),
    **_build_asset_rules("credentials", "credential", "registry"),
    **_build_asset_rules("templates", "template"),
    **_build_asset_rules("policies", "policy"),
    **_build_asset_api_rules("environments", "environment"),
    **_build_asset_api_rules("compute-resources", "compute"),
    **_build_asset_api_rules(
        "data-sources",
        *(
            f"datasource-{kind}"
            for kind in ("git", "pvc", "nfs", "s3", "host-path", "config-map", "secrets")
        ),
    ),
    **_build_asset_api_rules(
        "credentials",
        *(
            f"credentials-{kind}"
            for kind in ("docker-registry", "access-key", "password", "ssh-key", "generic-secret")
        ),
    ),
    **_build_asset_api_rules("policies", "policies"),
    "api-asset-credentials": {"GET": SIGNED_IN},
    "api-asset-datasource": {"GET": SIGNED_IN},
    "api-templates-count": {"GET": SIGNED_IN},
    "api-templates-name": {"GET": parse_need("templates:create", "anywhere")},
    **_build_template_api_rules(""),
    **_build_template_api_rules("-distributed"),
    **_build_template_api_rules("-trainings"),
    "template-design": {"GET": parse_need("templates:create", "anywhere")},
    "template-redesign": {"GET": parse_need("templates:edit")},
    "policies-effective": {"GET": SIGNED_IN},
    **{
        f"api-policy-{word}": {
            "GET": SIGNED_IN,
            "PUT": parse_need("policies:create", "anywhere"),
            "PATCH": parse_need("policies:edit", "anywhere"),
            "DELETE": parse_need("policies:delete", "anywhere"),
        }
        for word in ("distributed", "trainings")
    },
}


def _build_workload_api_rules(kind: str) -> dict[str, dict[str, Rule]]:
    return {
        f"api-{kind}": {"POST": parse_need("workloads:create", hidden=400)},
        f"api-{kind}-preview": {"POST": parse_need("workloads:create", hidden=400)},
        f"api-{kind}-preflight": {"POST": parse_need("workloads:create", hidden=400)},
        f"api-{kind}-alternatives": {"POST": parse_need("workloads:create", hidden=400)},
        f"api-{kind}-one": {"GET": _WORKLOAD["view"], "DELETE": _WORKLOAD["delete"]},
        f"api-{kind}-suspend": {"POST": _WORKLOAD["edit"]},
        f"api-{kind}-resume": {"POST": _WORKLOAD["edit"]},
    }


WORKLOADS: dict[str, dict[str, Rule]] = {
    **{
        name: {"GET": SIGNED_IN}
        for name in ("home", "workloads", "workloads-changes", "workloads-live", "workloads-csv")
    },
    "workloads-bulk": {"POST": SIGNED_IN},
    "workloads-view-new": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "workloads-view": {"GET": OWN, "POST": OWN},
    "workloads-view-delete": {"GET": OWN, "POST": OWN},
    **{
        name: {"GET": _WORKLOAD["view"]}
        for name in (
            *(
                "workload",
                "workload-alternatives",
                "workload-head",
                "workload-events",
                "workload-pods",
                "workload-pod-changes",
                "workload-delivery",
                "workload-training",
                "workload-timeline-lanes",
                "workload-timeline-svg",
                "workload-metric-frames",
                "workload-live",
                "workload-tab",
            ),
            *("log-window", "log-search", "log-stream", "log-download"),
        )
    },
    "workload-stop": {"POST": _WORKLOAD["edit"]},
    "workload-run": {"POST": _WORKLOAD["edit"]},
    "workload-exclude-node": {"POST": _WORKLOAD["edit"]},
    "workload-delete": {"POST": _WORKLOAD["delete"]},
    "workload-new": {"GET": parse_need("workloads:create", "anywhere")},
    "wizard": {"GET": OWN, "POST": OWN},
    "wizard-save": {"POST": OWN},
    "wizard-asset": {"GET": OWN, "POST": OWN},
    "wizard-template": {"GET": OWN, "POST": OWN},
    "wizard-templates": {"GET": OWN},
    "wizard-machines": {"GET": OWN},
    "wizard-preflight": {"GET": OWN},
    "wizard-alternatives": {"GET": OWN},
    "api-workloads": {"GET": SIGNED_IN},
    "api-workloads-count": {"GET": SIGNED_IN},
    "api-workloads-name": {"GET": parse_need("workloads:create", "anywhere")},
    "api-workloads-batch": {"POST": SIGNED_IN},
    "api-workloads-telemetry": {"GET": SIGNED_IN},
    "api-workload-excluded-nodes": {"PUT": _WORKLOAD["edit"]},
    "api-pods": {"GET": SIGNED_IN},
    **{
        name: {"GET": _WORKLOAD["view"]}
        for name in (
            "api-workload",
            "api-workload-pods",
            "api-workload-data-delivery",
            "api-workload-events",
            "api-workload-history",
            "api-workload-progress",
            "api-workload-findings",
            "api-workload-timeline",
            "api-workload-forecast",
            "api-workload-alternatives",
            "api-workload-metrics",
            "api-pod-metrics",
            "api-pod-logs",
        )
    },
    **_build_workload_api_rules("distributed"),
    **_build_workload_api_rules("trainings"),
}

TABLE: dict[str, dict[str, Rule]] = {**SIGNING_IN, **ACCESS, **ORGANISATION, **ASSETS, **WORKLOADS}
