"""Elastic training and fair shares, end to end: real processes on four nodes with a GPU each.

project-a trains on all four GPUs, project-b wants its two: project-a goes on with two pods from its
checkpoint, and comes back to four when project-b has ended. How long each step takes is measured by
benchmarks/elastic.py; here only an end to waiting is set.
"""

import contextlib
from collections.abc import Iterator, Sequence

import pytest

from tests.elastic_stage import EVERY, ElasticStage, Training, find_lost_steps, train_uninterrupted
from tests.rest import Body

pytestmark = pytest.mark.timeout(1800)

STARTED = RECLAIMED = RESUMED = GROWN = 270.0
GROW_AFTER, SHRINK_AFTER = 5, 15


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticStage]:
    stage = ElasticStage(
        tmp_path_factory.mktemp("elastic"),
        grow_after_seconds=GROW_AFTER,
        shrink_after_seconds=SHRINK_AFTER,
        poll_seconds=5,
    )
    stage.muster.migrated()
    with stage:
        yield stage


@pytest.fixture
def training(stage: ElasticStage, request: pytest.FixtureRequest) -> Iterator[Training]:
    """The training of project-a, which runs with all four GPUs and has a checkpoint."""
    number = request.session.items.index(request.node)
    made = stage.submit_elastic(f"train-{number}")
    try:
        made.wait_for_world(4, STARTED)
        stage.wait(lambda: max(made.losses(), default=0) > EVERY, STARTED, made)
        yield made
    finally:
        made.remove()


@pytest.fixture
def rivals(stage: ElasticStage) -> Iterator[list[Training]]:
    """What a test submits to project-b, gone afterwards."""
    made: list[Training] = []
    yield made
    for each in made:
        each.remove()


@contextlib.contextmanager
def without_kai(stage: ElasticStage) -> Iterator[None]:
    """Send pods to the default scheduler, and let project-a have all four GPUs."""
    stage.set_quota("project-a", 4)
    with stage.without_kai():
        yield
    stage.set_quota("project-a", 2)


def list_nodes(*trainings: Training) -> Sequence[str]:
    """The nodes of the pods that have one and have not ended, one entry a pod."""
    return [
        pod["spec"]["nodeName"]
        for each in trainings
        for pod in each.pods().values()
        if pod["spec"].get("nodeName")
        and pod["status"].get("phase") in ("Pending", "Running")
        and "deletionTimestamp" not in pod["metadata"]
    ]


def list_scales(training: Training) -> list[tuple[int, int]]:
    """How many pods it had before and after each change of Muster, the oldest first."""
    scales = [each["spec"].get("scale") for each in reversed(training.history)]
    return [(each["podsBefore"], each["podsAfter"]) for each in scales if each]


def list_finished_causes(training: Training) -> list[Body]:
    """What took pods from it, where it is known how it went on; the newest first."""
    events = [each["spec"].get("event", {}) for each in training.history]
    causes = [each["cause"] for each in events if "cause" in each]
    return [each for each in causes if each["isOver"]]


def assert_losses_are_those_of_no_interruption(training: Training) -> None:
    losses = training.losses()
    expected = train_uninterrupted(max(losses))
    assert {step: loss for step, loss in losses.items() if abs(loss - expected[step]) > 1e-6} == {}


def assert_little_was_lost(training: Training) -> None:
    lost = list(find_lost_steps(training.log()))
    assert lost, training.log()
    assert max(lost) <= EVERY, lost


def test_a_training_shrinks_for_another_project_and_grows_back(
    stage: ElasticStage, training: Training, rivals: list[Training]
) -> None:
    page = stage.reader()
    assert "2 to 4 pods, the master among them" in page.page(f"/workloads/{training.id}/details")
    kept = {name: pod["metadata"]["uid"] for name, pod in training.pods().items()}
    # It runs for as long as the test needs it, however busy the machine is.
    rival = stage.submit_rival("rival", steps=100_000)
    rivals.append(rival)
    stage.wait(lambda: len(rival.running()) == 2, RECLAIMED, rival, training)
    training.wait_for_world(2, RESUMED)
    training.wait_for_phase("Running", RESUMED)
    assert {name.removeprefix(training.name) for name in training.running()} == {
        "-master-0",
        "-worker-0",
    }
    nodes = list_nodes(training, rival)
    assert len(nodes) == len(set(nodes)) == 4
    stage.wait(lambda: bool(list_finished_causes(training)), GROWN, training)
    (cause,) = list_finished_causes(training)
    assert (cause["action"], cause["takenBy"]) == ("reclaim", "project-b")
    assert (cause["pods"], cause["gpus"], cause["podsBefore"], cause["podsAfter"]) == (2, 2, 4, 2)
    assert cause["resumedStep"] % EVERY == 0
    assert 0 <= cause["lostSteps"] <= EVERY
    assert "Gave 2 GPUs to project-b at " in page.page(f"/workloads/{training.id}")
    stage.wait(lambda: training.wanted() == 2, GROWN, training)
    rival.stop()
    rival.wait_for_phase("Stopped", RESUMED)
    training.wait_for_world(4, GROWN)
    stage.wait(lambda: len(training.running()) == 4, RESUMED, training)
    training.wait_for_phase("Running", RESUMED)
    for name in (f"{training.name}-master-0", f"{training.name}-worker-0"):
        assert training.pods()[name]["metadata"]["uid"] == kept[name], f"{name} was touched"
    assert_little_was_lost(training)
    assert_losses_are_those_of_no_interruption(training)


def test_who_vanishes_before_starting_leaves_the_other_whole(
    stage: ElasticStage, training: Training, rivals: list[Training]
) -> None:
    rival = stage.submit_rival("vanishing")
    rivals.append(rival)
    stage.wait(lambda: len(training.running()) < 4, RECLAIMED, rival, training)
    rival.remove()
    stage.wait(lambda: bool(list(find_lost_steps(training.log()))), GROWN, training)
    training.wait_for_world(4, GROWN)
    training.wait_for_phase("Running", RESUMED)
    assert_little_was_lost(training)


def test_a_training_goes_on_without_a_lost_node_and_takes_it_back(
    stage: ElasticStage, training: Training
) -> None:
    lost = training.pods()[f"{training.name}-worker-2"]["spec"]["nodeName"]
    stage.stop_kubelet(lost)
    try:
        training.wait_for_world(3, RESUMED)
        stage.wait(lambda: lost not in list_nodes(training), RESUMED, training)
    finally:
        stage.stop_kubelet(lost, stopped=False)
    training.wait_for_world(4, GROWN)
    assert_little_was_lost(training)
    assert_losses_are_those_of_no_interruption(training)


def test_a_reclaim_while_muster_is_down_is_taken_over(
    stage: ElasticStage, training: Training, rivals: list[Training]
) -> None:
    rival = stage.submit_rival("while-down", steps=3000)
    rivals.append(rival)
    stage.wait(lambda: bool(rival.pods()), RECLAIMED, rival)
    stage.muster.stop()
    try:
        stage.wait(lambda: len(rival.running()) == 2, RECLAIMED)
        training.wait_for_world(2, RESUMED)
    finally:
        stage.restart_muster()
    rival.wait_for_phase("Running", RESUMED)
    training.wait_for_phase("Running", RESUMED)
    stage.wait(lambda: training.whole["runningPods"] == 2, RESUMED, training)
    rival.remove()
    training.wait_for_world(4, GROWN)
    assert_little_was_lost(training)


def test_a_training_that_may_not_form_anew_again_fails_and_says_why(stage: ElasticStage) -> None:
    training = stage.submit_elastic("restarts", maxRestarts=0)
    try:
        training.wait_for_world(4, STARTED)
        training.delete_pod("worker-2")
        training.wait_for_phase("Failed", RESUMED)
        workload = training.whole
        why = "more often than PET_MAX_RESTARTS allows (ranks lost: 1, ranks that came: 0)"
        assert why in str(workload["diagnosis"]), workload
    finally:
        training.remove()


@pytest.mark.parametrize("scheduler", ["kai-scheduler", "default-scheduler"])
def test_one_worker_grows_to_the_maximum_and_what_waits_is_given_up(
    stage: ElasticStage, scheduler: str
) -> None:
    """Where nothing takes GPUs back, nobody gets more of them than their quota."""
    has_kai = scheduler == "kai-scheduler"
    with contextlib.nullcontext() if has_kai else without_kai(stage):
        training = stage.submit_elastic(f"growing-{scheduler[:3]}", workers=1)
        try:
            training.wait_for_world(2, STARTED)
            assert training.schedulers() == {scheduler}
            training.wait_for_world(4, GROWN)
            assert training.wanted() == 4
            closed = training.pods()[f"{training.name}-worker-2"]["spec"]["nodeName"]
            stage.close_node(closed)
            try:
                training.delete_pod("worker-2")
                stage.wait(lambda: training.wanted() == 3, GROWN, training)
                training.wait_for_world(3, RESUMED)
            finally:
                stage.close_node(closed, is_closed=False)
            training.wait_for_world(4, GROWN)
            assert list_scales(training) == [(2, 4), (4, 3), (3, 4)]
        finally:
            training.remove()
