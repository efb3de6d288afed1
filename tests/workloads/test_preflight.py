"""What a cluster says of a submission beforehand: accepted, refused, or not checked and why."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from clusters import connections, project_provisioning
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from projects.models import Project
from tests.api.calling import Caller, a_body
from tests.cast import NOWHERE, Cast, a_spec
from tests.clusters.kube.faults import Exchange, FaultServer, refusal
from tests.workloads.acting import Acting
from tests.workloads.wizarding import Walk
from workloads import manifests
from workloads.preflight import Answer, ObjectCheck, asking, check_objects
from workloads.preflight.questions import list_questions

Object = dict[str, Any]


def build_objects(project: Project, name: str = "train1") -> list[Object]:
    return manifests.build_objects(a_spec(project, name), workload_id="u-1")


def list_answers(checks: Sequence[ObjectCheck]) -> list[tuple[str, str]]:
    return [(each.kind, each.answer) for each in checks]


@pytest.fixture
def synced_cast(cast: Cast) -> Cast:
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    cast.team_a.refresh_from_db()
    return cast


def ask_script(cast: Cast, *steps: Any) -> list[ObjectCheck]:
    with FaultServer(*steps) as server:
        return ask_server(cast, server)


def accept(exchange: Exchange) -> None:
    """Answer as an API server that takes an object."""
    exchange.answer(201, exchange.request.body)


def lead_to(cast: Cast, server: FaultServer) -> None:
    cast.cluster.kubeconfig = NOWHERE.replace(
        "https://127.0.0.1:1", f"http://127.0.0.1:{server.port}"
    )
    cast.cluster.save()


def ask_server(cast: Cast, server: FaultServer) -> list[ObjectCheck]:
    lead_to(cast, server)
    return check_objects(cast.team_a, build_objects(cast.team_a))


def test_objects_and_their_pods_are_asked_about(cast: Cast) -> None:
    questions = list_questions(build_objects(cast.team_a))
    assert [(each.kind, each.name) for each in questions] == [
        ("PyTorchJob", "train1"),
        ("Pod", "train1 (master)"),
        ("Pod", "train1 (worker)"),
    ]
    pod = questions[1].manifest
    assert pod is not None
    assert pod["metadata"]["generateName"] == "train1-"
    assert pod["metadata"]["namespace"] == cast.team_a.namespace
    assert pod["spec"]["containers"]


def test_whatever_an_object_has_the_questions_are_bounded() -> None:
    deep: Object = {"template": {"spec": {"containers": [{}]}}}
    for _ in range(50):
        deep = {"inner": deep}
    many: Object = {
        str(number): {"template": {"spec": {"containers": [{}]}}} for number in range(100)
    }
    for spec, count in ((deep, 2), (many, 20), ("x", 2), ({"template": "x"}, 2)):
        obj = {"kind": "Job", "metadata": {"name": "a"}, "spec": spec}
        assert len(list_questions([obj])) == count


def test_a_cluster_that_would_take_all_makes_nothing(acting: Acting) -> None:
    project_provisioning.provision_project(acting.project)
    acting.project.refresh_from_db()
    objects = build_objects(acting.project)
    assert list_answers(check_objects(acting.project, objects)) == [
        ("PyTorchJob", Answer.ACCEPTED),
        ("Pod", Answer.ACCEPTED),
        ("Pod", Answer.ACCEPTED),
    ]
    namespace = acting.project.namespace
    assert calls.list_page(acting.client, PYTORCHJOBS, namespace=namespace).items == []
    # What it refuses, it refuses in its own words.
    calls.create(acting.client, PYTORCHJOBS, objects[0], namespace=namespace)
    taken = check_objects(acting.project, objects)[0]
    assert (taken.answer, taken.message) == (
        Answer.REFUSED,
        "There is one of this name already.",
    )
    objects[0]["spec"]["misspelt"] = 1
    wrong = check_objects(acting.project, objects)[0]
    assert wrong.answer == Answer.REFUSED
    assert "misspelt" in wrong.message


@pytest.mark.parametrize(
    ("message", "answer", "words"),
    [
        ("pods is forbidden: exceeded quota: gpus", Answer.REFUSED, "exceeded quota: gpus"),
        (
            'admission webhook "w" does not support dry run',
            Answer.UNCHECKED,
            "Its webhook cannot be asked",
        ),
        (
            'pods is forbidden: User "muster" cannot create resource "pods" in API group ""',
            Answer.UNCHECKED,
            "may not ask about pods",
        ),
    ],
)
def test_a_refusal_is_told_from_a_question_that_says_nothing(
    synced_cast: Cast, message: str, answer: Answer, words: str
) -> None:
    checks = ask_script(
        synced_cast,
        accept,
        refusal(403, "Forbidden", message=message),
    )
    assert [each.answer for each in checks] == [Answer.ACCEPTED, answer, answer]
    assert words in checks[1].message


def test_what_cannot_be_asked_is_said_to_be_unchecked(cast: Cast, synced_cast: Cast) -> None:
    objects = build_objects(cast.team_a)
    away = check_objects(cast.team_a, objects)
    assert {each.answer for each in away} == {Answer.UNCHECKED}
    assert away[0].message.endswith(".")
    cast.team_a.synced_at = None
    unmade = check_objects(cast.team_a, objects)
    assert unmade[0].message.startswith("The project team-a is not made in the cluster yet")
    assert list_answers(ask_script(cast, refusal(404, "NotFound")))[0] == (
        "PyTorchJob",
        Answer.UNCHECKED,
    )


@pytest.mark.parametrize(
    "message",
    [
        'failed calling webhook "v.example": Post "https://10.0.0.1:443": connection refused',
        'admission webhook "v.example" denied the request: cannot list queues',
    ],
    ids=["not called", "failed itself"],
)
def test_a_webhook_that_fails_is_named_and_the_rest_is_asked(
    synced_cast: Cast, message: str
) -> None:
    checks = ask_script(
        synced_cast,
        refusal(500, "InternalError", message=message),
        accept,
    )
    assert [each.answer for each in checks] == [
        Answer.UNCHECKED,
        Answer.ACCEPTED,
        Answer.ACCEPTED,
    ]
    assert checks[0].message == (
        "The cluster answered 500 (InternalError). Its webhook v.example failed."
    )


@pytest.mark.parametrize("details", [{"name": "gold", "kind": "queues"}, {}], ids=["it", "nothing"])
def test_a_webhook_that_finds_something_missing_is_quoted(
    synced_cast: Cast, details: Object
) -> None:
    message = 'admission webhook "v.example" denied the request: queues "gold" not found'
    check = ask_script(synced_cast, refusal(404, "NotFound", message=message, details=details))[0]
    assert (check.answer, check.message) == (
        Answer.REFUSED,
        f"The cluster refused it: {message}",
    )


def test_what_is_too_much_to_ask_about_is_said_to_be_unchecked(synced_cast: Cast) -> None:
    claims: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"train1-data-{number}", "namespace": "muster-team-a"},
            "spec": {},
        }
        for number in range(30)
    ]
    with FaultServer(accept) as server:
        lead_to(synced_cast, server)
        checks = check_objects(synced_cast.team_a, [*claims, *build_objects(synced_cast.team_a)])
        assert len(server.requests) == 20
    assert [each.kind for each in checks[:3]] == ["PyTorchJob", "Pod", "Pod"]
    assert len(checks) == 33
    assert {each.answer for each in checks[:20]} == {Answer.ACCEPTED}
    assert {(each.answer, each.message) for each in checks[20:]} == {
        (Answer.UNCHECKED, "Muster asks about 20 objects at most.")
    }


def test_another_conflict_says_nothing_of_the_name(synced_cast: Cast) -> None:
    modified = refusal(409, "Conflict", message="the quota has been modified")
    check = ask_script(synced_cast, modified)[0]
    assert (check.answer, check.message) == (Answer.UNCHECKED, "The quota has been modified.")


def test_pods_of_an_operators_own_template_are_not_asked_about(synced_cast: Cast) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"replicatedJobs": [{"template": {"spec": {}}}]},
    }
    with FaultServer(accept) as server:
        lead_to(synced_cast, server)
        checks = check_objects(synced_cast.team_a, [job])
    assert list_answers(checks) == [("Job", Answer.ACCEPTED), ("Pod", Answer.UNCHECKED)]
    assert "not checked" in checks[1].message


def test_nobody_waits_for_a_cluster_that_hangs(
    synced_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SECONDS", 0.2)
    with FaultServer(Exchange.silence) as server:
        for _ in range(asking.AT_ONCE_EACH + 1):
            checks = ask_server(synced_cast, server)
            assert "did not answer within" in checks[0].message
            # Nothing waits for it any more, although it never answers.
            wait_for_turns()


def wait_for_turns() -> None:
    deadline = time.monotonic() + 10
    while asking._running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not asking._running


def test_a_few_ask_a_cluster_at_once(
    cast: Cast, synced_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SECONDS", 60.0)
    arrivals, gate = threading.Semaphore(0), threading.Event()

    def hold(exchange: Exchange) -> None:
        arrivals.release()
        gate.wait(30)
        accept(exchange)

    with FaultServer(hold) as server:
        lead_to(synced_cast, server)
        objects = build_objects(synced_cast.team_a)
        client = connections.get_client(synced_cast.cluster)
        threads = [
            threading.Thread(target=asking._ask_in_time, args=(client, questions, cluster))
            for questions, cluster in [(list_questions(objects), synced_cast.cluster.pk)]
            * asking.AT_ONCE_EACH
        ]
        for thread in threads:
            assert asking._take_turn(synced_cast.cluster.pk)
            thread.start()
        try:
            for _ in threads:
                assert arrivals.acquire(timeout=30)
            check = check_objects(synced_cast.team_a, objects)[0]
            assert "Others are asking" in check.message
        finally:
            gate.set()
            for thread in threads:
                thread.join()
    wait_for_turns()


def test_what_a_cluster_warns_of_is_shown(synced_cast: Cast) -> None:
    def warn(exchange: Exchange) -> None:
        warnings = (
            'Warning: 299 - "would violate PodSecurity \\"restricted:latest\\": runAsNonRoot"',
            'Warning: 299 kube "metadata.finalizers: prefer a domain"',
        )
        exchange.answer(201, exchange.request.body, *warnings)

    check = ask_script(synced_cast, warn, accept)[0]
    assert (check.answer, check.message) == (
        Answer.ACCEPTED,
        'The cluster would take it, and warns: would violate PodSecurity "restricted:latest": '
        "runAsNonRoot; metadata.finalizers: prefer a domain.",
    )


def test_an_answer_of_something_else_says_nothing(synced_cast: Cast) -> None:
    check = ask_script(synced_cast, lambda exchange: exchange.answer(200, b'{"ok": true}'))[0]
    assert (check.answer, check.message) == (
        Answer.UNCHECKED,
        "What answers is no API server of Kubernetes.",
    )


def test_it_is_asked_over_rest(cast: Cast) -> None:
    answer = Caller(cast.bob)("POST", "/workloads/distributed/preflight", a_body(cast))
    assert answer["fit"]["message"]
    assert {each["answer"] for each in answer["checks"]} == {"unchecked"}
    Caller(cast.vera)("POST", "/workloads/distributed/preflight", a_body(cast), status=403)
    # A name that is taken is refused as a submission refuses it.
    Caller(cast.bob)("POST", "/workloads/distributed", a_body(cast), status=202)
    refusals = [
        Caller(cast.bob)("POST", address, a_body(cast), status=409)
        for address in ("/workloads/distributed/preflight", "/workloads/distributed")
    ]
    assert refusals[0] == refusals[1]


def test_the_review_asks_after_it_is_shown(cast: Cast) -> None:
    walk = Walk(cast)
    walk.send_start()
    walk.send_setup()
    walk.send()
    address = f"/workloads/new/{walk.draft.pk}/preflight"
    assert f'hx-get="{address}"' in walk.text
    part = walk.client.get(address).content.decode()
    assert "Not checked" in part
    assert "is not made in the cluster yet" in part
    assert "was asked" not in part
    other = Walk(cast)
    part = other.client.get(f"/workloads/new/{other.draft.pk}/preflight").content.decode()
    assert "was not asked: the submission is not complete" in part
