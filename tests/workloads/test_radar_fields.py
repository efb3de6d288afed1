"""The radar's fields, from what is typed or sent to what is checked, ruled and described."""

import json
import re
import shlex
from typing import Any

import pytest

from environments.models import Policy
from tests.api.calling import Caller, a_body
from tests.api.submission_bodies import HERE, TUTORIAL, parse_distributed, refusal
from tests.cast import Cast, a_spec
from tests.workloads.submissions import one_pod, train1
from tests.workloads.templated import (
    fill_wizard,
    save_template,
    start_from_template,
    submit_and_decode,
)
from tests.workloads.wizarding import Walk, form_of
from workloads import actions
from workloads.forms import template_locks
from workloads.forms.steps import Step
from workloads.forms.wizard_draft import WizardDraft
from workloads.judgement import judge_submission
from workloads.manifests import build_objects
from workloads.models import Draft, Workload
from workloads.rest.submit_command import build_submit_command
from workloads.rest.writing import build_rest_body
from workloads.specs import (
    Framework,
    Radar,
    Spec,
    decode_spec,
    encode_spec,
    find_problems,
)
from workloads.specs.building import build_part
from workloads.views.describing import describe_spec

FULL = Radar(False, 300, 200, 3600, True)
BODY: dict[str, Any] = {
    "radar": False,
    "radarHangSeconds": 300,
    "radarStragglerPercent": 200,
    "radarStopAfterHangSeconds": 3600,
    "radarRestartWithoutFaultyNode": True,
}
TYPED = {
    "radar": "no",
    "hang_seconds": "300",
    "straggler_percent": "200",
    "stop_after_hang_seconds": "3600",
    "restarts_without_faulty_node": "on",
}
LOCKED = {"canEdit": False}
RANGES = [
    ("hang_seconds", "radarHangSeconds", 30, 86_400),
    ("straggler_percent", "radarStragglerPercent", 110, 1000),
    ("stop_after_hang_seconds", "radarStopAfterHangSeconds", 60, 30 * 86_400),
]


class V2(Caller):
    """The version of the API that has policies."""

    root = "/api/v2"


def write_body(spec: Spec) -> dict[str, Any]:
    """Return what a body says of the radar."""
    written = build_rest_body(spec, project_id="1", cluster_id="c")["spec"]
    return {name: value for name, value in written.items() if name.startswith("radar")}


def list_facts(spec: Spec) -> dict[str, tuple[str, ...]]:
    """Return the facts of the radar in Details."""
    sections = {section.title: section.facts for section in describe_spec(spec)}
    return {fact.name: fact.values for fact in sections.get("Radar", ())}


@pytest.mark.parametrize(("name", "rest", "least", "most"), RANGES)
def test_a_number_out_of_range_is_refused_at_its_field(
    name: str, rest: str, least: int, most: int
) -> None:
    for number in (least, most):
        assert find_problems(train1(radar=build_part(Radar, {name: number}))) == ()
    for number in (least - 1, most + 1, 0, -1):
        radar = build_part(Radar, {name: number})
        for spec in (train1(radar=radar), one_pod(radar=radar)):
            [problem] = find_problems(spec)
            assert problem.field == f"radar.{name}"
            assert problem.text.endswith(f"must be a whole number from {least:,} to {most:,}.")
    places = parse_distributed(**{rest: least}).places
    assert places.find_place(f"radar.{name}") == f"spec.{rest}"


@pytest.mark.parametrize("framework", [None, *Framework])
def test_nothing_of_it_goes_into_a_manifest(framework: Framework | None) -> None:
    if framework is None:
        without, spec = one_pod(), one_pod(radar=FULL)
    else:
        chosen = {"framework": framework, "configuration": framework.configurations[0]}
        without, spec = train1(**chosen), train1(**chosen, radar=FULL)
    assert find_problems(spec) == ()
    assert build_objects(spec, workload_id="w") == build_objects(without, workload_id="w")


def test_it_is_stored_and_specs_from_before_it_are_watched() -> None:
    spec = train1(radar=FULL)
    stored = json.loads(json.dumps(encode_spec(spec)))
    assert decode_spec(stored) == spec
    assert stored.pop("radar") == {
        "is_on": False,
        "hang_seconds": 300,
        "straggler_percent": 200,
        "stop_after_hang_seconds": 3600,
        "restarts_without_faulty_node": True,
    }
    assert decode_spec(stored).radar == Radar()
    assert Radar().is_on
    assert "radar" not in encode_spec(train1())


def test_it_is_sent_and_read_back() -> None:
    spec = parse_distributed(**BODY).build_spec(HERE)
    assert spec.radar == FULL
    assert write_body(spec) == BODY


def test_what_is_usual_is_not_written() -> None:
    spec = parse_distributed(radar=True, radarRestartWithoutFaultyNode=False).build_spec(HERE)
    assert spec.radar == parse_distributed().build_spec(HERE).radar == Radar()
    assert write_body(spec) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("radar", "yes"), ("radar", 1), ("radarHangSeconds", "60"), ("radarStragglerPercent", 1.5)],
)
def test_a_body_is_refused_at_its_place(name: str, value: Any) -> None:
    body = TUTORIAL | {"spec": TUTORIAL["spec"] | {name: value}}
    assert list(refusal(body)) == [f"spec.{name}"]


@pytest.mark.django_db
def test_it_is_submitted_and_refused_over_rest(cast: Cast) -> None:
    bob = Caller(cast.bob)
    refused = bob("POST", "/workloads/distributed", a_body(cast, radarHangSeconds=5), 400)
    assert [each["field"] for each in refused["details"]] == ["spec.radarHangSeconds"]
    bob("POST", "/workloads/distributed", a_body(cast, **BODY), 202)
    workload = Workload.objects.get()
    assert decode_spec(workload.spec).radar == FULL
    answer = bob("GET", f"/workloads/distributed/{workload.pk}")
    assert {name: answer["spec"][name] for name in BODY} == BODY


def test_the_command_line_says_it_with_flags() -> None:
    words = shlex.split(build_submit_command(train1(radar=FULL), "team-a"))
    assert {"--no-radar", "--radar-restart-without-faulty-node"} <= set(words)
    for flag, value in (
        ("--radar-hang-seconds", "300"),
        ("--radar-straggler-percent", "200"),
        ("--radar-stop-after-hang-seconds", "3600"),
    ):
        assert words[words.index(flag) + 1] == value
    assert "-f" not in words
    assert "radar" not in build_submit_command(train1(), "team-a")


def test_details_say_what_is_not_usual() -> None:
    assert list_facts(train1()) == {}
    assert list_facts(one_pod(radar=FULL)) == {
        "Watched for trouble": ("no",),
        "Called a hang": ("after 300 s of silence",),
        "Called slow": ("a rank from 200 % of the median step",),
        "Stopped when it hangs": ("after 3600 s",),
        "Run again without a faulty node": ("yes",),
    }


@pytest.mark.django_db
def test_it_is_typed_and_copied(cast: Cast) -> None:
    walk = fill_wizard(cast, "bob", **TYPED)
    assert "<dt>Watched for trouble</dt><dd>no</dd>" in walk.text
    assert submit_and_decode(walk).radar == FULL
    copied = Walk(cast, query=f"?copy={Workload.objects.get().pk}").see("setup")
    assert {name: form_of(copied.page)[name] for name in TYPED} == {
        name: [value] for name, value in TYPED.items()
    }
    assert re.search(r'<details[^>]*id="radar"\s+open>', copied.text)


@pytest.mark.django_db
def test_it_is_watched_where_nothing_is_typed(cast: Cast) -> None:
    walk = Walk(cast).send_start()
    assert re.search(r'<details[^>]*id="radar"\s*>', walk.text)
    assert submit_and_decode(walk.send_setup()).radar == Radar()


@pytest.mark.django_db
def test_a_draft_from_before_it_is_watched(cast: Cast) -> None:
    walk = fill_wizard(cast, "bob")
    draft = Draft.objects.get(pk=walk.draft.pk)
    for name in TYPED:
        draft.data["setup"].pop(name, None)
    draft.save()
    assert submit_and_decode(walk.see("setup")).radar == Radar()


@pytest.mark.django_db
def test_what_is_wrong_stands_at_its_field_and_is_kept(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup(**TYPED | {"hang_seconds": "29"})
    assert walk.page.status_code == 422
    assert "The silence in seconds that is called a hang must be a whole number" in walk.text
    assert 'id="id_hang_seconds_error"' in walk.text
    sent = form_of(walk.page)
    assert {name: sent[name] for name in TYPED} == {
        name: [value] for name, value in (TYPED | {"hang_seconds": "29"}).items()
    }
    assert walk.send(hang_seconds="30").step == "master"
    assert submit_and_decode(walk).radar == Radar(False, 30, 200, 3600, True)


@pytest.mark.django_db
def test_policies_preset_it_and_what_is_chosen_stays(cast: Cast) -> None:
    rules = {"radar.is_on": {"default": False}, "radar.stop_after_hang_seconds": {"default": 600}}
    Policy.objects.create(name="p", rules=rules)
    walk = Walk(cast).send_start()
    sent = form_of(walk.page)
    assert (sent["radar"], sent["stop_after_hang_seconds"]) == (["no"], ["600"])
    assert submit_and_decode(walk.send_setup(radar="")).radar == Radar(stop_after_hang_seconds=600)
    bob = Caller(cast.bob)
    for name, given, is_on in (("a1", {}, False), ("a2", {"radar": True}, True)):
        bob("POST", "/workloads/distributed", a_body(cast, name, **given), 202)
        radar = decode_spec(Workload.objects.get(name=name).spec).radar
        assert radar == Radar(is_on, stop_after_hang_seconds=600)


@pytest.mark.django_db
def test_a_policy_can_lock_it(cast: Cast) -> None:
    rules = {
        "radar.is_on": {"default": True, "locked": True},
        "radar.restarts_without_faulty_node": {"default": True, "locked": True},
    }
    Policy.objects.create(name="p", rules=rules)
    walk = Walk(cast).send_start()
    assert re.search(r'<select name="radar"[^>]* disabled', walk.text)
    assert "Locked at yes by policy p." in walk.text
    found = submit_and_decode(walk.send_setup(radar="no")).radar
    assert found == Radar(restarts_without_faulty_node=True)
    refused = Caller(cast.bob)("POST", "/workloads/distributed", a_body(cast, radar=False), 400)
    assert [(each["field"], each["rule"]) for each in refused["complianceIssues"]] == [
        ("spec.radar", "radar.is_on.locked")
    ]


@pytest.mark.django_db
def test_a_policy_limits_how_long_it_may_hang(cast: Cast) -> None:
    Policy.objects.create(name="p", rules={"radar.stop_after_hang_seconds": {"max": 600}})
    [issue] = judge_submission(a_spec(cast.team_a), cast.team_a).policy_issues
    assert issue.field == "radar.stop_after_hang_seconds"
    walk = Walk(cast).send_start().send_setup(stop_after_hang_seconds="601")
    assert walk.page.status_code == 422
    assert "Stop when it hangs, after seconds must be at most 600" in walk.text
    assert walk.send(stop_after_hang_seconds="600").step == "master"


@pytest.mark.django_db
def test_policies_speak_of_it_over_rest(cast: Cast) -> None:
    mallory, where = V2(cast.mallory), f"?scope=project&projectId={cast.team_b.pk}"
    sent = {"defaults": {"worker": {"radar": True}}, "rules": {"worker": {"radar": LOCKED}}}
    meta = {"scope": "project", "projectId": str(cast.team_b.pk)}
    mallory("PUT", "/policy/distributed", {"meta": meta, "policy": sent})
    assert Policy.objects.get().rules == {"radar.is_on": {"default": True, "locked": True}}
    assert mallory("GET", f"/policy/distributed{where}")["policy"] == sent


@pytest.mark.django_db
def test_a_template_keeps_and_locks_it(cast: Cast) -> None:
    template = save_template(cast, "section:radar", **TYPED)
    assert set(template.locked) == {lock.key for lock in template_locks.SECTIONS["radar"][1]}
    walk = start_from_template(cast, template)
    assert not TYPED.keys() & form_of(walk.page).keys()
    assert submit_and_decode(walk.send(radar="", hang_seconds="60")).radar == FULL


@pytest.mark.django_db
def test_a_draft_made_of_a_workload_has_it(cast: Cast) -> None:
    workload = actions.submit(a_spec(cast.team_a, radar=FULL), project=cast.team_a, user=cast.bob)
    walk = Walk(cast, query=f"?copy={workload.pk}")
    draft = WizardDraft(walk.draft.data, cast.bob)
    assert draft.find_invalid_step(Step.REVIEW) is None
    assert draft.build_spec().radar == FULL
