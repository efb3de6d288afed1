"""Lists: pages, versions, selectors, and the forms in which kubectl and caches ask for them."""

import re

import pytest

from tests.conformance.api import PARTIAL, PARTIAL_LIST, TABLE, Api, Object
from tests.conformance.samples import (
    CONFIGMAPS,
    GATE,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PYTORCHJOBS,
    QUEUES,
    SECRETS,
    SERVICES,
    Kind,
    create,
    create_pod,
    lease,
    names,
    pod,
    pytorchjob,
    sample,
)

KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
RUNTIME = ["Container-Runtime"]
AGE = re.compile(r"(\d+[smhdy])+|<invalid>")


@pytest.fixture(params=[LEASES, PYTORCHJOBS], ids=["leases", "pytorchjobs"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """One built-in kind and one that a CRD defines."""
    chosen: Kind = request.param
    return chosen


@pytest.fixture
def five(api: Api, namespace: str, kind: Kind) -> str:
    """The path of a collection with the objects a0 to a4."""
    for number in range(5):
        create(api, kind, namespace, sample(kind, f"a{number}"))
    return kind.path(namespace)


def test_an_empty_list_has_a_version_and_no_items(api: Api, namespace: str, kind: Kind) -> None:
    listing = api.get(kind.path(namespace)).ok()
    assert listing["items"] == []
    assert int(listing["metadata"]["resourceVersion"]) > 0
    assert not listing["metadata"].get("continue")


def test_a_namespace_that_is_not_there_has_an_empty_list(api: Api, unique: str, kind: Kind) -> None:
    assert api.get(kind.path(unique)).ok()["items"] == []


def test_a_list_is_in_the_order_of_names(api: Api, five: str) -> None:
    assert names(api.get(five).ok()) == ["a0", "a1", "a2", "a3", "a4"]


def test_pages_follow_each_other_without_gap_or_overlap(api: Api, five: str) -> None:
    first = api.get(five, limit=2).ok()
    second = api.get(five, limit=2, continue_=first["metadata"]["continue"]).ok()
    third = api.get(five, limit=2, continue_=second["metadata"]["continue"]).ok()
    assert [names(first), names(second), names(third)] == [["a0", "a1"], ["a2", "a3"], ["a4"]]
    assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [
        3,
        1,
        None,
    ]
    assert not third["metadata"].get("continue")
    assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1


def test_a_page_that_holds_everything_has_no_continuation(api: Api, five: str) -> None:
    page = api.get(five, limit=5).ok()
    assert len(page["items"]) == 5
    assert not page["metadata"].get("continue")
    assert "remainingItemCount" not in page["metadata"]


def test_later_pages_show_the_state_of_the_first(
    api: Api, namespace: str, kind: Kind, five: str
) -> None:
    first = api.get(five, limit=2).ok()
    api.delete(kind.path(namespace, "a3")).ok()
    api.patch(kind.path(namespace, "a4"), {"metadata": {"labels": {"new": "yes"}}}).ok()
    create(api, kind, namespace, sample(kind, "a2b"))
    rest = api.get(five, limit=10, continue_=first["metadata"]["continue"]).ok()
    assert names(rest) == ["a2", "a3", "a4"]
    assert "labels" not in rest["items"][2]["metadata"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_page_of_a_selection_does_not_count_what_remains(
    api: Api, namespace: str, kind: Kind
) -> None:
    for number in range(3):
        obj = sample(kind, f"a{number}")
        obj["metadata"]["labels"] = {"batch": "p"}
        create(api, kind, namespace, obj)
    create(api, kind, namespace, sample(kind, "other"))
    first = api.get(kind.path(namespace), limit=2, labelSelector="batch=p").ok()
    assert names(first) == ["a0", "a1"]
    assert "remainingItemCount" not in first["metadata"]
    rest = api.get(
        kind.path(namespace),
        limit=2,
        labelSelector="batch=p",
        continue_=first["metadata"]["continue"],
    ).ok()
    assert names(rest) == ["a2"]


def test_version_zero_ignores_the_limit(api: Api, five: str) -> None:
    latest = api.get(five).ok()["metadata"]["resourceVersion"]
    api.get(five, resourceVersion=latest).ok()
    listing = api.get(five, resourceVersion="0", limit=3).ok()
    assert len(listing["items"]) == 5
    assert not listing["metadata"].get("continue")


def test_a_list_not_older_than_a_version_is_at_least_that_new(api: Api, five: str) -> None:
    version = api.get(five).ok()["metadata"]["resourceVersion"]
    listing = api.get(five, resourceVersion=version, resourceVersionMatch="NotOlderThan").ok()
    assert len(listing["items"]) == 5
    assert int(listing["metadata"]["resourceVersion"]) >= int(version)


def test_a_list_at_exactly_a_version_is_the_state_then(
    api: Api, namespace: str, kind: Kind, five: str
) -> None:
    version = api.get(five).ok()["metadata"]["resourceVersion"]
    api.delete(kind.path(namespace, "a0")).ok()
    listing = api.get(five, resourceVersion=version, resourceVersionMatch="Exact").ok()
    assert names(listing) == ["a0", "a1", "a2", "a3", "a4"]
    assert listing["metadata"]["resourceVersion"] == version


def test_an_exact_version_can_be_read_in_pages(
    api: Api, namespace: str, kind: Kind, five: str
) -> None:
    version = api.get(five).ok()["metadata"]["resourceVersion"]
    api.delete(kind.path(namespace, "a4")).ok()
    first = api.get(five, resourceVersion=version, resourceVersionMatch="Exact", limit=3).ok()
    rest = api.get(five, limit=3, continue_=first["metadata"]["continue"]).ok()
    assert names(first) + names(rest) == ["a0", "a1", "a2", "a3", "a4"]


def test_a_version_that_lies_in_the_future_times_out(api: Api, namespace: str, kind: Kind) -> None:
    answer = api.get(
        kind.path(namespace), resourceVersion="999999999", resourceVersionMatch="NotOlderThan"
    )
    refusal = answer.expect_refusal(504, "Timeout")
    assert re.fullmatch(
        r"Timeout: Too large resource version: 999999999, current: \d+", refusal["message"]
    )
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    assert refusal["details"] == {"causes": causes, "retryAfterSeconds": 1}
    assert answer.headers["Retry-After"] == "1"


def test_an_object_can_be_read_at_least_as_new_as_a_version(
    api: Api, namespace: str, kind: Kind
) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    read = api.get(
        kind.path(namespace, "one"), resourceVersion=made["metadata"]["resourceVersion"]
    ).ok()
    assert read["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("app=a", ["n0", "n1"]),
        ("app==a", ["n0", "n1"]),
        ("app!=a", ["n2", "n3"]),
        ("app in (a,b)", ["n0", "n1", "n2"]),
        ("app notin (a)", ["n2", "n3"]),
        ("app", ["n0", "n1", "n2"]),
        ("!app", ["n3"]),
        ("app=a,tier", ["n1"]),
        ("app=a,!tier", ["n0"]),
        ("tier=", ["n2"]),
        ("muster.dev/owner=x", ["n3"]),
        ("app=nobody", []),
    ],
)
def test_labels_select(api: Api, namespace: str, selector: str, selected: list[str]) -> None:
    labels: list[dict[str, str]] = [
        {"app": "a"},
        {"app": "a", "tier": "front"},
        {"app": "b", "tier": ""},
        {"muster.dev/owner": "x"},
    ]
    for number, each in enumerate(labels):
        create(api, LEASES, namespace, lease(f"n{number}", labels=each))
    assert names(api.get(LEASES.path(namespace), labelSelector=selector).ok()) == selected


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("metadata.name=a1", ["a1"]),
        ("metadata.name!=a1", ["a0", "a2", "a3", "a4"]),
        ("metadata.name==a1,metadata.name=a2", []),
    ],
)
def test_names_select(api: Api, five: str, selector: str, selected: list[str]) -> None:
    assert names(api.get(five, fieldSelector=selector).ok()) == selected


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("status.phase=Pending", ["always", "never"]),
        ("status.phase=Running", []),
        ("status.phase!=Running,spec.restartPolicy=Never", ["never"]),
        ("spec.restartPolicy=Always", ["always"]),
        ("spec.nodeName=", ["always", "never"]),
        ("spec.nodeName!=", []),
        ("spec.schedulerName=default-scheduler", ["always"]),
    ],
)
def test_fields_of_pods_select(
    api: Api, namespace: str, selector: str, selected: list[str]
) -> None:
    create_pod(api, namespace, pod("never", schedulerName="kai-scheduler"))
    create_pod(api, namespace, pod("always", restartPolicy="Always"))
    assert names(api.get(PODS.path(namespace), fieldSelector=selector).ok()) == selected


def test_the_type_of_secrets_selects(api: Api, namespace: str) -> None:
    create(api, SECRETS, namespace, sample(SECRETS, "mine"))
    assert names(api.get(SECRETS.path(namespace), fieldSelector="type=Opaque").ok()) == ["mine"]


def test_labels_select_over_all_namespaces(api: Api, namespace: str, unique: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob("a", labels={"run": unique}))
    listing = api.get(PYTORCHJOBS.path(), labelSelector=f"run={unique}").ok()
    assert [
        (item["metadata"]["namespace"], item["metadata"]["name"]) for item in listing["items"]
    ] == [(namespace, "a")]


def test_metadata_alone_can_be_listed(api: Api, five: str) -> None:
    listing = api.get(five, accept=PARTIAL_LIST, limit=2).ok()
    assert (listing["kind"], listing["apiVersion"]) == (
        "PartialObjectMetadataList",
        "meta.k8s.io/v1",
    )
    assert listing["metadata"]["remainingItemCount"] == 3
    item = listing["items"][0]
    assert set(item) == {"kind", "apiVersion", "metadata"}
    assert (item["kind"], item["apiVersion"], item["metadata"]["name"]) == (
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        "a0",
    )


def test_metadata_alone_can_be_read(api: Api, namespace: str, kind: Kind) -> None:
    made = create(api, kind, namespace, sample(kind, "one"))
    read = api.get(kind.path(namespace, "one"), accept=PARTIAL).ok()
    assert set(read) == {"kind", "apiVersion", "metadata"}
    assert read["kind"] == "PartialObjectMetadata"
    assert read["metadata"]["uid"] == made["metadata"]["uid"]


def columns(table: Object) -> list[str]:
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    for definition in table["columnDefinitions"]:
        assert set(definition) == {"name", "type", "format", "description", "priority"}
    return [definition["name"] for definition in table["columnDefinitions"]]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            PODS,
            [
                "Name",
                "Ready",
                "Status",
                "Restarts",
                "Age",
                "IP",
                "Node",
                "Nominated Node",
                "Readiness Gates",
            ],
        ),
        (
            NODES,
            [
                "Name",
                "Status",
                "Roles",
                "Age",
                "Version",
                "Internal-IP",
                "External-IP",
                "OS-Image",
                "Kernel-Version",
                *RUNTIME,
            ],
        ),
        (NAMESPACES, ["Name", "Status", "Age"]),
        (CONFIGMAPS, ["Name", "Data", "Age"]),
        (SECRETS, ["Name", "Type", "Data", "Age"]),
        (SERVICES, ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"]),
        (LEASES, ["Name", "Holder", "Age"]),
        (
            JOBS,
            [
                "Name",
                "Status",
                "Completions",
                "Duration",
                "Age",
                "Containers",
                "Images",
                "Selector",
            ],
        ),
        (PYTORCHJOBS, ["Name", "State", "Age"]),
        (QUEUES, ["Name", "Priority", "Parent", "Children", "DisplayName"]),
    ],
    ids=lambda value: value.plural if isinstance(value, Kind) else "",
)
def test_a_table_has_the_columns_of_its_kind(api: Api, kind: Kind, expected: list[str]) -> None:
    table = api.get(kind.path(), accept=KUBECTL, limit=1).ok()
    assert columns(table) == expected


def test_a_table_of_pods_reads_as_kubectl_prints_it(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod("gated"))
    row = api.get(PODS.path(namespace), accept=KUBECTL).ok()["rows"][0]
    assert row["cells"][:4] == ["gated", "0/1", "SchedulingGated", "0"]
    assert AGE.fullmatch(row["cells"][4])
    assert row["cells"][5:] == ["<none>", "<none>", "<none>", "<none>"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert (row["object"]["metadata"]["name"], row["object"]["metadata"]["namespace"]) == (
        "gated",
        namespace,
    )


def test_a_table_of_jobs_shows_the_last_condition(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob("new"))
    create(api, PYTORCHJOBS, namespace, pytorchjob("running"))
    conditions = [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}]
    api.patch(
        PYTORCHJOBS.path(namespace, "running", "status"), {"status": {"conditions": conditions}}
    ).ok()
    table = api.get(PYTORCHJOBS.path(namespace), accept=KUBECTL).ok()
    assert [row["cells"][:2] for row in table["rows"]] == [["new", None], ["running", "Running"]]
    assert AGE.fullmatch(table["rows"][0]["cells"][2])


def test_a_table_has_pages_too(api: Api, five: str) -> None:
    first = api.get(five, accept=KUBECTL, limit=3).ok()
    rest = api.get(five, accept=KUBECTL, limit=3, continue_=first["metadata"]["continue"]).ok()
    assert [row["cells"][0] for row in first["rows"] + rest["rows"]] == [
        "a0",
        "a1",
        "a2",
        "a3",
        "a4",
    ]
    assert first["metadata"]["remainingItemCount"] == 2


def test_one_object_can_be_a_table(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod("one"))
    table = api.get(PODS.path(namespace, "one"), accept=KUBECTL).ok()
    assert columns(table)[0] == "Name"
    assert [row["cells"][0] for row in table["rows"]] == ["one"]


def test_the_rows_of_a_table_carry_as_much_as_is_asked_for(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod("one"))
    path = PODS.path(namespace)
    whole = api.get(path, accept=KUBECTL, includeObject="Object").ok()["rows"][0]["object"]
    assert (whole["kind"], whole["spec"]["schedulingGates"]) == ("Pod", [{"name": GATE}])
    assert not api.get(path, accept=KUBECTL, includeObject="None").ok()["rows"][0].get("object")


def test_the_first_acceptable_form_is_served(api: Api, namespace: str) -> None:
    listing = api.get(LEASES.path(namespace), accept="application/xml;q=0.9, application/json").ok()
    assert listing["kind"] == "LeaseList"
    assert api.get(LEASES.path(namespace), accept="*/*").ok()["kind"] == "LeaseList"
