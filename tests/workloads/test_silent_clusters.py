"""Many clusters that take connections and say nothing: they hold only some threads of a worker, and
those that answer are served meanwhile.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager

import pytest
from django.db import connections as databases
from django.utils import timezone

from clusters import connections, thread_shares
from clusters import tasks as cluster_tasks
from clusters.kube import pending_requests
from clusters.kube.client import Timeouts
from clusters.kube.pending_requests import PendingRequests
from clusters.models import Cluster
from clusters.thread_shares import SLOW_PERIOD, SLOW_SECONDS, SlowTargets, count_silent_threads
from projects.models import Project
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.clusters.scripted import build_kubeconfig, serve_script
from tests.examples.processes import wait_until
from tests.workloads.acting import Acting
from workloads import tasks
from workloads.models import Workload

pytestmark = pytest.mark.django_db(transaction=True)
SILENT = 6
WORKER_THREADS = 8
"""The threads of a worker, as its settings have them."""


@contextmanager
def worker() -> Iterator[Callable[..., Future[None]]]:
    """A worker's threads: give it a step and its arguments."""

    def run(step: Callable[..., None], arguments: tuple[str, ...]) -> None:
        try:
            step(*arguments)
        finally:
            databases.close_all()

    with ThreadPoolExecutor(WORKER_THREADS) as threads:
        yield lambda step, *arguments: threads.submit(run, step, arguments)


def add_cluster(server: FaultServer, name: str, *, is_silent: bool) -> Cluster:
    return Cluster.objects.create(
        name=name,
        server=f"https://127.0.0.1:{server.port}",
        kubeconfig=build_kubeconfig(server),
        unreachable_since=timezone.now() if is_silent else None,
    )


@pytest.fixture(autouse=True)
def close_clients() -> Iterator[None]:
    yield
    connections.close_all()


def test_clusters_that_say_nothing_hold_only_some_threads(cast: Cast) -> None:
    Cluster.objects.update(is_enabled=False)
    with worker() as enqueue, ExitStack() as stack:
        silent = [stack.enter_context(FaultServer(Exchange.silence)) for _ in range(SILENT)]
        lively = [stack.enter_context(serve_script()) for _ in range(3)]
        rows = [
            add_cluster(each, f"silent-{number}", is_silent=True)
            for number, each in enumerate(silent)
        ]
        beats = [enqueue(tasks.heartbeat, str(each.pk)) for each in rows]
        others = [
            add_cluster(each, f"lively-{number}", is_silent=False)
            for number, each in enumerate(lively)
        ]
        # More than the threads that are left, so that each of them has to come free again.
        answers = [enqueue(tasks.heartbeat, str(each.pk)) for each in others * 4]
        assert not wait(answers, 60).not_done
        assert Cluster.objects.filter(name__startswith="lively", version="v1.34.0").count() == 3
        hanging = [each for each in beats if not each.done()]
        assert len(hanging) <= count_silent_threads() == 2
        assert sum(bool(each.requests) for each in silent) <= count_silent_threads()


def test_projects_that_take_long_hold_only_some_threads(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the cluster answers, and a webhook of its hangs."""
    monkeypatch.setattr(connections, "TIMEOUTS", Timeouts(connect=1, read=600, total=600))
    with worker() as enqueue, FaultServer(Exchange.silence) as hanging, serve_script() as lively:
        cluster = add_cluster(hanging, "hanging", is_silent=False)
        projects = [
            Project.objects.create(
                name=f"hangs-{number}",
                namespace=f"muster-hangs-{number}",
                queue=f"hangs-{number}",
                department=cast.research,
                cluster=cluster,
            )
            for number in range(SILENT)
        ]
        with monkeypatch.context() as hasty:
            hasty.setattr(thread_shares, "SLOW_SECONDS", 0.0)
            with cluster_tasks.claim_project_thread(projects[0]) as may_write:
                assert may_write
        writes = [enqueue(tasks.provision, each.pk) for each in projects]
        other = add_cluster(lively, "lively", is_silent=False)
        answers = [enqueue(tasks.heartbeat, str(other.pk)) for _ in range(12)]
        assert not wait(answers, 60).not_done
        assert Cluster.objects.get(pk=other.pk).version == "v1.34.0"
        assert sum(not each.done() for each in writes) == count_silent_threads() == 2
        hanging.wait_for(2)
        assert len(hanging.requests) == 2


def test_a_target_is_slow_for_a_while_after_slow_work() -> None:
    clock = [100.0]
    targets = SlowTargets(lambda: clock[0])
    with ExitStack() as at_work:
        for _ in range(WORKER_THREADS):
            assert at_work.enter_context(targets.claim("a")), "quick so far"
        clock[0] += SLOW_SECONDS
    with ExitStack() as at_work:
        claims = [at_work.enter_context(targets.claim("a")) for _ in range(WORKER_THREADS)]
        assert claims.count(True) == count_silent_threads()
        assert at_work.enter_context(targets.claim("b")), "another one"
        clock[0] += SLOW_PERIOD
        assert at_work.enter_context(targets.claim("a"))


def test_each_of_them_gets_its_turn(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TIMEOUTS", Timeouts(connect=1, read=0.1, total=1))
    Cluster.objects.update(is_enabled=False)
    with worker() as enqueue, ExitStack() as stack:
        silent = [stack.enter_context(FaultServer(Exchange.silence)) for _ in range(SILENT)]
        for number, each in enumerate(silent):
            add_cluster(each, f"silent-{number}", is_silent=True)
        for _ in range(200):
            # As often as the sweep: at random, so that no cluster is always the last one.
            rows = Cluster.objects.in_use().order_by("?").values_list("pk", flat=True)
            wait([enqueue(tasks.heartbeat, str(pk)) for pk in rows])
            if all(each.requests for each in silent):
                break
        assert all(each.requests for each in silent)


def test_steps_of_a_cluster_that_fell_silent_leave_threads_to_others(
    cast: Cast, requested_steps: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TIMEOUTS", Timeouts(connect=1, read=0.1, total=1))
    Project.objects.update(synced_at="2026-01-01T00:00:00Z")
    acting = Acting(cast, None)  # type: ignore[arg-type]
    keys = [str(acting.submit(f"train{number}").pk) for number in range(8)]
    with worker() as enqueue, FaultServer(Exchange.silence) as silent:
        Cluster.objects.filter(pk=cast.cluster.pk).update(kubeconfig=build_kubeconfig(silent))
        tasks.launch(keys[0])
        # The step has given up by now; the server may not have read yet what it asked for.
        wait_until(lambda: silent.requests, 20, lambda: "the server was asked for nothing")
        before = len(silent.requests)
        client = connections.get_client(cast.cluster.pk)
        with ExitStack() as waiting:
            # Two threads wait for it already.
            for _ in range(count_silent_threads()):
                waiting.enter_context(client.pending.track())
            assert not wait([enqueue(tasks.launch, key) for key in keys[1:]], 60).not_done
        assert len(silent.requests) == before
        assert "is silent, and others wait for it" in Workload.objects.get(pk=keys[1]).trouble
        tasks.launch(keys[1])
        assert len(silent.requests) > before


def test_silence_is_judged_by_answers_and_by_how_long_one_waits() -> None:
    clock = [100.0]
    pending = PendingRequests(lambda: clock[0])
    assert not pending.is_crowded(1)
    with pending.track():
        assert not pending.is_crowded(1), "it may still answer"
        clock[0] += pending_requests.SILENT_SECONDS
        assert pending.is_crowded(1)
        assert not pending.is_crowded(2), "only one thread waits"
        pending.record_answer()
        assert not pending.is_crowded(1)
        pending.record_timeout()
        assert pending.is_crowded(1)
    assert not pending.is_crowded(1)
