"""Each operation of the REST API takes and answers what its OpenAPI document says.

An operation that takes a body has a sample of one here, or its test fails.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.test import RequestFactory
from jsonschema import Draft202012Validator

from environments.models import Policy
from projects import sign_in_requests
from projects.models import User
from tests.api.calling import Caller, a_body
from tests.api.described import check_request, list_operations
from tests.cast import NOWHERE
from tests.cluster import ROOT
from tests.console.address_world import World, module_world, world
from tests.console.addresses import ASYNC, EVERY, Address
from tests.environments.assets import SAMPLES as ASSETS

__all__ = ["module_world", "world"]

DOCS = ROOT / "docs"
OPERATIONS = {f"{method} {path}": operation for method, path, operation in list_operations()}
WITH_BODY = [name for name, each in OPERATIONS.items() if "requestBody" in each]
WITHOUT_BODY = [name for name in OPERATIONS if name not in WITH_BODY]

SHARE = {"deserved": 1, "limit": -1, "overQuotaWeight": 2}
RESOURCES = [
    {
        "nodePool": {"id": "1", "name": "default"},
        "gpu": SHARE,
        "cpu": SHARE | {"deserved": None},
        "memory": SHARE | {"units": "MB"},
    }
]
RULES = {"trainingJobTimeLimitSeconds": 3600, "trainingJobMaxIdleDurationSeconds": None}
UNIT = {"description": "x", "resources": RESOURCES, "schedulingRules": RULES}
CONNECTION = {"name": "other", "kubeconfig": NOWHERE}
POLICY = {"defaults": {"worker": {"image": "a"}}, "rules": {"numWorkers": {"min": 1, "max": 4}}}
ROLE = {"name": "Reader", "permissions": [{"resourceType": "templates", "actions": ["read"]}]}
POOL = {"labelKey": "gpu", "labelValue": "h200", "description": "x"}
ACCOUNT = {"name": "ci", "roleId": "viewer", "scopeType": "tenant", "expiresInDays": 3}
ASSET_SPECS = {sample.api: sample.spec for sample in ASSETS} | {
    "/api/v1/asset/policies": {"workloadType": "all", "rules": {"workers": {"max": "4"}}}
}
NO_LIMITS = {"resources": [{"gpu": SHARE, "cpu": {"deserved": 2000}, "memory": {"limit": None}}]}
"""A department has a limit of GPUs only."""
PASSWORD = "korrekt-horse-battery-9"


def build_project(world: World) -> dict[str, Any]:
    return UNIT | {
        "name": "vision",
        "clusterId": str(world.cast.cluster.pk),
        "parentId": str(world.cast.research.pk),
        "defaultPreemptibility": "preemptible",
        "nodePools": ["pool-0"],
    }


def build_template(world: World, *, is_distributed: bool = True) -> dict[str, Any]:
    spec = a_body(world.cast)["spec"] if is_distributed else {"image": "a", "completions": 2}
    return {"meta": build_meta(world), "spec": spec}


def build_standard(world: World) -> dict[str, Any]:
    return a_body(world.cast) | {"spec": {"image": "a", "parallelism": 2, "completions": 2}}


def build_meta(world: World) -> dict[str, Any]:
    return {"name": "mine", "scope": "project", "projectId": world.cast.team_a.pk}


def build_policy(world: World) -> dict[str, Any]:
    meta = {"scope": "project", "projectId": str(world.cast.team_a.pk)}
    return {"meta": meta, "policy": POLICY}


def build_standard_policy(world: World) -> dict[str, Any]:
    return build_policy(world) | {"policy": {"rules": {"completions": {"max": 3}}}}


def create_device_secret() -> str:
    """The secret of a code that nobody has confirmed yet."""
    return sign_in_requests.create_request("laptop", RequestFactory().post("/"))[1]


def build_rule(world: World) -> dict[str, Any]:
    return {
        "subjectType": "user",
        "subjectId": "vera",
        "roleId": 12,
        "scopeType": "project",
        "scopeId": str(world.cast.team_b.pk),
    }


def build_trial(world: World) -> dict[str, Any]:
    changes = {"gpuQuota": 1.5, "gpuLimit": None, "overQuotaWeight": 2}
    return {
        "clusterId": str(world.cast.cluster.pk),
        "projects": [{"id": str(world.cast.team_a.pk)} | changes],
        "departments": [{"id": str(world.cast.research.pk), "gpuQuota": -1, "gpuLimit": 9}],
    }


BODIES: Mapping[str, Callable[[World], Any]] = {
    "POST /api/v1/access-keys": lambda world: {"name": "ci", "expiresInDays": 3},
    "POST /api/v1/apps": lambda world: ACCOUNT,
    "POST /api/v1/authorization/access-rules": build_rule,
    "PATCH /api/v1/authorization/access-rules/{id}": lambda world: {"roleId": "viewer"},
    "PATCH /api/v1/service-accounts/{id}": lambda world: {"enabled": False},
    "PATCH /api/v1/apps/{id}": lambda world: {"enabled": False},
    "POST /api/v1/authorization/permitted-scopes": lambda world: {"resourceType": "projects"},
    "POST /api/v1/authorization/roles": lambda world: ROLE,
    "PUT /api/v1/authorization/roles/{key}": lambda world: ROLE | {"version": 1},
    "POST /api/v1/clusters": lambda world: CONNECTION,
    "PATCH /api/v1/clusters/{id}": lambda world: {"name": "other", "enabled": False},
    "POST /api/v1/clusters/test": lambda world: CONNECTION,
    "POST /api/v1/node-pools": lambda world: (
        POOL | {"name": "fast", "clusterId": str(world.cast.cluster.pk)}
    ),
    "PUT /api/v1/node-pools/{id}": lambda world: POOL,
    "PATCH /api/v1/node-pools/{id}": lambda world: {"description": "y"},
    "POST /api/v1/org-unit/departments": lambda world: UNIT | {"name": "vision"} | NO_LIMITS,
    "PUT /api/v1/org-unit/departments/{id}": lambda world: UNIT | NO_LIMITS,
    "PATCH /api/v1/org-unit/departments/{id}": lambda world: {"description": "y"},
    "PUT /api/v1/org-unit/departments/{id}/resources": lambda world: NO_LIMITS,
    "PATCH /api/v1/org-unit/departments/{id}/resources": lambda world: NO_LIMITS,
    "POST /api/v1/org-unit/projects": build_project,
    "PUT /api/v1/org-unit/projects/{id}": lambda world: UNIT,
    "PATCH /api/v1/org-unit/projects/{id}": lambda world: UNIT | {"version": 1},
    "PUT /api/v1/org-unit/projects/{id}/resources": lambda world: {"resources": RESOURCES},
    "PATCH /api/v1/org-unit/projects/{id}/resources": lambda world: {"resources": RESOURCES},
    "POST /api/v1/quota-trials": build_trial,
    "POST /api/v1/service-accounts": lambda world: ACCOUNT,
    "POST /api/v1/token": lambda world: {
        "grantType": "password",
        "username": "carla",
        "password": PASSWORD,
    },
    "POST /api/v1/token/device": lambda world: {"clientName": "laptop"},
    "POST /api/v1/token/device/claim": lambda world: {"deviceCode": create_device_secret()},
    "POST /api/v1/users": lambda world: {"username": "carl", "email": "carl@example.com"},
    "PATCH /api/v1/users/{id}": lambda world: {"isActive": False},
    "POST /api/v1/workload-templates": build_template,
    "PUT /api/v1/workload-templates/{key}": build_template,
    "PATCH /api/v1/workload-templates/{key}": build_template,
    "POST /api/v1/workloads/batch": lambda world: {
        "ids": [str(world.workload.pk)],
        "action": "suspend",
    },
    "PUT /api/v1/workloads/{workload_id}/excluded-nodes": lambda world: {"nodes": []},
    "POST /api/v1/workloads/distributed": lambda world: a_body(world.cast),
    "POST /api/v1/workloads/distributed/preview": lambda world: a_body(world.cast),
    "POST /api/v1/workloads/distributed/preflight": lambda world: a_body(world.cast),
    "POST /api/v1/workloads/distributed/alternatives": lambda world: a_body(world.cast),
    "POST /api/v1/workloads/trainings/alternatives": build_standard,
    "POST /api/v1/workloads/trainings": build_standard,
    "POST /api/v1/workloads/trainings/preflight": build_standard,
    "POST /api/v1/workloads/trainings/preview": build_standard,
    "PUT /api/v2/policy/distributed": build_policy,
    "PATCH /api/v2/policy/distributed": build_policy,
    "PUT /api/v2/policy/trainings": build_standard_policy,
    "PATCH /api/v2/policy/trainings": build_standard_policy,
}

HOURS = "start=2026-01-01T00:00:00Z&end=2026-01-01T02:00:00Z"
QUERIES = {
    "/name-availability": "?name=mine&scope=tenant&projectId={project}",
    "/nodes/telemetry": "?telemetryType=TOTAL_GPUS&groupBy=ClusterId,Node",
    "/workloads/telemetry": "?telemetryType=WORKLOADS_COUNT&groupBy=Phase",
    "/telemetry": "?telemetryType=GPU_QUOTA",
    "/workloads/{workload_id}/metrics": f"?metricType=GPU_UTILIZATION&{HOURS}",
    "/pods/{pod_id}/metrics": f"?metricType=CPU_USAGE_CORES&{HOURS}",
    "/nodes/{id}/metrics": f"?metricType=CPU_UTILIZATION&{HOURS}",
    "/metrics": (
        "?metricType=GPU_QUOTA&numberOfSamples=2&start=2026-01-01T00:00:00Z"
        "&end=2026-01-01T02:00:00Z"
    ),
    "/permitted-scopes": "?resourceType=projects",
}
"""What some operations need in their query."""
REFUSED = {
    "DELETE /api/v1/clusters/{id}": 409,
    "DELETE /api/v1/org-unit/departments/{id}": 409,
    "DELETE /api/v1/org-unit/projects/{id}": 409,
}
"""What cannot be done in the world of these tests, with the status that says so."""


def normalize_path(path: str) -> str:
    """A path of the document or of the URL table without the names of its arguments."""
    return "/".join("*" if part[:1] in ("{", "<") else part for part in path.strip("/").split("/"))


ADDRESSES: Mapping[str, Address] = {
    normalize_path(address.route): address
    for address in EVERY.values()
    if address.route.startswith("api/")
}


def build_url(world: World, path: str) -> str:
    url = world.url(ADDRESSES[normalize_path(path)].name)
    if path.startswith("/api/v2/policy/"):
        return f"{url}?scope=project&projectId={world.cast.team_a.pk}"
    query = next((query for end, query in QUERIES.items() if path.endswith(end)), "")
    return url + query.replace("{project}", str(world.cast.team_a.pk))


def build_body(world: World, name: str) -> Any:
    """The sample of an operation's body."""
    if name in BODIES:
        return BODIES[name](world)
    method, path = name.split()
    collection = path.removesuffix("/{key}")
    spec = build_asset_spec(world, collection)
    if spec is not None:
        meta = build_meta(world) if method == "POST" else {"name": "mine", "version": 1}
        return {"meta": meta, "spec": spec}
    if collection.startswith("/api/v1/workload-templates/"):
        return build_template(world, is_distributed=collection.endswith("/distributed"))
    pytest.fail(f"{name} has no sample of a body in {__file__}")


def build_asset_spec(world: World, collection: str) -> Any:
    """What is in the body of an asset; None where there is no sample."""
    if collection.endswith("/datasource/secrets"):
        return {"credentialAssetId": str(world.credentials["generic"].pk), "mountPath": "/keys"}
    return ASSET_SPECS.get(collection)


def create_policies(world: World) -> None:
    for name, architecture in (("distributed", "Distributed"), ("trainings", "Standard")):
        Policy.objects.create(name=name, architecture=architecture, project=world.cast.team_a)


def get_caller(world: World, path: str) -> Caller:
    """Who may do it: administrators everything, save with the keys of somebody else."""
    user = world.cast.bob if path.startswith("/api/v1/access-keys/") else world.cast.alice
    return Caller(token=world.tokens[user.pk])


@pytest.mark.parametrize("name", WITH_BODY)
def test_a_body_and_its_answer_are_as_the_document_has_them(world: World, name: str) -> None:
    method, path = name.split()
    url, body = build_url(world, path), build_body(world, name)
    if "/api/v2/policy/" in path and method == "PATCH":
        create_policies(world)
    if path.endswith("/token"):
        User.objects.create_user("carla", password=PASSWORD)
    check_request(method, url.partition("?")[0], body)
    answer = get_caller(world, path).raw(method, url, body)
    assert 200 <= answer.status_code < 300, answer.content


@pytest.mark.parametrize("name", WITHOUT_BODY)
def test_an_answer_is_as_the_document_has_it(world: World, name: str) -> None:
    method, path = name.split()
    address = ADDRESSES[normalize_path(path)]
    if address.name in ASYNC:
        return
    if "/api/v2/policy/" in path:
        create_policies(world)
    answer = get_caller(world, path).raw(method, build_url(world, path))
    if name in REFUSED:
        assert answer.status_code == REFUSED[name]
    else:
        assert 200 <= answer.status_code < 300, answer.content


NOT_TRIED = {"POST /api/v1/token", "POST /api/v1/clusters/test", "POST /api/v1/clusters"}
"""Fields of a token come in any case, and a cluster that is added is connected to."""


def list_with_nulls(body: Any) -> list[tuple[str, Any]]:
    """The body with null in place of each field, one after the other, and the field's path."""
    if not isinstance(body, dict):
        return []
    found: list[tuple[str, Any]] = []
    for name, value in body.items():
        found.append((name, body | {name: None}))
        found += [
            (f"{name}.{path}", body | {name: inner}) for path, inner in list_with_nulls(value)
        ]
    return found


@pytest.mark.parametrize("name", sorted({*WITH_BODY} - NOT_TRIED))
def test_where_null_is_accepted_the_document_says_so(world: World, name: str) -> None:
    method, path = name.split()
    url, body = build_url(world, path), build_body(world, name)
    if "/api/v2/policy/" in path:
        create_policies(world)
    schema = OPERATIONS[name]["requestBody"]["content"]["application/json"]["schema"]
    caller, wrong = get_caller(world, path), []
    for field, with_null in list_with_nulls(body):
        status = caller.raw(method, url, with_null).status_code
        if status < 300 and not Draft202012Validator(schema).is_valid(with_null):
            wrong.append(field)
    assert not wrong


def test_the_reference_names_every_address() -> None:
    """The last two steps of each in one line, without those that it describes all at once."""
    words_of_lines = [
        set(re.findall(r"[a-z-]+", " ".join(re.findall(r"/[\w{},./-]+", line))))
        for line in (DOCS / "rest.md").read_text().splitlines()
    ]
    unnamed = set()
    for _, path, _ in list_operations():
        address = path.replace("/trainings", "/distributed")
        steps = [each for each in address.split("/")[3:] if not each.startswith("{")][-2:]
        if "asset" in address or steps[-1] == "name-availability":
            continue
        if not any(set(steps) <= words for words in words_of_lines):
            unnamed.add(path)
    assert not unnamed
