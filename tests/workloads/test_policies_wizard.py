"""The wizard under policies: what they set stands there, what they lock cannot be typed, and what
they forbid is refused at its field.
"""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from environments.models import ComputeResource, Environment, Policy
from tests.cast import Cast
from tests.workloads.wizarding import Walk, key_of
from workloads.models import Draft, Event, UsedAsset, Workload
from workloads.specs import decode_spec

pytestmark = pytest.mark.django_db


def policy(cast: Cast, name: str = "small-teams", **rules: Any) -> Policy:
    given = {field.replace("__", "."): rule for field, rule in rules.items()}
    made: Policy = Policy.objects.create(name=name, department=cast.research, rules=given)
    return made


def error_of(text: str, field: str) -> str:
    found = re.search(rf'id="id_{field}_error">.*?<span>(.*?)</span>', text, re.S)
    return found[1] if found else ""


def note_of(text: str, field: str) -> str:
    found = re.search(rf'id="id_{field}_note">.*?<span>(.*?)</span>', text, re.S)
    return found[1] if found else ""


def test_a_limit_stands_beside_its_field_and_is_refused_there(cast: Cast) -> None:
    policy(cast, workers={"min": 2, "max": 4})
    walk = Walk(cast).send_start()
    assert note_of(walk.text, "workers") == "2 to 4 by policy small-teams."
    control = re.search(r'<input[^>]*name="workers"[^>]*>', walk.text)
    assert control is not None
    assert "id_workers_note" in control[0]
    walk.send_setup(workers="5")
    assert walk.page.status_code == 422
    assert (
        error_of(walk.text, "workers")
        == "Workers must be at most 4 (policy small-teams of department research)."
    )
    assert walk.send(workers="3").step == "master"


def test_gpus_by_another_name_are_refused_at_their_row(cast: Cast) -> None:
    policy(cast, gpus__devices={"max": 1})
    walk = Walk(cast).send_start()
    walk.send_setup(**{"extended-0-resource": "amd.com/gpu", "extended-0-quantity": "8"})
    assert walk.page.status_code == 422
    assert "amd.com/gpu cannot be asked for here" in error_of(walk.text, "extended-0-resource")


def test_defaults_stand_there_and_can_be_changed(cast: Cast) -> None:
    policy(cast, workers={"default": 3}, priority={"default": "high"}, backoff_limit={"default": 2})
    walk = Walk(cast).send_start()
    assert re.search(r'name="workers" value="3"', walk.text)
    assert '<option value="high" selected>' in walk.text
    walk.send_setup(workers="4").send().send()
    spec = decode_spec(Workload.objects.get().spec)
    assert (spec.workers, spec.lifecycle.priority, spec.lifecycle.backoff_limit) == (4, "high", 2)


def test_what_is_locked_cannot_be_typed_and_is_so_whatever_is_sent(cast: Cast) -> None:
    policy(
        cast,
        backoff_limit={"default": 2, "locked": True},
        host_network={"default": False, "locked": True},
        large_shm={"default": True, "locked": True},
    )
    walk = Walk(cast).send_start()
    assert re.search(r'name="backoff_limit" value="2"[^>]*disabled', walk.text)
    assert note_of(walk.text, "backoff_limit") == "Locked at 2 by policy small-teams."
    walk.send_setup(backoff_limit="50", host_network="on").send().send()
    spec = decode_spec(Workload.objects.get().spec)
    assert spec.lifecycle.backoff_limit == 2
    assert not spec.setup.security.host_network
    assert spec.setup.compute.large_shm


def test_cards_that_are_forbidden_cannot_be_chosen_and_say_why(cast: Cast) -> None:
    policy(cast, image={"options": ["registry.example.com/*"]}, gpus__devices={"max": 1})
    Environment.objects.create(
        name="good", image="registry.example.com/a:1", architecture="Distributed"
    )
    bad = Environment.objects.create(
        name="bad", image="docker.example.com/a:1", architecture="Distributed"
    )
    big = ComputeResource.objects.create(name="big", gpu_devices=8)
    walk = Walk(cast).send_start()
    card = re.search(rf'id="card-environment_choice-{bad.pk}"[^>]*>.*?</label>', walk.text, re.S)
    assert card is not None
    assert " disabled" in card[0]
    assert (
        "Image must be registry.example.com/* (policy small-teams of department research)."
        in card[0]
    )
    assert re.search(rf'id="card-compute_choice-{big.pk}"[^>]* disabled', walk.text)
    walk.send_setup(environment_choice=str(bad.pk))
    assert walk.page.status_code == 422
    assert "environment_choice_error" in walk.text
    walk.send(environment_choice=key_of("good"), compute_choice=str(big.pk))
    assert walk.page.status_code == 422
    assert "GPU devices per pod must be at most 1" in walk.text


def test_an_own_image_that_is_forbidden_is_refused_at_its_field(cast: Cast) -> None:
    policy(cast, image={"options": ["registry.example.com/*", "muster/*"]})
    walk = Walk(cast).send_start().send_setup(image="docker.example.com/a")
    assert error_of(walk.text, "image").startswith(
        "Image must be one of registry.example.com/* or muster/*"
    )


def test_required_rows_are_told_above_them(cast: Cast) -> None:
    policy(
        cast,
        labels={"required": ["cost-centre"]},
        variables={"default": {"HTTP_PROXY": "http://proxy"}, "locked": True},
    )
    walk = Walk(cast).send_start().send_setup()
    assert walk.page.status_code == 422
    assert "Labels must have cost-centre (policy small-teams of department research)." in walk.text
    assert "HTTP_PROXY=http://proxy is locked by policy small-teams." in walk.text


def test_a_host_path_is_refused_at_its_row(cast: Cast) -> None:
    policy(cast, volumes={"options": ["pvc", "nfs"]})
    row = {"volumes-0-kind": "hostPath", "volumes-0-source": "/data", "volumes-0-path": "/data"}
    walk = Walk(cast).send_start().send_setup(**row)
    assert "Volumes can be PVC or NFS only, and not host path" in error_of(
        walk.text, "volumes-0-kind"
    )


def test_an_architecture_that_is_forbidden_is_refused_in_the_first_step(cast: Cast) -> None:
    policy(cast, framework={"options": ["MPI"]})
    walk = Walk(cast).send_start()
    assert walk.page.status_code == 422
    assert "Framework must be MPI (policy small-teams of department research)." in walk.text


def test_the_master_is_held_to_the_same(cast: Cast) -> None:
    policy(cast, cpu_request={"max": "2"})
    walk = Walk(cast).send_start().send_setup()
    walk.send(differs="cpu_request", cpu_request="3")
    assert walk.page.status_code == 422
    assert error_of(walk.text, "cpu_request").startswith(
        "For the master: CPU request must be at most 2"
    )


def test_what_policies_set_is_told_in_the_history_and_kept_with_the_workload(cast: Cast) -> None:
    made = policy(cast, pull_policy={"default": "Always"})
    Walk(cast).send_start().send_setup().send().send()
    workload = Workload.objects.get()
    assert decode_spec(workload.spec).setup.environment.pull_policy == "Always"
    event = Event.objects.filter(workload=workload).order_by("pk").first()
    assert event is not None
    assert (
        "Set by policy: Image pull policy Always (policy small-teams of department research)."
        in event.text
    )
    used = UsedAsset.objects.get(workload=workload, kind="policy")
    assert (used.asset, used.version) == (made.pk, 1)


def test_a_policy_that_comes_while_the_form_is_open_is_told_in_the_end(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup().send()
    policy(cast, workers={"max": 1})
    walk.send()
    assert walk.page.status_code == 422
    assert "Workers must be at most 1" in walk.text
    assert not Workload.objects.exists()


def test_policies_of_another_department_do_not_hold(cast: Cast) -> None:
    Policy.objects.create(name="theirs", project=cast.team_b, rules={"workers": {"max": 1}})
    walk = Walk(cast).send_start().send_setup()
    assert walk.step == "master"


def test_many_policies_cost_no_more_queries(cast: Cast) -> None:
    walk = Walk(cast).send_start().send_setup()
    address = f"/workloads/new/{Draft.objects.get().pk}/setup"

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            walk.client.get(address)
        return len(found)

    before = queries()
    for number in range(20):
        policy(cast, f"p{number}", workers={"max": 9})
    assert queries() == before
