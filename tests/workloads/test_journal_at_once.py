"""Several writers and readers at the same time, each in a thread and a connection of its own."""

import contextlib
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.utils import timezone

from console.errors import Clash
from tests.at_once import at_once
from tests.cast import a_spec, make_cast
from tests.workloads.cluster_objects import ClusterObjects, jobs, pods
from tests.workloads.objects import Object, condition
from workloads import journal, queries, tasks
from workloads.models import Attempt, Event, Workload
from workloads.states import STARTING, Status

pytestmark = pytest.mark.django_db(transaction=True)
EACH = 20


def repeatedly(work: Callable[[int], Any]) -> Callable[[], None]:
    def run() -> None:
        for number in range(EACH):
            work(number)

    return run


def test_whoever_asks_for_what_came_after_misses_nothing_that_is_being_committed() -> None:
    cast, over, row_positions = make_cast(), threading.Event(), dict[Any, int]()

    def read() -> None:
        position, last = 0, False
        while not last:
            last = over.is_set()
            found = queries.load_changes(position, None, lambda rows: rows)
            row_positions.update({row.pk: row.changed for row in found.rows})
            position = found.position

    def write(who: int) -> Callable[[], None]:
        def open_and_see(number: int) -> None:
            made = ClusterObjects(
                journal.create_workload(
                    a_spec(cast.team_a, f"w{who}-{number}"), project=cast.team_a, user=None
                )
            )
            journal.record_observations(cast.cluster.pk, jobs(made.job(condition("Created"))))

        return repeatedly(open_and_see)

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(at_once, read)
        at_once(*map(write, range(4)))
        over.set()
        reader.result()
    assert row_positions == dict(Workload.objects.values_list("pk", "changed"))
    assert len(set(row_positions.values())) == 4 * EACH


def test_writers_of_one_workload_lose_nothing_of_each_others() -> None:
    cast = make_cast()
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
    made = ClusterObjects(workload)
    each_pod = [
        [made.pod("worker", index, ready=bool(number % 2)) for number in range(EACH)]
        for index in range(2)
    ]
    journal.record_observations(cast.cluster.pk, jobs(made.job(condition("Created"))))

    def record_frame(frames: list[Object], number: int) -> None:
        journal.record_observations(cast.cluster.pk, pods(frames[number]))

    at_once(
        *(repeatedly(functools.partial(record_frame, frames)) for frames in each_pod),
        *(
            repeatedly(lambda number: journal.record_delay(workload.pk, f"It failed {number}.", 60))
            for _ in range(2)
        ),
    )
    workload.refresh_from_db()
    assert (workload.tries, workload.running_pods, workload.pods.count()) == (2 * EACH, 2, 2)
    moves = list(Event.objects.filter(kind="status").order_by("id").values_list("old", "new"))
    assert [new for _, new in moves][:-1] == [old for old, _ in moves][1:]
    assert moves[-1][1] == workload.status


def test_of_those_who_ask_at_once_one_asks() -> None:
    cast = make_cast()
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
    answers: list[bool] = []
    for ask, status in (
        (journal.request_stop, Status.RUNNING),
        (journal.request_run, Status.STOPPED),
        (journal.request_deletion, None),
    ):
        if status:
            Workload.objects.update(status=status)
        at_once(*[lambda ask=ask: answers.append(ask(workload.pk, None))] * 4)
    assert sum(answers) == 3
    assert Attempt.objects.count() == 2


def test_running_and_deleting_at_once_ends_in_a_deletion() -> None:
    cast = make_cast()
    rows = [
        journal.create_workload(a_spec(cast.team_a, f"w{number}"), project=cast.team_a, user=None)
        for number in range(EACH)
    ]
    Workload.objects.update(status=Status.STOPPED)

    def run(number: int) -> None:
        with contextlib.suppress(Clash):
            journal.request_run(rows[number].pk, None)

    at_once(
        repeatedly(run), repeatedly(lambda number: journal.request_deletion(rows[number].pk, None))
    )
    assert set(Workload.objects.values_list("status", "desired")) == {("Deleting", "Deleted")}


def test_of_two_that_want_one_name_one_gets_it() -> None:
    cast = make_cast()
    names: list[str] = []

    def submit(number: int) -> None:
        with contextlib.suppress(Clash):
            names.append(
                journal.create_workload(
                    a_spec(cast.team_a, f"w{number}"), project=cast.team_a, user=None
                ).name
            )

    at_once(*[repeatedly(submit)] * 3)
    assert sorted(names) == sorted(f"w{number}" for number in range(EACH))


def test_a_sweep_forgets_nothing_that_is_asked_for_meanwhile(
    requested_steps: list[tuple[str, ...]],
) -> None:
    cast = make_cast()
    rows = [
        journal.create_workload(a_spec(cast.team_a, f"w{number}"), project=cast.team_a, user=None)
        for number in range(3 * EACH)
    ]
    Workload.objects.update(status=Status.STOPPED, desired="Stopped", next_try_at=timezone.now())

    def run(number: int) -> None:
        for row in rows[number::EACH]:
            journal.request_run(row.pk, None)

    at_once(repeatedly(run), repeatedly(lambda _: tasks.sweep()))
    assert set(Workload.objects.values_list("status", flat=True)) <= STARTING
    assert not Workload.objects.filter(next_try_at=None).exists()
