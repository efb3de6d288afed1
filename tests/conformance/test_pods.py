"""Pods: what the API fills in, and, where pods run, what becomes of their containers."""

import pytest

from tests.conformance.api import Api, Object, eventually
from tests.conformance.samples import GATE, NODES, PODS, create_pod, pod, shell_pod, stray_pod

MOUNT = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def wait_phase(api: Api, namespace: str, phase: str, name: str = "pod") -> Object:
    """The pod once it is in the phase."""

    def fetch_in_phase() -> Object | None:
        obj: Object = api.get(PODS.path(namespace, name)).ok()
        return obj if obj["status"]["phase"] == phase else None

    found: Object = eventually(fetch_in_phase, within=270)
    return found


def test_a_pod_is_filled_in(api: Api, namespace: str) -> None:
    made = create_pod(api, namespace, pod(restartPolicy=None))
    expected = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
    assert {key: made["spec"][key] for key in expected} == expected
    assert made["metadata"]["generation"] == 1


def test_a_container_is_filled_in(api: Api, namespace: str) -> None:
    container = create_pod(api, namespace, pod())["spec"]["containers"][0]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["resources"] == {}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("train:1", "IfNotPresent"),
        ("train", "Always"),
        ("train:latest", "Always"),
        ("registry.example.com:5000/train", "Always"),
    ],
)
def test_the_tag_decides_when_an_image_is_pulled(
    api: Api, namespace: str, image: str, policy: str
) -> None:
    made = create_pod(api, namespace, pod(containers=[{"name": "main", "image": image}]))
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
    ids=["nothing", "requests", "limits", "less"],
)
def test_resources_decide_the_quality_of_service(
    api: Api, namespace: str, resources: Object, quality: str
) -> None:
    made = create_pod(
        api,
        namespace,
        pod(containers=[{"name": "main", "image": "train:1", "resources": resources}]),
    )
    assert (made["status"]["phase"], made["status"]["qosClass"]) == ("Pending", quality)


def test_limits_are_requests_where_none_are_given(api: Api, namespace: str) -> None:
    limits = {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 2}
    made = create_pod(
        api,
        namespace,
        pod(containers=[{"name": "main", "image": "train:1", "resources": {"limits": limits}}]),
    )
    text = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}
    assert made["spec"]["containers"][0]["resources"] == {"limits": text, "requests": text}


def test_a_gated_pod_says_so(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    read = api.get(PODS.path(namespace, "pod")).ok()
    assert read["spec"]["schedulingGates"] == [{"name": GATE}]
    (condition,) = [c for c in read["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"


def required_terms(*values: str) -> Object:
    expressions = [{"key": value, "operator": "Exists"} for value in values]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_where_a_gated_pod_may_go_can_be_narrowed(api: Api, namespace: str) -> None:
    path = PODS.path(namespace, "pod")
    create_pod(api, namespace, pod())
    api.patch(path, {"spec": {"nodeSelector": {"zone": "a"}}}).ok()
    api.patch(path, {"spec": {"nodeSelector": {"disk": "ssd"}}}).ok()
    api.patch(path, {"spec": {"affinity": required_terms("gpu")}}).ok()
    changed = api.patch(path, {"spec": {"affinity": required_terms("gpu", "rack")}}).ok()
    assert changed["spec"]["nodeSelector"] == {"zone": "a", "disk": "ssd"}
    assert changed["spec"]["affinity"] == required_terms("gpu", "rack")
    # The gate may go in the same update, and then nothing more is narrowed.
    last = {"spec": {"schedulingGates": [], "nodeSelector": {"rack": "7"}}}
    assert api.patch(path, last).ok()["spec"]["nodeSelector"]["rack"] == "7"
    more = {"spec": {"nodeSelector": {"more": "1"}}}
    refusal = api.patch(path, more).expect_refusal(422, "Invalid")
    assert "pod updates may not change fields other than" in refusal["message"]


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        ({"nodeSelector": {"zone": "b"}}, "spec.nodeSelector", "only additions"),
        ({"nodeSelector": {"zone": None}}, "spec.nodeSelector", "only additions"),
        (
            {"affinity": None},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms",
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
        ),
        (
            {"affinity": required_terms("rack", "gpu")},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms[0]",
            "only additions are allowed",
        ),
        (
            {"affinity": {"podAntiAffinity": {}}},
            "spec",
            "pod updates may not change fields other than",
        ),
    ],
    ids=["another", "fewer", "no-terms", "other-terms", "pods"],
)
def test_where_a_gated_pod_may_go_cannot_be_widened(
    api: Api, namespace: str, change: Object, field: str, text: str
) -> None:
    create_pod(api, namespace, pod(nodeSelector={"zone": "a"}, affinity=required_terms("gpu")))
    path = PODS.path(namespace, "pod")
    refusal = api.patch(path, {"spec": change}).expect_refusal(422, "Invalid")
    assert text in refusal["message"]
    assert [cause["field"] for cause in refusal["details"]["causes"]] == [field]
    assert api.get(path).ok()["spec"]["nodeSelector"] == {"zone": "a"}


def test_the_status_of_a_new_pod_is_the_servers(api: Api, namespace: str) -> None:
    made = create_pod(api, namespace, pod() | {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    assert made["status"]["phase"] == "Pending"
    assert "podIP" not in made["status"]


def test_a_pod_for_a_node_is_found_by_it(api: Api, namespace: str) -> None:
    made = create_pod(api, namespace, stray_pod())
    listing = api.get(
        PODS.path(namespace), fieldSelector=f"spec.nodeName={made['spec']['nodeName']}"
    ).ok()
    assert [item["metadata"]["name"] for item in listing["items"]] == ["pod"]
    api.delete(PODS.path(namespace, "pod"), gracePeriodSeconds=0).ok()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": [{"name": "main"}]}, "spec.containers[0].image"),
        ({"containers": [{"image": "train:1"}]}, "spec.containers[0].name"),
        (
            {"containers": [{"name": "a", "image": "i:1"}, {"name": "a", "image": "i:1"}]},
            "spec.containers[1].name",
        ),
        ({"containers": [{"name": "Bad_Name", "image": "i:1"}]}, "spec.containers[0].name"),
        ({"restartPolicy": "Whenever"}, "spec.restartPolicy"),
        (
            {"containers": [{"name": "a", "image": "i:1", **MOUNT}]},
            "spec.containers[0].volumeMounts[0].name",
        ),
    ],
    ids=["image", "name", "twice", "bad-name", "restart", "mount"],
)
def test_a_pod_that_breaks_the_rules(
    api: Api, pods_namespace: str, spec: Object, field: str
) -> None:
    refusal = api.post(PODS.path(pods_namespace), pod("bad", **spec)).expect_refusal(422, "Invalid")
    fields = [cause["field"] for cause in refusal["details"]["causes"]]
    assert field in fields
    assert (refusal["details"]["name"], refusal["details"]["kind"]) == ("bad", "Pod")


@pytest.mark.pods
def test_a_pod_that_ends_well_has_succeeded(api: Api, namespace: str, image: str) -> None:
    create_pod(api, namespace, shell_pod(image, "exit 0"))
    status = wait_phase(api, namespace, "Succeeded")["status"]
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert ended["startedAt"] <= ended["finishedAt"]
    assert status["containerStatuses"][0]["ready"] is False


@pytest.mark.pods
def test_a_pod_that_ends_badly_has_failed(api: Api, namespace: str, image: str) -> None:
    create_pod(api, namespace, shell_pod(image, "exit 3"))
    status = wait_phase(api, namespace, "Failed")["status"]
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")


@pytest.mark.pods
def test_a_running_pod_is_ready_and_has_addresses(api: Api, namespace: str, image: str) -> None:
    create_pod(api, namespace, shell_pod(image, "sleep 60"))
    running = wait_phase(api, namespace, "Running")
    assert running["spec"]["nodeName"]
    status = running["status"]
    assert status["podIP"]
    assert status["hostIP"]
    assert status["startTime"]
    assert "running" in status["containerStatuses"][0]["state"]

    def ready() -> bool:
        conditions = api.get(PODS.path(namespace, "pod")).ok()["status"]["conditions"]
        true_conditions = {
            condition["type"] for condition in conditions if condition["status"] == "True"
        }
        return {"PodScheduled", "Initialized", "ContainersReady", "Ready"} <= true_conditions

    eventually(ready)


@pytest.mark.pods
def test_a_failing_container_is_started_again(api: Api, namespace: str, image: str) -> None:
    create_pod(api, namespace, shell_pod(image, "exit 1", restartPolicy="OnFailure"))

    def find_restart() -> Object | None:
        statuses = api.get(PODS.path(namespace, "pod")).ok()["status"].get("containerStatuses") or [
            {}
        ]
        return statuses[0] if statuses[0].get("restartCount", 0) >= 1 else None

    container = eventually(find_restart, within=270)
    assert container["lastState"]["terminated"]["exitCode"] == 1


@pytest.mark.pods
def test_init_containers_run_first(api: Api, namespace: str, image: str) -> None:
    obj = shell_pod(
        image,
        "cat /shared/note",
        container={"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
    )
    first = shell_pod(image, "echo prepared > /shared/note")["spec"]["containers"][0]
    first |= {"name": "first", "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    obj["spec"] |= {"initContainers": [first], "volumes": [{"name": "shared", "emptyDir": {}}]}
    create_pod(api, namespace, obj)
    status = wait_phase(api, namespace, "Succeeded")["status"]
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.pods
def test_a_deleted_pod_is_asked_to_stop_and_then_goes(api: Api, namespace: str, image: str) -> None:
    create_pod(
        api,
        namespace,
        shell_pod(
            image,
            "trap 'exit 0' TERM; while :; do sleep 0.1; done",
            terminationGracePeriodSeconds=30,
        ),
    )
    wait_phase(api, namespace, "Running")
    path = PODS.path(namespace)
    version = api.get(path).ok()["metadata"]["resourceVersion"]
    with api.watch(path, resourceVersion=version) as watch:
        assert api.delete(f"{path}/pod").ok()["metadata"]["deletionGracePeriodSeconds"] == 30
        watch.next_matching(lambda frame: frame["object"]["metadata"].get("deletionTimestamp"))
        watch.next_matching(lambda frame: frame["type"] == "DELETED")
    api.get(f"{path}/pod").expect_refusal(404, "NotFound")


@pytest.mark.pods
def test_a_pod_that_nothing_can_hold_says_why_it_waits(
    api: Api, namespace: str, image: str
) -> None:
    container = {"resources": {"limits": {"nvidia.com/gpu": "4096"}}}
    create_pod(api, namespace, shell_pod(image, "exit 0", container=container))

    def find_refusal() -> Object | None:
        conditions = api.get(PODS.path(namespace, "pod")).ok()["status"].get("conditions", [])
        return next(
            (c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), None
        )

    condition = eventually(find_refusal)
    assert condition["reason"] == "Unschedulable"
    assert "nvidia.com/gpu" in condition["message"]


@pytest.fixture
def ready_node(api: Api) -> str:
    """A node that runs pods."""
    for node in api.get(NODES.path()).ok()["items"]:
        for condition in node["status"].get("conditions", ()):
            if (condition["type"], condition["status"]) == ("Ready", "True"):
                return str(node["metadata"]["name"])
    raise AssertionError("no node is ready")


@pytest.mark.pods
@pytest.mark.parametrize(
    ("container", "spec", "reason", "message"),
    [
        (
            {"resources": {"limits": {"cpu": "100000"}}},
            {},
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 100000000, used: ",
        ),
        (
            {},
            {"nodeSelector": {"conformance": "nowhere"}},
            "NodeAffinity",
            "Pod was rejected: Predicate NodeAffinity failed: ",
        ),
    ],
    ids=["processors", "selector"],
)
def test_a_node_rejects_a_pod_that_names_it_and_does_not_fit(
    api: Api,
    namespace: str,
    image: str,
    ready_node: str,
    container: Object,
    spec: Object,
    reason: str,
    message: str,
) -> None:
    made = shell_pod(image, "exit 0", container=container, nodeName=ready_node, **spec)
    create_pod(api, namespace, made)
    status = wait_phase(api, namespace, "Failed")["status"]
    assert status["reason"] == reason
    assert status["message"].startswith(message)


def test_the_quality_of_service_is_decided_once(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    path = PODS.path(namespace, "pod", "status")
    refusal = api.patch(path, {"status": {"qosClass": "Guaranteed"}}).expect_refusal(422, "Invalid")
    text = 'Invalid value: "Guaranteed": field is immutable'
    assert refusal["message"] == f'Pod "pod" is invalid: status.qosClass: {text}'
    assert refusal["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "message": text, "field": "status.qosClass"}
    ]
    same = {"status": {"qosClass": "BestEffort", "message": "here"}}
    assert api.patch(path, same).ok()["status"]["message"] == "here"


def test_a_status_without_the_quality_of_service_keeps_it(api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod())
    path = PODS.path(namespace, "pod", "status")
    patched = api.patch(path, {"status": {"qosClass": None, "message": "here"}}).ok()
    assert (patched["status"]["qosClass"], patched["status"]["message"]) == ("BestEffort", "here")
