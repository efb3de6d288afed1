"""Steps at random, in several threads, killed at any moment: each attempt has one job, and every
workload ends where it was asked to.
"""

import contextlib
import random
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections as databases

from clusters import connections, project_provisioning
from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import watch
from clusters.kube.client import Client
from clusters.kube.errors import Unavailable
from clusters.kube.resources import Resource
from console.celery import Step
from console.errors import Clash
from tests.conformance.api import eventually
from tests.workloads.acting import QUICK, Acting
from workloads import journal, manifests, tasks
from workloads.models import Attempt, Desired, Event, Pod, Workload
from workloads.states import TERMINAL, Status
from workloads.tasks.sweeping import find_next_step

THREADS = 4
DEATHS = {"GET": 0.1, "POST": 0.6, "DELETE": 0.3}
"""How many of a step's requests are its last: they take effect, and whoever sent them dies or loses
the answer.
"""
STEPS: dict[str, Step] = {
    "launch": tasks.launch,
    "stop": tasks.stop,
    "remove": tasks.remove,
    "reconcile": tasks.reconcile,
    "tidy": tasks.tidy,
}
ASKS = (*[journal.request_stop] * 4, *[journal.request_run] * 8, journal.request_deletion)


class Killed(BaseException):
    """The end of a worker."""


class Mortal(Client):
    """Whoever sends something with it may not live to see the answer."""

    chance: random.Random

    def send(self, method: str, path: str, **options: Any) -> bytes:
        answer = super().send(method, path, **options)
        if self.chance.random() < DEATHS.get(method, 0.0):
            raise self.chance.choice(
                [Killed(), Unavailable("the cluster asks to come back later", retry_after=0.1)]
            )
        return answer


class Witness:
    """Follows the cluster's jobs and remembers the uids of each attempt's: of every job that there
    ever was.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self.uids: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._client, self._namespace = client, namespace
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(2)

    def __enter__(self) -> "Witness":
        self._looking = [self._pool.submit(self._look, each) for each in (JOBS, PYTORCHJOBS)]
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for each in self._looking:
            each.result()

    def _look(self, resource: Resource) -> None:
        for item in watch.follow(
            self._client,
            resource,
            stop=self._stop,
            namespace=self._namespace,
            labels=manifests.build_selector(),
        ):
            found = (
                item.items
                if isinstance(item, watch.Listing)
                else [item.object]
                if isinstance(item, watch.ObjectChange)
                else []
            )
            for labels, uid in (
                (each["metadata"]["labels"], each["metadata"]["uid"]) for each in found
            ):
                self.uids[labels[manifests.WORKLOAD], int(labels[manifests.ATTEMPT])].add(uid)


class Chaos:
    """Submissions, people and workers. `quick` are the workloads that end by themselves."""

    def __init__(
        self,
        acting: Acting,
        requested_steps: list[tuple[str, ...]],
        chance: random.Random,
        count: int,
    ) -> None:
        self.acting, self.messages, self.chance = acting, requested_steps, chance
        self.workloads = [self._submitted(number) for number in range(count)]

    def _submitted(self, number: int) -> Workload:
        submit = self.chance.choice([self.acting.submit, self.acting.submit_distributed])
        return submit(f"w{number}", **self.chance.choice([{}, {"command": QUICK}]))

    def for_a_while(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(THREADS) as pool:
            for each in [
                pool.submit(self._work, random.Random(self.chance.random()), until)
                for _ in range(THREADS)
            ]:
                each.result()

    def _work(self, chance: random.Random, until: float) -> None:
        try:
            while time.monotonic() < until:
                with contextlib.suppress(Killed, Clash):
                    self._something(chance)
        finally:
            databases.close_all()

    def _something(self, chance: random.Random) -> None:
        workload = str(chance.choice(self.workloads).pk)
        match chance.randrange(20):
            case 0:
                chance.choice(ASKS)(uuid.UUID(workload), None)
            case 1:
                tasks.sweep()
            case 2:
                self.acting.poll()
                Pod.objects.update(logs_kept=True)
            case number if number < 12:
                chance.choice([*STEPS.values()])(workload)
            case _:
                self._take_a_message(chance)

    def _take_a_message(self, chance: random.Random) -> None:
        """Late, out of order, or twice."""
        with contextlib.suppress(IndexError, ValueError):
            name, *arguments = message = chance.choice(self.messages)
            if chance.random() < 0.8:
                self.messages.remove(message)
            if name in STEPS:
                STEPS[name](arguments[0], *map(int, arguments[1:]))

    def come_to_rest(self) -> None:
        """What the sweep would do, as long as there is something to do, without its waiting."""

        def is_over() -> bool:
            self.acting.poll()
            Pod.objects.update(logs_kept=True)
            for row in Workload.objects.all():
                step = find_next_step(
                    row.status, row.desired, row.job_uid, row.released_at is not None
                )
                if step is not None:
                    step(str(row.pk))
            return all(map(is_where_it_was_asked_to_be, Workload.objects.all()))

        eventually(is_over, within=270)


def is_where_it_was_asked_to_be(row: Workload) -> bool:
    if row.desired == Desired.DELETED:
        return row.released_at is not None
    if row.desired == Desired.STOPPED:
        return row.status in (Status.STOPPED, *TERMINAL)
    ends = row.spec["setup"]["environment"]["command"] != list(QUICK)
    return row.status == (Status.RUNNING if ends else Status.COMPLETED)


@pytest.fixture
def chance() -> random.Random:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.fixture
def mortal(
    transactional_db: None, acting: Acting, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.MonkeyPatch]:
    project_provisioning.provision_project(acting.project)
    client = Mortal(acting.client.access, timeouts=acting.client.timeouts)
    client.chance = chance
    with monkeypatch.context() as patch:
        patch.setattr(connections, "get_client", lambda cluster: client)
        yield patch


def check(chaos: Chaos, witness: Witness) -> None:
    for row in Workload.objects.all():
        moves = list(row.events.exclude(new="").order_by("id").values_list("old", "new"))
        assert [new for _, new in moves][:-1] == [old for old, _ in moves][1:]
        there = [
            job for job in chaos.acting.jobs(row) if "deletionTimestamp" not in job["metadata"]
        ]
        # What ended while it was being stopped may have lost its job to that.
        least, most = row.desired == Desired.RUNNING, row.status in (Status.RUNNING, *TERMINAL)
        assert least <= len(there) <= most, (row.name, row.status, there)
    for (workload, attempt), uids in witness.uids.items():
        was_ended = Event.objects.filter(
            workload=uuid.UUID(workload), attempt=attempt, reason__in=("Stop", "Delete")
        ).exists()
        assert len(uids) == 1 or was_ended, (workload, attempt, uids)


def at_random(
    acting: Acting,
    requested_steps: list[tuple[str, ...]],
    chance: random.Random,
    mortal: pytest.MonkeyPatch,
    count: int,
    seconds: float,
) -> None:
    chaos = Chaos(acting, requested_steps, chance, count)
    with Witness(acting.client, acting.project.namespace) as witness:
        chaos.for_a_while(seconds)
        mortal.undo()
        chaos.come_to_rest()
        had = Attempt.objects.exclude(job_uid="").values_list("workload", "number", "job_uid")
        eventually(
            lambda: all(uid in witness.uids[str(workload), number] for workload, number, uid in had)
        )
    check(chaos, witness)


def test_eight_submissions_survive_four_workers_that_die(
    mortal: pytest.MonkeyPatch,
    acting: Acting,
    requested_steps: list[tuple[str, ...]],
    chance: random.Random,
) -> None:
    at_random(acting, requested_steps, chance, mortal, 8, 4)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_forty_submissions_survive_four_workers_that_die(
    mortal: pytest.MonkeyPatch,
    acting: Acting,
    requested_steps: list[tuple[str, ...]],
    chance: random.Random,
) -> None:
    at_random(acting, requested_steps, chance, mortal, 40, 60)
