"""create, update, patch and scale: media types, options, and the codes of their answers."""

from typing import Any

import pytest

from tests.localkube.api_server import ApiServer, job, pod

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
PODS = "/api/v1/namespaces/team-a/pods"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def patch(api: ApiServer, path: str, body: Any, media: str, **headers: str) -> Any:
    return api.ask("PATCH", path, body, content_type=media, **headers)


def workers(body: Any) -> int:
    return int(body["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"])


def test_a_create_is_answered_with_201_and_the_object(api: ApiServer) -> None:
    answer = api.ask("POST", JOBS, job("a"))
    assert (answer.status, answer.json["metadata"]["generation"]) == (201, 1)


def test_a_post_to_the_name_of_a_custom_object_creates_it(api: ApiServer) -> None:
    assert api.ask("POST", f"{JOBS}/a", job("a")).status == 201
    assert api.ask("POST", f"{JOBS}/a", job("a")).json["reason"] == "AlreadyExists"


def test_a_dry_run_stores_nothing(api: ApiServer) -> None:
    assert api.ask("POST", f"{JOBS}?dryRun=All", job("dry")).status == 201
    assert api.get(f"{JOBS}/dry").status == 404


@pytest.mark.parametrize(
    "query",
    ["dryRun=Some", "fieldValidation=Mild", f"fieldManager={'m' * 129}", "fieldManager=a%07b"],
)
def test_options_that_make_no_sense_are_invalid(api: ApiServer, query: str) -> None:
    answer = api.ask("POST", f"{JOBS}?{query}", job("a"))
    assert (answer.status, answer.json["details"]["kind"]) == (422, "CreateOptions")


def test_unknown_fields_are_dropped_with_a_warning_each(api: ApiServer) -> None:
    body = job("warned")
    body["spec"] |= {"unknownField": 1, "other": {}}
    answer = api.ask("POST", JOBS, body)
    assert answer.status == 201
    assert answer.headers.get_all("warning") == [
        '299 - "unknown field \\"spec.other\\""',
        '299 - "unknown field \\"spec.unknownField\\""',
    ]


def test_strict_validation_refuses_them(api: ApiServer) -> None:
    body = job("strict")
    body["spec"]["unknownField"] = 1
    answer = api.ask("POST", f"{JOBS}?fieldValidation=Strict", body)
    assert answer.status == 400
    assert answer.json["message"] == (
        'PyTorchJob in version "v1" cannot be handled as a PyTorchJob: strict decoding error: '
        'unknown field "spec.unknownField"'
    )


def test_a_body_without_a_kind_will_do_for_built_in_kinds_only(api: ApiServer) -> None:
    assert api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}}).status == 201
    answer = api.ask("POST", JOBS, {"metadata": {"name": "x"}})
    assert answer.status == 400
    assert "Object 'Kind' is missing" in answer.json["message"]


def test_another_kind_is_invalid(api: ApiServer) -> None:
    answer = api.ask("POST", JOBS, job("wk") | {"kind": "TFJob"})
    assert answer.status == 422
    assert (
        answer.json["message"]
        == 'TFJob.kubeflow.org "wk" is invalid: kind: Invalid value: "TFJob": must be PyTorchJob'
    )


def test_a_put_with_a_stale_version_conflicts(api: ApiServer) -> None:
    first = api.ask("POST", JOBS, job("a")).json
    patch(api, f"{JOBS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    answer = api.ask("PUT", f"{JOBS}/a", first)
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")


def test_a_put_under_another_name_is_refused(api: ApiServer) -> None:
    body = api.ask("POST", JOBS, job("a")).json
    api.ask("POST", JOBS, job("b"))
    answer = api.ask("PUT", f"{JOBS}/b", body)
    assert answer.status == 400
    assert (
        answer.json["message"]
        == "the name of the object (a) does not match the name on the URL (b)"
    )


def test_a_merge_patch_removes_with_null(api: ApiServer) -> None:
    api.ask("POST", JOBS, job("a", labels={"x": "y"}))
    answer = patch(api, f"{JOBS}/a", {"metadata": {"labels": {"x": None, "z": "w"}}}, MERGE)
    assert (answer.status, answer.json["metadata"]["labels"]) == (200, {"z": "w"})


def test_a_json_patch_whose_test_fails_changes_nothing(api: ApiServer) -> None:
    api.ask("POST", JOBS, job("a"))
    path = "/spec/pytorchReplicaSpecs/Worker/replicas"
    changed = [
        {"op": "test", "path": path, "value": 3},
        {"op": "replace", "path": path, "value": 4},
    ]
    assert workers(patch(api, f"{JOBS}/a", changed, JSON_PATCH).json) == 4
    answer = patch(api, f"{JOBS}/a", changed, JSON_PATCH)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")


def test_a_strategic_patch_merges_containers_by_name(api: ApiServer) -> None:
    api.ask("POST", PODS, pod("p", "a", "b"))
    change = {"spec": {"containers": [{"name": "b", "image": "new:2"}]}}
    images = [
        each["image"]
        for each in patch(api, f"{PODS}/p", change, STRATEGIC).json["spec"]["containers"]
    ]
    assert images == ["train:1", "new:2"]


@pytest.mark.parametrize(
    ("path", "media"), [(JOBS, STRATEGIC), (JOBS, "application/json"), (PODS, "text/plain")]
)
def test_other_patches_are_refused_with_those_that_are_taken(
    api: ApiServer, path: str, media: str
) -> None:
    answer = patch(api, f"{path}/x", {"metadata": {}}, media)
    assert answer.status == 415
    custom = (
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert answer.json["message"].endswith(custom) is (path == JOBS)
    assert answer.json.get("details") == (None if path == JOBS else {})


def test_a_patch_of_what_is_not_there_is_a_404(api: ApiServer) -> None:
    assert patch(api, f"{JOBS}/nope", {}, MERGE).status == 404


@pytest.mark.parametrize("body", [b"{", b"[]", b"7"])
def test_a_merge_patch_that_is_no_object_is_refused(api: ApiServer, body: bytes) -> None:
    api.ask("POST", JOBS, job("a"))
    assert patch(api, f"{JOBS}/a", body, MERGE).status == 400


def test_an_apply_creates_and_then_changes(api: ApiServer) -> None:
    first = patch(api, f"{JOBS}/a?fieldManager=console", job("a"), APPLY)
    assert first.status == 201
    assert [
        (entry["manager"], entry["operation"]) for entry in first.json["metadata"]["managedFields"]
    ] == [("console", "Apply")]
    again = job("a", labels={"x": "y"})
    second = patch(api, f"{JOBS}/a?fieldManager=console", again, APPLY)
    assert (second.status, second.json["metadata"]["labels"]) == (200, {"x": "y"})
    assert len(second.json["metadata"]["managedFields"]) == 1


def test_an_apply_that_takes_what_another_owns_conflicts_unless_forced(api: ApiServer) -> None:
    patch(api, f"{JOBS}/a?fieldManager=console", job("a"), APPLY)
    wanted = job("a")
    wanted["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 5
    answer = patch(api, f"{JOBS}/a?fieldManager=other", wanted, APPLY)
    assert answer.status == 409
    assert answer.json["message"] == (
        'Apply failed with 1 conflict: conflict with "console": '
        ".spec.pytorchReplicaSpecs.Worker.replicas"
    )
    assert workers(patch(api, f"{JOBS}/a?fieldManager=other&force=true", wanted, APPLY).json) == 5


def test_a_manager_that_applies_nothing_any_more_owns_nothing(api: ApiServer) -> None:
    path = "/api/v1/namespaces/team-a/configmaps/owned"
    bare = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}}
    patch(api, f"{path}?fieldManager=console", bare | {"data": {"a": "1"}}, APPLY)
    emptied = patch(api, f"{path}?fieldManager=console", bare, APPLY)
    assert (emptied.status, "data" in emptied.json) == (200, False)
    assert "managedFields" not in emptied.json["metadata"]
    answer = patch(api, f"{path}?fieldManager=other", bare | {"data": {"a": "2"}}, APPLY)
    assert (answer.status, answer.json["data"]) == (200, {"a": "2"})


def test_an_apply_without_a_manager_is_invalid(api: ApiServer) -> None:
    answer = patch(api, f"{JOBS}/a", job("a"), APPLY)
    assert answer.status == 422
    assert answer.json["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
        "apply patch"
    )


def test_the_manager_is_the_user_agent_when_nobody_says(api: ApiServer) -> None:
    made = api.ask("POST", JOBS, job("a"), user_agent="kubectl/v1.32.4 (linux/amd64)").json
    assert made["metadata"]["managedFields"][0]["manager"] == "kubectl"


def test_a_status_patch_changes_the_status_alone(api: ApiServer) -> None:
    api.ask("POST", JOBS, job("a"))
    change = {
        "status": {"startTime": "2026-01-01T00:00:00Z"},
        "spec": {"runPolicy": {"suspend": True}},
    }
    body = patch(api, f"{JOBS}/a/status", change, MERGE).json
    assert body["status"] == {"startTime": "2026-01-01T00:00:00Z"}
    assert "suspend" not in body["spec"].get("runPolicy", {})


def test_scale_tells_and_sets_the_number_of_workers(api: ApiServer) -> None:
    api.ask("POST", JOBS, job("a"))
    scale = api.get(f"{JOBS}/a/scale").json
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == (
        "Scale",
        "autoscaling/v1",
        {"replicas": 3},
    )
    scale["spec"]["replicas"] = 5
    assert api.ask("PUT", f"{JOBS}/a/scale", scale).json["spec"] == {"replicas": 5}
    assert api.ask("PUT", f"{JOBS}/a/scale", scale).json["reason"] == "Conflict"
    patch(api, f"{JOBS}/a/scale", {"spec": {"replicas": 7}}, MERGE)
    assert workers(api.get(f"{JOBS}/a").json) == 7


@pytest.mark.parametrize(
    ("replicas", "code", "text"),
    [
        (-1, 422, "Invalid value: -1: must be greater than or equal to 0"),
        ("three", 400, 'spec.replicas is "three", which is no number of type int32'),
        (True, 400, "spec.replicas is true, which"),
        (2**40, 400, "spec.replicas is 1099511627776, which"),
    ],
)
def test_a_number_of_workers_that_is_none_is_refused(
    api: ApiServer, replicas: object, code: int, text: str
) -> None:
    api.ask("POST", JOBS, job("a"))
    answer = patch(api, f"{JOBS}/a/scale", {"spec": {"replicas": replicas}}, MERGE)
    assert (answer.status, text in answer.json["message"]) == (code, True)


def test_a_write_whose_answer_nobody_could_read_is_not_done(api: ApiServer) -> None:
    assert api.ask("POST", JOBS, job("a"), accept="application/xml").status == 406
    assert api.get(f"{JOBS}/a").status == 404


def test_finalizing_a_namespace_lets_it_go(api: ApiServer) -> None:
    namespace = api.ask("DELETE", "/api/v1/namespaces/team-a").json
    assert namespace["status"]["phase"] == "Terminating"
    namespace["spec"]["finalizers"] = []
    assert api.ask("PUT", "/api/v1/namespaces/team-a/finalize", namespace).status == 200
    assert api.get("/api/v1/namespaces/team-a").status == 404
