"""`POST /api/v1/workloads/batch`: one action on many workloads."""

import uuid
from typing import Any

import pytest

from projects.models import AuditEntry
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from workloads import journal
from workloads.models import Workload
from workloads.states import Status


@pytest.fixture
def two(cast: Cast) -> list[Workload]:
    return [
        journal.create_workload(a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob)
        for name in ("train1", "train2")
    ]


@pytest.fixture
def secret(cast: Cast) -> Workload:
    return journal.create_workload(
        a_spec(cast.team_b, "secret"), project=cast.team_b, user=cast.mallory
    )


def ids(workloads: list[Workload]) -> list[str]:
    return [str(each.pk) for each in workloads]


def test_many_are_stopped_run_again_and_deleted(cast: Cast, two: list[Workload]) -> None:
    bob = Caller(cast.bob)
    for action, status in (("suspend", Status.STOPPING), ("delete", Status.DELETING)):
        answer = bob("POST", "/workloads/batch", {"ids": ids(two), "action": action})
        assert answer["succeeded"] == ids(two)
        assert answer["failed"] == []
        assert {each.status for each in Workload.objects.filter(pk__in=ids(two))} == {status}
        # The answer's id finds what was done in the audit log.
        entries = AuditEntry.objects.filter(request_id=answer["id"], entity="workload")
        assert entries.count() == 2


def test_a_refusal_for_one_does_not_stop_the_others(cast: Cast, two: list[Workload]) -> None:
    Workload.objects.filter(pk=two[0].pk).update(status=Status.FAILED)
    Workload.objects.filter(pk=two[1].pk).update(status=Status.DELETING)
    answer = Caller(cast.bob)("POST", "/workloads/batch", {"ids": ids(two), "action": "resume"})
    assert answer["succeeded"] == [str(two[0].pk)]
    (failed,) = answer["failed"]
    assert (failed["id"], failed["code"]) == (str(two[1].pk), 409)
    assert "train2" in failed["message"]


def test_what_is_another_teams_reads_like_what_is_not_there(
    cast: Cast, two: list[Workload], secret: Workload
) -> None:
    unknown = str(uuid.uuid4())
    requested_ids = [str(secret.pk), unknown, "no id at all", str(two[0].pk), str(two[0].pk)]
    answer = Caller(cast.bob)(
        "POST", "/workloads/batch", {"ids": requested_ids, "action": "delete"}
    )
    assert answer["succeeded"] == [str(two[0].pk)]
    assert {(each["code"], each["message"]) for each in answer["failed"]} == {
        (404, "There is no such workload among those that you may see.")
    }
    assert [each["id"] for each in answer["failed"]] == requested_ids[:3]
    secret.refresh_from_db()
    assert secret.status == Status.CREATING


def test_who_may_only_look_changes_nothing(cast: Cast, two: list[Workload]) -> None:
    answer = Caller(cast.vera)("POST", "/workloads/batch", {"ids": ids(two), "action": "suspend"})
    assert [each["code"] for each in answer["failed"]] == [403, 403]
    assert not Workload.objects.exclude(status=Status.CREATING).exists()


BAD: list[tuple[Any, str]] = [
    ({}, "ids"),
    ([], "object"),
    ({"ids": [], "action": "delete"}, "1 to 100"),
    ({"ids": ["x"] * 101, "action": "delete"}, "1 to 100"),
    ({"ids": "x", "action": "delete"}, "1 to 100"),
    ({"ids": [1], "action": "delete"}, "ids"),
    ({"ids": ["x" * 65], "action": "delete"}, "ids"),
    ({"ids": ["x"], "action": "stop"}, "delete, suspend, resume"),
    ({"ids": ["x"]}, "action"),
]


@pytest.mark.parametrize(("body", "words"), BAD, ids=range(len(BAD)))
def test_a_batch_that_cannot_be_understood_is_refused_in_words(
    cast: Cast, body: Any, words: str
) -> None:
    assert words in Caller(cast.bob)("POST", "/workloads/batch", body, 400)["message"]
