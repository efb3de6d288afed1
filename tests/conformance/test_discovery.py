"""What a client learns about a server before it asks for anything: version, health, groups,
resources, schemas.
"""

import re

import pytest

from tests.conformance.api import Api, Object, eventually
from tests.conformance.samples import (
    CONFIGMAPS,
    CRDS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NEW_EVENTS,
    NODES,
    PODGROUPS,
    PODS,
    PYTORCHJOBS,
    QUEUES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Kind,
)

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NEEDED = [
    NAMESPACES,
    NODES,
    PODS,
    EVENTS,
    NEW_EVENTS,
    SECRETS,
    CONFIGMAPS,
    SERVICES,
    SERVICEACCOUNTS,
    LEASES,
    JOBS,
    PYTORCHJOBS,
    QUEUES,
    PODGROUPS,
    CRDS,
]
GROUPS = sorted(
    {kind.group for kind in NEEDED if kind.group}
    | {"authorization.k8s.io", "authentication.k8s.io"}
)
READ = {"get", "list", "watch"}
WRITE = {"create", "update", "patch", "delete"}


def describe_kind(kind: Kind) -> str:
    return f"{kind.api_version}-{kind.plural}"


def test_the_version_says_which_kubernetes_it_speaks(api: Api) -> None:
    version = api.get("/version").ok()
    assert re.fullmatch(r"v1\.\d+\.\d+.*", version["gitVersion"])
    assert version["major"] == "1"
    assert version["minor"].rstrip("+").isdigit()
    assert re.fullmatch(r"\w+/\w+", version["platform"])


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
def test_health_is_the_plain_text_ok(api: Api, path: str) -> None:
    answer = api.get(path, accept="*/*")
    assert (answer.status, answer.text) == (200, "ok")
    assert answer.headers.get_content_type() == "text/plain"


def test_health_and_version_need_no_credentials(anonymous: Api) -> None:
    assert anonymous.get("/readyz", accept="*/*").status == 200
    assert anonymous.get("/version").status == 200


def test_verbose_readiness_lists_its_checks(api: Api) -> None:
    answer = api.get("/readyz", accept="*/*", verbose="")
    assert answer.status == 200
    assert re.search(r"^\[\+\]\S+ ok$", answer.text, re.MULTILINE)
    assert answer.text.endswith("readyz check passed\n")


def test_the_core_group_has_version_v1(api: Api) -> None:
    versions = api.get("/api").ok()
    assert (versions["kind"], versions["versions"]) == ("APIVersions", ["v1"])
    assert versions["serverAddressByClientCIDRs"][0]["clientCIDR"]


def test_every_group_is_listed_with_its_preferred_version(api: Api) -> None:
    listing = api.get("/apis").ok()
    assert (listing["kind"], listing["apiVersion"]) == ("APIGroupList", "v1")
    groups = {group["name"]: group for group in listing["groups"]}
    assert set(GROUPS) <= set(groups)
    for group in groups.values():
        assert group["preferredVersion"] in group["versions"]


def test_one_group_tells_its_versions(api: Api) -> None:
    version = {"groupVersion": "kubeflow.org/v1", "version": "v1"}
    group = api.get("/apis/kubeflow.org").ok()
    assert version in group["versions"]
    assert group == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "kubeflow.org",
        "versions": group["versions"],
        "preferredVersion": version,
    }


def fetch_resources(api: Api, api_version: str) -> dict[str, Object]:
    listing = api.get(f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}").ok()
    assert (listing["kind"], listing["groupVersion"]) == ("APIResourceList", api_version)
    return {resource["name"]: resource for resource in listing["resources"]}


@pytest.mark.parametrize("kind", NEEDED, ids=describe_kind)
def test_a_kind_is_listed_with_its_verbs(api: Api, kind: Kind) -> None:
    resource = fetch_resources(api, kind.api_version)[kind.plural]
    assert (resource["kind"], resource["namespaced"]) == (kind.kind, kind.namespaced)
    assert resource["singularName"] == kind.kind.lower()
    assert set(resource["verbs"]) >= (READ if kind is CRDS else READ | WRITE)


@pytest.mark.parametrize(
    ("kind", "short"),
    [
        (NAMESPACES, "ns"),
        (NODES, "no"),
        (PODS, "po"),
        (EVENTS, "ev"),
        (CONFIGMAPS, "cm"),
        (SERVICES, "svc"),
        (PODGROUPS, "pg"),
    ],
)
def test_short_names_are_the_known_ones(api: Api, kind: Kind, short: str) -> None:
    assert short in fetch_resources(api, kind.api_version)[kind.plural]["shortNames"]


@pytest.mark.parametrize("kind", [PODS, SERVICES, JOBS], ids=describe_kind)
def test_kubectl_get_all_includes_it(api: Api, kind: Kind) -> None:
    assert "all" in fetch_resources(api, kind.api_version)[kind.plural]["categories"]


@pytest.mark.parametrize(
    "kind", [PODS, NODES, JOBS, PYTORCHJOBS, QUEUES, PODGROUPS], ids=describe_kind
)
def test_the_status_subresource_is_listed(api: Api, kind: Kind) -> None:
    status = fetch_resources(api, kind.api_version)[f"{kind.plural}/status"]
    assert status["kind"] == kind.kind
    assert {"get", "patch", "update"} <= set(status["verbs"])


def test_pod_logs_and_job_scale_are_listed(api: Api) -> None:
    assert fetch_resources(api, "v1")["pods/log"]["verbs"] == ["get"]
    scale = fetch_resources(api, "kubeflow.org/v1")["pytorchjobs/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_answers_in_its_own_media_type(api: Api, path: str) -> None:
    answer = api.get(path, accept=f"{AGGREGATED},application/json")
    assert answer.headers["Content-Type"] == AGGREGATED
    listing = answer.ok()
    assert (listing["kind"], listing["apiVersion"]) == (
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )


@pytest.mark.parametrize("kind", NEEDED, ids=describe_kind)
def test_aggregated_discovery_describes_each_kind(api: Api, kind: Kind) -> None:
    listing = api.get(
        "/apis" if kind.group else "/api", accept=f"{AGGREGATED},application/json"
    ).ok()
    group = next(
        item for item in listing["items"] if item["metadata"].get("name", "") == kind.group
    )
    version = next(v for v in group["versions"] if v["version"] == kind.api_version.split("/")[-1])
    resource = next(r for r in version["resources"] if r["resource"] == kind.plural)
    assert resource["responseKind"]["kind"] == kind.kind
    assert resource["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
    assert resource["singularResource"] == kind.kind.lower()


def test_aggregated_discovery_describes_subresources(api: Api) -> None:
    listing = api.get("/apis", accept=AGGREGATED).ok()
    group = next(
        item for item in listing["items"] if item["metadata"].get("name") == "kubeflow.org"
    )
    jobs = next(r for r in group["versions"][0]["resources"] if r["resource"] == "pytorchjobs")
    scale = next(s for s in jobs["subresources"] if s["subresource"] == "scale")
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


@pytest.mark.parametrize(
    "path",
    [
        "/apis/no.such.group",
        "/apis/kubeflow.org/v2beta99",
        "/apis/kubeflow.org/v1/namespaces/default/nosuchjobs",
        "/no/such/path",
    ],
)
def test_what_is_not_served_is_not_found(api: Api, path: str) -> None:
    assert api.get(path).status == 404


def kinds_documented(api: Api, group_version: str) -> set[str]:
    """The kinds in the document of a group version. That of a fresh definition comes a minute late,
    and its address changes with it.
    """
    paths = api.get("/openapi/v3").ok()["paths"]
    answer = api.get(paths[group_version]["serverRelativeURL"]) if group_version in paths else None
    if answer is None or answer.status in (301, 404):
        return set()
    document = answer.ok()
    assert document["openapi"].startswith("3.")
    schemas = document["components"]["schemas"].values()
    return {
        gvk["kind"]
        for schema in schemas
        for gvk in schema.get("x-kubernetes-group-version-kind", [])
    }


def test_openapi_v3_points_to_a_document_per_group_version(api: Api) -> None:
    assert {"api/v1", "apis/batch/v1"} <= set(api.get("/openapi/v3").ok()["paths"])
    eventually(lambda: "PyTorchJob" in kinds_documented(api, "apis/kubeflow.org/v1"), within=360)


def test_openapi_v3_says_that_patches_can_be_validated_strictly(api: Api) -> None:
    paths = api.get("/openapi/v3").ok()["paths"]
    document = api.get(paths["api/v1"]["serverRelativeURL"]).ok()
    operation = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert operation["x-kubernetes-group-version-kind"] == {
        "group": "",
        "version": "v1",
        "kind": "Pod",
    }
    parameters = {parameter.get("name") for parameter in operation["parameters"]}
    assert {"fieldValidation", "dryRun"} <= parameters


def test_the_installed_definitions_can_be_listed(api: Api) -> None:
    definitions = {item["metadata"]["name"]: item for item in api.get(CRDS.path()).ok()["items"]}
    assert {
        "pytorchjobs.kubeflow.org",
        "queues.scheduling.run.ai",
        "podgroups.scheduling.run.ai",
    } <= set(definitions)
    spec = definitions["pytorchjobs.kubeflow.org"]["spec"]
    assert (spec["group"], spec["scope"], spec["names"]["kind"]) == (
        "kubeflow.org",
        "Namespaced",
        "PyTorchJob",
    )
    assert "v1" in [version["name"] for version in spec["versions"] if version["served"]]


def test_metrics_have_their_form_where_they_are_served(api: Api) -> None:
    groups = [group["name"] for group in api.get("/apis").ok()["groups"]]
    if "metrics.k8s.io" not in groups:
        pytest.skip("the cluster serves no metrics.k8s.io")
    for node in api.get("/apis/metrics.k8s.io/v1beta1/nodes").ok()["items"]:
        assert re.fullmatch(r"\d+[num]?", node["usage"]["cpu"])
        assert re.fullmatch(r"\d+(Ki|Mi|Gi)?", node["usage"]["memory"])
        assert node["timestamp"].endswith("Z")
        assert node["window"].endswith("s")
