"""Policies over REST: what they forbid is refused with the rule, what they set is there, and they
are read and written themselves.
"""

from typing import Any

import pytest

from console.errors import Noncompliant
from environments.models import ComputeResource, Environment, Policy
from projects.models import AuditEntry
from tests.api.calling import Caller, a_body
from tests.cast import Cast
from workloads import actions
from workloads.models import Workload
from workloads.specs import decode_spec

pytestmark = pytest.mark.django_db
DISTRIBUTED, STANDARD = "/workloads/distributed", "/workloads/trainings"


class V2(Caller):
    """The second version of the API."""

    root = "/api/v2"


def policy(cast: Cast, name: str = "small-teams", **rules: Any) -> Policy:
    made: Policy = Policy.objects.create(
        name=name,
        department=cast.research,
        rules={key.replace("__", "."): rule for key, rule in rules.items()},
    )
    return made


def test_what_policies_forbid_is_refused_with_every_field_and_rule(cast: Cast) -> None:
    policy(cast, workers={"max": 4}, image={"options": ["registry.example.com/*"]})
    refusal = Caller(cast.bob)("POST", DISTRIBUTED, a_body(cast, numWorkers=9), 400)
    assert refusal["complianceIssues"] == [
        {
            "field": "spec.numWorkers",
            "details": "Workers must be at most 4 (policy small-teams of department research).",
            "rule": "workers.max",
        },
        {
            "field": "spec.image",
            "details": (
                "Image must be registry.example.com/* (policy small-teams of department research)."
            ),
            "rule": "image.options",
        },
    ]
    assert [each["field"] for each in refusal["details"]] == ["spec.numWorkers", "spec.image"]
    assert not Workload.objects.exists()


def test_defaults_are_set_where_the_body_says_nothing_and_only_there(cast: Cast) -> None:
    policy(
        cast,
        workers={"default": 3},
        backoff_limit={"default": 1},
        gpus__devices={"default": 1},
        large_shm={"default": True, "locked": True},
    )
    body = a_body(cast)
    del body["spec"]["numWorkers"]
    answer = Caller(cast.bob)("POST", DISTRIBUTED, body, 202)
    spec = decode_spec(Workload.objects.get(pk=answer["workloadId"]).spec)
    assert (
        spec.workers,
        spec.lifecycle.backoff_limit,
        spec.setup.compute.gpus.devices,
        spec.setup.compute.large_shm,
    ) == (3, 1, 1, True)
    answer = Caller(cast.bob)(
        "POST",
        DISTRIBUTED,
        a_body(cast, "train2", numWorkers=1, backoffLimit=6, compute={"gpuDevicesRequest": 0}),
        202,
    )
    spec = decode_spec(Workload.objects.get(pk=answer["workloadId"]).spec)
    assert (spec.workers, spec.lifecycle.backoff_limit, spec.setup.compute.gpus.devices) == (
        1,
        6,
        0,
    )


def test_a_locked_value_is_refused_when_said_otherwise(cast: Cast) -> None:
    policy(cast, host_network={"default": False, "locked": True})
    refusal = Caller(cast.bob)(
        "POST", DISTRIBUTED, a_body(cast, security={"hostNetwork": True}), 400
    )
    assert refusal["complianceIssues"][0]["rule"] == "host_network.locked"
    assert refusal["complianceIssues"][0]["field"] == "spec.security.hostNetwork"


def test_the_master_is_held_to_the_rules_by_its_own_names(cast: Cast) -> None:
    policy(cast, cpu_request={"max": "2"})
    body = a_body(cast, compute={"cpuCoreRequest": 1}) | {
        "masterSpec": {"image": "muster/allreduce", "compute": {"cpuCoreRequest": 3}}
    }
    refusal = Caller(cast.bob)("POST", DISTRIBUTED, body, 400)
    assert [each["field"] for each in refusal["complianceIssues"]] == [
        "masterSpec.compute.cpuCoreRequest"
    ]


def test_an_image_that_a_policy_sets_need_not_be_given(cast: Cast) -> None:
    policy(cast, image={"default": "registry.example.com/base:1"})
    body = a_body(cast)
    del body["spec"]["image"]
    Caller(cast.bob)("POST", DISTRIBUTED, body, 202)
    assert (
        decode_spec(Workload.objects.get().spec).setup.environment.image
        == "registry.example.com/base:1"
    )


def test_a_policy_for_distributed_workloads_says_nothing_of_others(cast: Cast) -> None:
    Policy.objects.create(
        name="d",
        architecture="Distributed",
        rules={"image": {"options": ["registry.example.com/*"]}},
    )
    bob = Caller(cast.bob)
    bob("POST", STANDARD, a_body(cast) | {"spec": {"image": "python:3.12"}}, 202)
    bob("POST", DISTRIBUTED, a_body(cast, "train2"), 400)


def test_an_older_workload_is_judged_anew_when_it_is_run(cast: Cast) -> None:
    workload = Workload.objects.get(
        pk=Caller(cast.bob)("POST", DISTRIBUTED, a_body(cast), 202)["workloadId"]
    )
    policy(cast, workers={"max": 1})
    with pytest.raises(Noncompliant) as refused:
        actions.run(workload, cast.bob)
    assert refused.value.text.startswith(
        "train1 cannot run again as it is, for policies have changed. Make a copy of it. Workers "
        "must be at most 1"
    )
    answer = Caller(cast.bob)("POST", f"{DISTRIBUTED}/{workload.pk}/resume", status=400)
    assert answer["complianceIssues"][0]["rule"] == "workers.max"
    assert answer["message"].startswith("train1 cannot run again as it is")


def test_gpus_by_another_name_are_refused_and_no_older_workload_runs_again_with_them(
    cast: Cast,
) -> None:
    compute = {"extendedResources": [{"resource": "nvidia.com/mig-7g.80gb", "quantity": "8"}]}
    before = Caller(cast.bob)("POST", DISTRIBUTED, a_body(cast, compute=compute), 202)
    policy(cast, gpus__devices={"max": 0})
    [issue] = Caller(cast.bob)("POST", DISTRIBUTED, a_body(cast, "train2", compute=compute), 400)[
        "complianceIssues"
    ]
    assert (issue["field"], issue["rule"]) == (
        "spec.compute.extendedResources.0.resource",
        "gpus.devices.max",
    )
    assert issue["details"].startswith("nvidia.com/mig-7g.80gb cannot be asked for here")
    with pytest.raises(Noncompliant, match=r"nvidia\.com/mig-7g\.80gb cannot be asked for here"):
        actions.run(Workload.objects.get(pk=before["workloadId"]), cast.bob)


def _v2(cast: Cast, **rules: Any) -> dict[str, Any]:
    return {"meta": {"scope": "project", "projectId": str(cast.team_b.pk)}, "policy": rules}


def test_a_policy_is_written_read_and_deleted_by_the_names_of_their_api(cast: Cast) -> None:
    mallory, where = V2(cast.mallory), f"?scope=project&projectId={cast.team_b.pk}"
    mallory("GET", f"/policy/distributed{where}", status=404)
    rules = {
        "numWorkers": {"min": 1, "max": 4},
        "worker": {
            "image": {"options": [{"value": "registry.example.com/*"}]},
            "imagePullPolicy": {"canEdit": False},
        },
    }
    body = _v2(
        cast,
        defaults={
            "worker": {
                "imagePullPolicy": "Always",
                "environmentVariables": {"instances": [{"name": "A", "value": "1"}]},
            }
        },
        rules=rules,
    )
    answer = mallory("PUT", "/policy/distributed", body)
    assert answer["policy"] == body["policy"] | {"rules": rules}
    assert answer["effective"]["rules"] == rules
    row = Policy.objects.get()
    assert (row.name, row.project, row.architecture, row.created_by) == (
        "distributed",
        cast.team_b,
        "Distributed",
        cast.mallory,
    )
    assert row.rules["pull_policy"] == {"default": "Always", "locked": True}
    mallory("PUT", "/policy/distributed", _v2(cast, rules={"numWorkers": {"max": 2}}))
    assert mallory("GET", f"/policy/distributed{where}")["policy"]["rules"] == {
        "numWorkers": {"max": 2}
    }
    mallory("DELETE", f"/policy/distributed{where}", status=202)
    assert not Policy.objects.exists()
    assert list(
        AuditEntry.objects.filter(entity="policy").order_by("pk").values_list("event", flat=True)
    ) == ["create", "update", "delete"]


@pytest.mark.parametrize("architecture", ["Standard", ""])
@pytest.mark.parametrize("query", ["", "?validateOnly=true"])
def test_a_policy_of_that_name_for_other_workloads_is_left_as_it_is(
    cast: Cast, architecture: str, query: str
) -> None:
    rules = {"image": {"options": ["registry.example.com/*"]}}
    other = Policy.objects.create(
        name="distributed", project=cast.team_b, architecture=architecture, rules=rules
    )
    refusal = V2(cast.mallory)(
        "PUT", f"/policy/distributed{query}", _v2(cast, rules={"numWorkers": {"max": 2}}), 409
    )
    whose = "standard workloads only" if architecture else "all workloads"
    assert refusal["message"].startswith(
        f"The policy distributed of this scope is for {whose}, and not for distributed ones."
    )
    assert f"/api/v1/asset/policies/{other.pk}" in refusal["message"]
    before = other.version, other.architecture, other.rules
    other.refresh_from_db()
    assert (other.version, other.architecture, other.rules) == before
    assert Policy.objects.count() == 1


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_a_rule_that_their_api_has_no_word_for_stays(cast: Cast, method: str) -> None:
    rules = {"volumes": {"options": ["pvc"]}, "workers": {"max": 4}}
    Policy.objects.create(name="distributed", architecture="Distributed", rules=rules)
    body = {"policy": {"rules": {"numWorkers": {"max": 8}}}}
    answer = V2(cast.alice)(method, "/policy/distributed?scope=tenant", body)
    assert answer["policy"]["rules"] == {"numWorkers": {"max": 8}}
    assert Policy.objects.get().rules == rules | {"workers": {"max": 8}}


def test_validate_only_writes_nothing(cast: Cast) -> None:
    V2(cast.mallory)(
        "PUT", "/policy/trainings?validateOnly=true", _v2(cast, rules={"completions": {"max": 3}})
    )
    assert not Policy.objects.exists()


def test_validate_only_says_what_would_hold(cast: Cast) -> None:
    Policy.objects.create(name="wide", rules={"runs": {"min": 2}})
    v2, old = V2(cast.mallory), _v2(cast, rules={"completions": {"max": 5}})
    v2("PUT", "/policy/trainings", old)
    new = _v2(cast, rules={"completions": {"max": 3}})
    for method in ("PUT", "PATCH"):
        answer = v2(method, "/policy/trainings?validateOnly=true", new)
        assert answer["policy"]["rules"]["completions"] == {"max": 3}
        assert answer["effective"]["rules"]["completions"] == {"min": 2, "max": 3}
        assert answer["meta"]["projectId"] == str(cast.team_b.pk)
    saved = v2("PUT", "/policy/trainings", new)
    assert saved["effective"] == answer["effective"]


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        (
            {"rules": {"numWorkers": {"min": 5, "max": 2}}},
            "policy.rules.numWorkers.min",
            "must not be above the maximum",
        ),
        ({"rules": {"nope": {"max": 2}}}, "policy.rules.nope", "not a field"),
        (
            {"rules": {"worker": {"image": {"options": []}}}},
            "policy.rules.worker.image.options",
            "list of 1 to 200",
        ),
        (
            {"rules": {"worker": {"compute": {"cpuCoreLimit": {"max": "much"}}}}},
            "policy.rules.worker.compute.cpuCoreLimit.max",
            "quantity",
        ),
        (
            {"defaults": {"numWorkers": 9}, "rules": {"numWorkers": {"max": 2}}},
            "policy.defaults.numWorkers",
            "by this very rule",
        ),
        ({"imposedAssets": ["x"]}, "policy.imposedAssets", "not supported"),
        (
            {"rules": {"master": {"image": {"required": True}}}},
            "policy.rules.master",
            "not a field",
        ),
    ],
)
def test_a_policy_that_cannot_be_is_refused_where_it_is_wrong(
    cast: Cast, given: dict[str, Any], field: str, words: str
) -> None:
    refusal = V2(cast.mallory)("PUT", "/policy/distributed", _v2(cast, **given), 400)
    assert refusal["details"][0]["field"] == field
    assert words in refusal["details"][0]["message"]
    assert not Policy.objects.exists()


def test_who_may_not_write_a_policy_is_refused_and_who_may_not_see_it_gets_404(cast: Cast) -> None:
    body = _v2(cast, rules={"numWorkers": {"max": 2}})
    V2(cast.bob)("PUT", "/policy/distributed", body, 403)
    body["meta"]["projectId"] = str(cast.team_a.pk)
    V2(cast.mallory)("PUT", "/policy/distributed", body, 404)
    V2(cast.alice)("PUT", "/policy/distributed", body)
    where = f"?scope=project&projectId={cast.team_a.pk}"
    assert V2(cast.vera)("GET", f"/policy/distributed{where}")["policy"]["rules"]
    V2(cast.mallory)("GET", f"/policy/distributed{where}", status=404)
    V2(cast.vera)("DELETE", f"/policy/distributed{where}", status=403)
    V2(cast.alice)(
        "PUT",
        "/policy/distributed",
        {"meta": {"scope": "project", "projectId": "999999"}, "policy": {}},
        404,
    )


def test_policies_are_assets_of_the_api_as_well(cast: Cast) -> None:
    mallory = Caller(cast.mallory)
    meta = {"name": "own", "scope": "project", "projectId": str(cast.team_b.pk)}
    rules = {
        "workers": {"max": 4},
        "volumes": {"options": ["pvc"]},
        "host_network": {"default": False, "locked": True},
    }
    made = mallory("POST", "/asset/policies", {"meta": meta, "spec": {"rules": rules}}, 202)
    row = Policy.objects.get()
    assert row.rules == rules
    assert made["spec"]["rules"] == rules
    refusal = mallory(
        "POST",
        "/asset/policies",
        {"meta": meta | {"name": "other"}, "spec": {"rules": {"workers": {"min": 9, "max": 4}}}},
        400,
    )
    assert refusal["details"][0]["field"] == "spec.rules.workers.min"
    refusal = mallory(
        "POST",
        "/asset/policies",
        {"meta": meta | {"name": "other"}, "spec": {"rules": {"nope": {}}}},
        400,
    )
    assert "not a field that a policy can speak of" in refusal["message"]
    mallory("PATCH", f"/asset/policies/{row.pk}", {"spec": {"rules": {}}}, 202)
    row.refresh_from_db()
    assert row.rules == {}


def test_a_limit_of_zero_is_kept_and_holds(cast: Cast) -> None:
    rules = {"gpus.devices": {"max": 0}, "backoff_limit": {"default": 0, "min": 0}}
    alice = Caller(cast.alice)
    body = {"meta": {"name": "no-gpus", "scope": "tenant"}, "spec": {"rules": rules}}
    made = alice("POST", "/asset/policies", body, 202)
    assert made["spec"]["rules"] == rules
    changed = {"meta": {"description": "x"}}
    alice("PATCH", f"/asset/policies/{made['meta']['id']}", changed, 202)
    assert Policy.objects.get().rules == rules
    one_gpu = a_body(cast, compute={"gpuDevicesRequest": 1})
    refused = Caller(cast.bob)("POST", DISTRIBUTED, one_gpu, 400)
    assert refused["complianceIssues"][0]["rule"] == "gpus.devices.max"


def test_a_list_of_assets_says_which_a_project_s_policies_allow(cast: Cast) -> None:
    policy(cast, image={"options": ["registry.example.com/*"]}, gpus__devices={"max": 1})
    for name, image in (("good", "registry.example.com/a"), ("bad", "docker.example.com/a")):
        Environment.objects.create(name=name, image=image, architecture="Distributed")
    ComputeResource.objects.create(name="big", gpu_devices=8)
    bob = Caller(cast.bob)
    compliance = {
        each["meta"]["name"]: each["compliance"]
        for each in bob("GET", f"/asset/environment?complyToProject={cast.team_a.pk}")["entries"]
    }
    assert compliance["good"] == {"status": "Compliant", "issues": []}
    assert compliance["bad"]["status"] == "NonCompliant"
    assert compliance["bad"]["issues"][0]["rule"] == "image.options"
    [big] = bob(
        "GET",
        f"/asset/compute?complyToProject={cast.team_a.pk}&complyToWorkloadType=training&name=big",
    )["entries"]
    assert big["compliance"]["issues"][0]["rule"] == "gpus.devices.max"
    assert "compliance" not in bob("GET", "/asset/environment")["entries"][0]
    bob("GET", f"/asset/environment?complyToProject={cast.team_b.pk}", status=400)
