"""What a process is told by its environment."""

import json

import pytest

from muster_delivery.errors import DeliveryError
from muster_delivery.settings import read_settings

BASE = {
    "MUSTER_DELIVERY_ROLE": "rank",
    "MUSTER_DELIVERY_WORKERS": "a-data-0.a-data:7077,127.70.1.2:81",
    "MUSTER_DELIVERY_KEY": "5e" * 32,
    "MUSTER_DELIVERY_WORLD": "4",
}
CLUSTER = {"chief": ["c:1"], "worker": ["w:1", "w:2"], "ps": ["p:1"]}


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, (0, 4)),
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"JOB_COMPLETION_INDEX": "2"}, (2, 4)),
        (
            {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}})},
            (2, 3),
        ),
        (
            {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": "chief", "index": 0}})},
            (0, 3),
        ),
        ({"TF_CONFIG": "no JSON"}, (0, 4)),
    ],
)
def test_a_rank_finds_its_place(variables: dict[str, str], place: tuple[int, int]) -> None:
    settings = read_settings({**BASE, **variables})
    assert settings is not None
    assert (settings.number, settings.world) == place
    assert settings.workers == (("a-data-0.a-data", 7077), ("127.70.1.2", 81))


def test_a_data_worker_is_not_taken_for_a_rank() -> None:
    variables = {"MUSTER_DELIVERY_ROLE": "worker", "JOB_COMPLETION_INDEX": "1", "RANK": "0"}
    settings = read_settings({**BASE, **variables, "MUSTER_DELIVERY_UNITS": "90"})
    assert settings is not None
    assert (settings.role, settings.number, settings.world, settings.units) == ("worker", 1, 4, 90)


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"MUSTER_DELIVERY_ROLE": "boss"}, "neither worker nor rank"),
        ({"MUSTER_DELIVERY_WORKERS": ""}, "lists 0 data workers"),
        ({"MUSTER_DELIVERY_WORKERS": "a:b"}, "is no host and port"),
        ({"MUSTER_DELIVERY_KEY": "5ecre7"}, "MUSTER_DELIVERY_KEY"),
        ({"RANK": "8", "WORLD_SIZE": "8"}, "rank 8 of a world of 8"),
        ({"MUSTER_DELIVERY_ROLE": "worker", "JOB_COMPLETION_INDEX": "2"}, "none of the 2"),
    ],
)
def test_what_makes_no_sense_is_refused(variables: dict[str, str], text: str) -> None:
    with pytest.raises(DeliveryError, match=text) as refusal:
        read_settings({**BASE, **variables})
    assert "5ecre7" not in str(refusal.value)


def test_outside_muster_there_are_none() -> None:
    assert read_settings({"RANK": "0"}) is None
