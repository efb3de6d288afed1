"""What is said of a submission before it is accepted."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.errors import Clash, Invalid, Noncompliant
from environments.models import Policy
from tests.cast import Cast, a_spec
from workloads.judgement import judge_stored, judge_submission
from workloads.specs import Environment, Framework, Setup, Variable

pytestmark = pytest.mark.django_db


def test_a_submission_that_is_right_is_accepted_and_each_part_is_computed_once(cast: Cast) -> None:
    judged = judge_submission(a_spec(cast.team_a), cast.team_a)
    judged.require_acceptable()
    assert (judged.problems, judged.policy_issues, judged.refusals) == ((), (), ())
    assert judged.fit.text
    with CaptureQueriesContext(connection) as queries:
        judged.require_acceptable()
        assert judged.fit is judged.fit
        assert judged.pools is judged.pools
    assert len(queries) == 0


def test_problems_come_before_everything_else(cast: Cast) -> None:
    judged = judge_submission(replace(a_spec(cast.team_a), name="NOT A NAME"), cast.team_a)
    with pytest.raises(Invalid) as refused:
        judged.require_acceptable()
    assert [field for field, _ in refused.value.problems] == ["name"]
    assert judged.refusals == ()


def test_what_policies_set_is_in_the_spec_and_what_they_forbid_is_an_issue(cast: Cast) -> None:
    Policy.objects.create(
        name="tidy", rules={"grace_seconds": {"default": 60}, "workers": {"max": 1}}
    )
    judged = judge_submission(replace(a_spec(cast.team_a), workers=2), cast.team_a)
    assert judged.spec.lifecycle.grace_seconds == 60
    assert "60" in judged.note
    with pytest.raises(Noncompliant) as refused:
        judged.require_acceptable()
    assert [rule for _, _, rule in refused.value.issues] == ["workers.max"]


def test_what_was_accepted_is_judged_as_it_is(cast: Cast) -> None:
    Policy.objects.create(name="tidy", rules={"grace_seconds": {"default": 60, "required": True}})
    assert judge_submission(a_spec(cast.team_a), cast.team_a).policy_issues == ()
    stored = judge_stored(a_spec(cast.team_a), cast.team_a, cast.cluster)
    assert stored.spec.lifecycle.grace_seconds is None
    with pytest.raises(Noncompliant) as refused:
        stored.require_acceptable("It has changed since.")
    assert refused.value.text.startswith("It has changed since.")


def test_rules_that_came_since_do_not_hold_for_what_was_accepted(cast: Cast) -> None:
    spec = replace(a_spec(cast.team_a), name="NOT A NAME")
    judge_stored(spec, cast.team_a, cast.cluster).require_acceptable()


def test_what_ran_with_a_variable_that_trainer_overwrites_runs_again(cast: Cast) -> None:
    cluster = cast.team_a.cluster
    cluster.capabilities = {
        "served": ["trainer.kubeflow.org/v1alpha1/trainjobs"],
        "runtimes": [{"name": "xgboost", "framework": "xgboost", "scheduler": ""}],
        "trainjob_fields": ["runtimePatches"],
    }
    environment = Environment("train:1", variables=(Variable("DMLC_TASK_ID", "0"),))
    spec = a_spec(cast.team_a, framework=Framework.XGBOOST, setup=Setup(environment))
    judge_stored(spec, cast.team_a, cluster).require_acceptable()
    with pytest.raises(Invalid, match="DMLC_TASK_ID is set by Kubeflow Trainer"):
        judge_submission(spec, cast.team_a).require_acceptable()


def test_a_disabled_cluster_accepts_nothing(cast: Cast) -> None:
    cast.team_a.cluster.is_enabled = False
    with pytest.raises(Clash, match="disabled"):
        judge_submission(a_spec(cast.team_a), cast.team_a).require_acceptable()
