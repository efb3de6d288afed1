"""Data delivery, end to end: real processes on an embedded cluster with two GPUs.

A workload of the built-in template prepares data without a GPU, trains, and says who waited for
data; a data worker is killed on the way and nothing is lost; only rank 0 writes where it alone may.
"""

import re
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.delivery.test_campaign_with_muster import run_campaign
from tests.delivery_stage import (
    CHECKPOINTS,
    Delivered,
    DeliveryStage,
    find_wrong_elements,
    kill,
)
from tests.rest import Reader
from tests.workloads.wizarding import form_of

pytestmark = pytest.mark.timeout(1200)

BATCH = 4
FAST = f"--batch-size {BATCH} --load-seconds 0.2 --step-seconds 0.05 --checkpoint-every 5"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeliveryStage]:
    stage = DeliveryStage(tmp_path_factory.mktemp("delivery"), localkube_gpus=2)
    stage.muster.migrated()
    with stage:
        yield stage


@pytest.fixture
def trainings(stage: DeliveryStage) -> Iterator[list[Delivered]]:
    """What a test submits, gone afterwards."""
    trainings: list[Delivered] = []
    yield trainings
    for each in trainings:
        each.remove()


def walk_wizard(reader: Reader, template: str, name: str) -> str:
    """Submit from a template with nothing but a name typed; the page that it leads to."""
    with reader.open("/workloads/new") as answer:
        path: str = answer.url.removeprefix(reader.url)
        text: str = answer.read().decode()
    card = re.search(
        rf'name="template"[^>]*value="([^"]+)"(?:(?!name="template").)*?{template}', text, re.DOTALL
    )
    assert card, f"there is no template {template} to choose"
    changes = {"name": [name], "template": [card[1]], "architecture": ["Distributed"]}
    while "/workloads/new/" in path:
        fields = form_of(SimpleNamespace(content=text.encode())) | changes
        path, text = reader.send(path, fields)
        changes = {}
    return text


def test_slow_data_is_prepared_before_gpus_are_taken(
    stage: DeliveryStage, trainings: list[Delivered]
) -> None:
    reader = stage.reader()
    walk_wizard(reader, "slow-data", "slow")
    training = Delivered(stage, str(stage.program.listed()["slow"]["id"]), "slow")
    trainings.append(training)
    details = f"/workloads/{training.id}"
    # While data is prepared: a bar that moves, data workers that run, and no pod of the training.
    training.wait_for(lambda: "Preparing data" in reader.page(details))
    training.wait_for(lambda: re.search(r"[1-9][\d,]* of 5,120", reader.page(details)))
    assert "<progress" in reader.page("/workloads?q=slow")
    assert training.pods() == {}
    assert len(training.pods(data_workers=True)) == 4
    pods = reader.page(f"{details}/pods")
    assert pods.count("slow-data-") >= 4
    assert "Data workers" in pods
    training.wait_for_phase("Running", within=540)
    early, lasted, _ = stage.measure_preparation(training)
    assert (early, lasted > 1) == (0.0, True)
    # While it trains: who waits, and whose logs there are.
    training.wait_for(lambda: "Waiting for data against computing" in reader.page(details))
    logs = reader.page(f"{details}/logs")
    assert "slow-data-0" in logs
    assert "slow-master-0" in logs
    training.wait_for_phase("Completed", within=900)
    # At the end data workers are gone, and what they wrote is kept.
    training.wait_for(lambda: not training.pods(data_workers=True))
    training.wait_for(lambda: not [each for each in training.objects() if "-data" in each])
    workers = [each["name"] for each in training.kept_pods() if "-data-" in each["name"]]
    assert len(workers) == 4
    for name in workers:
        assert '"event":"ready"' in training.log(name)


def test_a_killed_data_worker_costs_little_and_loses_nothing(
    stage: DeliveryStage, trainings: list[Delivered]
) -> None:
    training = stage.submit(
        "killed", f"{FAST} --steps 120 --batches 60", data_workers=2, units=5 * BATCH
    )
    trainings.append(training)
    training.wait_for(lambda: len(training.steps(training.rank_pod())) >= 15, 180)
    kill(training.processes("worker")["killed-data-0"])
    training.wait_for_phase("Completed", within=720)
    assert find_wrong_elements(training, batches=60, batch_size=BATCH) == []
    assert max(training.waits(training.rank_pod()).values()) <= 5.0


def test_only_rank_0_writes_where_it_alone_may(
    stage: DeliveryStage, trainings: list[Delivered]
) -> None:
    storage = {"pvc": [CHECKPOINTS | {"path": "/results", "writableByRank0Only": True}]}
    script = "touch /results/of-$RANK && echo wrote it || echo refused"
    # The job is over with its rank 0; the others are to end by themselves.
    training = stage.submit(
        "writing",
        "",
        data_workers=0,
        units=0,
        ranks=2,
        image="muster/allreduce",
        command="/bin/sh",
        args=f"-c '{script}'",
        storage=storage,
        cleanPodPolicy="None",
    )
    trainings.append(training)
    training.wait_for_phase("Completed", within=360)
    training.wait_for(lambda: "wrote it" in training.log("writing-master-0"))
    training.wait_for(lambda: re.search("wrote it|refused", training.log("writing-worker-0")))
    page = stage.reader().page(f"/workloads/{training.id}/details")
    is_enforced = "not enforced here" not in page
    assert ("refused" in training.log("writing-worker-0")) == is_enforced


def test_a_random_run_with_kills_loses_nothing_and_doubles_nothing(stage: DeliveryStage) -> None:
    """A sample of the campaign, whose seed is printed."""
    run_campaign(stage, 1)
