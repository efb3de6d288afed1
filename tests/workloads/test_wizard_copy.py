"""Make a copy: the wizard filled in with a workload's values."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.api.submission_bodies import body_of
from tests.cast import Cast, a_spec
from tests.workloads.spec_strategies import ANY_SPEC
from tests.workloads.submissions import one_pod
from tests.workloads.test_wizard_forms import SETUPS
from tests.workloads.wizarding import Walk, key_of
from workloads import actions
from workloads.forms.steps import Step
from workloads.forms.wizard_draft import WizardDraft
from workloads.forms.workload_copies import build_draft_data
from workloads.models import Workload
from workloads.specs import (
    Architecture,
    Compute,
    ElasticSettings,
    Environment,
    Gpus,
    Lifecycle,
    MasterChanges,
    Preemptibility,
    Priority,
    Setup,
    Spec,
    decode_spec,
)

pytestmark = pytest.mark.django_db


def submit_copy(cast: Cast, spec: Spec) -> Spec:
    """What comes out when a copy is made and nothing is changed."""
    workload = actions.submit(spec, project=cast.team_a, user=cast.bob)
    walk = Walk(cast, query=f"?copy={workload.pk}")
    while walk.step != "review":
        assert walk.page.status_code == 200
        walk.send()
    walk.send()
    return decode_spec(Workload.objects.exclude(pk=workload.pk).get().spec)


@pytest.mark.parametrize("name", SETUPS)
def test_a_copy_is_equal_but_for_its_name(cast: Cast, name: str) -> None:
    spec = a_spec(cast.team_a, setup=SETUPS[name])
    expected_spec = replace(spec, name="train1-2")
    found = submit_copy(cast, spec)
    assert replace(found, lifecycle=Lifecycle()) == expected_spec
    assert found.is_preemptible


def test_a_copy_has_the_masters_changes_and_the_rest(cast: Cast) -> None:
    master = MasterChanges(gpus=Gpus(0), command=("lead",))
    spec = a_spec(
        cast.team_a,
        elastic=ElasticSettings(1, 4),
        master=master,
        lifecycle=Lifecycle(priority=Priority.HIGH, backoff_limit=3),
    )
    found = submit_copy(cast, spec)
    assert (found.master, found.elastic, found.workers) == (spec.master, spec.elastic, 2)
    assert (found.lifecycle.priority, found.lifecycle.backoff_limit) == (Priority.HIGH, 3)


@given(ANY_SPEC)
@settings(max_examples=100)
def test_a_draft_of_any_spec_asks_for_the_same(cast: Cast, spec: Spec) -> None:
    chosen = replace(
        spec.lifecycle,
        # The form always says whether, and lets nobody wait longer.
        preemptibility=Preemptibility.PREEMPTIBLE
        if spec.is_preemptible
        else Preemptibility.NON_PREEMPTIBLE,
        grace_seconds=None
        if spec.lifecycle.grace_seconds is None
        else spec.lifecycle.grace_seconds % 301,
    )
    spec = replace(
        spec,
        project="team-a",
        namespace=cast.team_a.namespace,
        queue="team-a",
        lifecycle=chosen,
    )
    filling = WizardDraft(build_draft_data(spec, project=cast.team_a, name=spec.name), cast.bob)
    assert filling.find_invalid_step(Step.REVIEW) is None
    found = filling.build_spec()
    assert body_of(replace(found, master=spec.master)) == body_of(spec)
    masters = [replace(one_pod(), setup=each.master_setup) for each in (found, spec)]
    assert body_of(masters[0]) == body_of(masters[1])


def test_a_copy_of_non_preemptible_work_stays_so(cast: Cast) -> None:
    spec = a_spec(cast.team_a, lifecycle=Lifecycle(priority=Priority.HIGH))
    assert not spec.is_preemptible
    assert not submit_copy(cast, spec).is_preemptible


def test_a_copy_of_a_standard_workload(cast: Cast) -> None:
    spec = a_spec(
        cast.team_a,
        architecture=Architecture.STANDARD,
        framework=None,
        workers=1,
        runs=4,
        parallelism=2,
    )
    found = submit_copy(cast, spec)
    assert (found.architecture, found.runs, found.parallelism) == (Architecture.STANDARD, 4, 2)


def test_assets_of_the_same_values_are_chosen(cast: Cast) -> None:
    workload = actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    walk = Walk(cast, query=f"?copy={workload.pk}")
    setup = walk.draft.data["setup"]
    assert setup["environment_choice"] == [key_of("allreduce")]
    assert setup["compute_choice"] == [key_of("small-fraction")]


def test_own_values_are_kept_where_no_asset_has_them(cast: Cast) -> None:
    setup = Setup(Environment("mine/own"), Compute(cpu_request="3"))
    workload = actions.submit(a_spec(cast.team_a, setup=setup), project=cast.team_a, user=cast.bob)
    typed = Walk(cast, query=f"?copy={workload.pk}").draft.data["setup"]
    assert (typed["environment_choice"], typed["image"], typed["cpu_request"]) == (
        ["custom"],
        ["mine/own"],
        ["3"],
    )


def test_a_viewer_of_the_project_copies_into_their_own(cast: Cast) -> None:
    cast.mallory.access_rules.create(project=cast.team_a, role="viewer")
    workload = actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    typed = Walk(cast, "mallory", query=f"?copy={workload.pk}").draft.data["start"]
    assert (typed["project"], typed["name"]) == ([str(cast.team_b.pk)], ["train1"])


@pytest.mark.parametrize(
    "query", ["?copy=no-id", "?copy=00000000-0000-0000-0000-000000000000", "?copy="]
)
def test_a_copy_of_nothing_is_not_there(cast: Cast, query: str) -> None:
    assert Walk(cast, query=query).page.status_code == 404


def test_what_another_version_submitted_is_refused_in_words(cast: Cast) -> None:
    workload = Workload.objects.create(
        project=cast.team_a, cluster=cast.cluster, name="old", spec={"version": 0}
    )
    walk = Walk(cast, query=f"?copy={workload.pk}")
    assert walk.page.status_code == 422
    assert "was submitted by another version of Muster" in walk.text


def test_a_workload_of_another_team_cannot_be_copied(cast: Cast) -> None:
    workload = actions.submit(a_spec(cast.team_b), project=cast.team_b, user=cast.alice)
    assert Walk(cast, query=f"?copy={workload.pk}").page.status_code == 404
