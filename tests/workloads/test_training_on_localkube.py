"""A training in the embedded cluster: its logs are captured while it runs, its progress is read."""

import threading

import pytest

from tests.cast import a_spec
from tests.conformance.api import eventually
from tests.workloads.acting import Acting
from workloads import journal, tasks
from workloads.logbook.collecting import LogCollector
from workloads.models import LossCurve, RankProgress, TrainingProgress
from workloads.specs import CleanPodPolicy, Environment, Lifecycle, Setup

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 360.0


def test_reads_the_progress_of_an_example(acting: Acting) -> None:
    setup = Setup(environment=Environment(image="muster/allreduce", args=("--steps", "60")))
    # A worker that ends within a second would be removed before Muster lists it.
    kept = Lifecycle(clean_pod_policy=CleanPodPolicy.NONE)
    spec = a_spec(acting.project, setup=setup, workers=1, lifecycle=kept)
    workload = journal.create_workload(spec, project=acting.project, user=acting.cast.bob)
    tasks.launch(str(workload.pk))
    stop = threading.Event()
    collector = LogCollector(acting.cast.cluster.pk, stop, threading.Event())
    thread = threading.Thread(target=collector.run)
    thread.start()

    def is_settled() -> bool:
        acting.poll()
        tasks.follow_training()
        return TrainingProgress.objects.filter(is_settled=True, step=60).exists()

    try:
        eventually(is_settled, PATIENCE)
    finally:
        stop.set()
        thread.join()
    row = TrainingProgress.objects.get()
    assert (row.workload_id, row.step, row.total, row.pattern) == (workload.pk, 60, 60, "plain")
    assert row.state["evidence"].startswith("step 60 loss ")
    ranks = [(each.rank, each.state["step"]) for each in RankProgress.objects.all()]
    assert ranks == [(0, 60), (1, 60)]
    points = LossCurve.objects.get().history["points"]
    assert [step for _, step, _ in points] == list(range(1, 61))
    assert points[-1][2] < points[0][2]
