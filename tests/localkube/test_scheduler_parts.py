"""The parts that need no cluster: what a pod asks for, what a node takes, which devices are
chosen.
"""

from fractions import Fraction
from typing import Any

import pytest

from localkube.metadata import Object
from localkube.scheduler import demand
from localkube.scheduler.demand import BadDemand
from localkube.scheduler.go_durations import parse_go_duration, parse_waiting_time
from localkube.scheduler.node import Node, describe_mismatch, parse_placement_rules
from localkube.scheduler.resource_lists import format_quantity
from scheduling.amounts import format_amount
from scheduling.devices import Devices
from scheduling.shapes import compute_charge

HALF = Fraction(1, 2)


def container(cpu: str, **more: Any) -> Object:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}} | more


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p", "annotations": spec.pop("annotations", {})}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "cores"),
    [
        ({"containers": [container("1"), container("500m")]}, Fraction(3, 2)),
        (
            {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
            Fraction(3),
        ),
        (
            {
                "containers": [container("2")],
                "initContainers": [container("1", restartPolicy="Always"), container("3")],
            },
            Fraction(4),
        ),
        (
            {
                "containers": [container("2")],
                "initContainers": [container("3"), container("2", restartPolicy="Always")],
            },
            Fraction(4),
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, Fraction(5, 4)),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, Fraction(2)),
    ],
)
def test_a_pod_asks_for_the_most_it_needs_at_any_moment(spec: Any, cores: Fraction) -> None:
    assert demand.parse_pod_demand(pod(**spec)).amounts["cpu"] == cores


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu-fraction": "1"},
        {"gpu-fraction": "0"},
        {"gpu-fraction": "nan"},
        {"gpu-memory": "0"},
        {"gpu-memory": "1Gi"},
        {"gpu-fraction-num-devices": "2"},
    ],
)
def test_shares_that_make_no_sense_are_refused(annotations: dict[str, str]) -> None:
    with pytest.raises(BadDemand):
        demand.parse_pod_demand(pod(containers=[container("1")], annotations=annotations))


def test_a_queue_is_charged_for_a_share_as_part_of_each_device() -> None:
    annotations = {"gpu-memory": "4096", "gpu-fraction-num-devices": "2"}
    asks = demand.parse_pod_demand(pod(containers=[container("1")], annotations=annotations))

    assert compute_charge(asks, 16384) == {"cpu": 1, "nvidia.com/gpu": HALF}


def test_the_fullest_device_that_fits_is_chosen() -> None:
    devices = Devices(3)
    devices.use_devices((1,), HALF)

    assert devices.choose_devices(1, HALF) == (1,)
    assert devices.choose_devices(2, HALF) == (0, 1)
    assert devices.choose_devices(3) is None
    assert devices.choose_devices(2) == (0, 2)


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "taken"),
    [
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_taint_keeps_pods_off_that_do_not_tolerate_it(toleration: Object, taken: bool) -> None:
    why = describe_mismatch(
        Node("n", taints=(TAINT,)), parse_placement_rules(pod(tolerations=[toleration]))
    )

    assert (why is None) is taken


def test_a_taint_that_only_prefers_keeps_nobody_off() -> None:
    assert (
        describe_mismatch(
            Node("n", taints=(TAINT | {"effect": "PreferNoSchedule"},)),
            parse_placement_rules(pod()),
        )
        is None
    )


def test_a_cordoned_node_takes_nobody() -> None:
    assert (
        describe_mismatch(Node("n", unschedulable=True), parse_placement_rules(pod()))
        == "node(s) were unschedulable"
    )


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
        ({"key": "size", "operator": "Gt", "values": ["3"]}, True),
        ({"key": "size", "operator": "Lt", "values": ["3"]}, False),
        ({"key": "zone", "operator": "Gt", "values": ["3"]}, False),
        ({"operator": "Exists"}, False),
        ({"key": "zone"}, False),
    ],
)
def test_required_affinity_is_asked_of_the_node_s_labels(expression: Object, holds: bool) -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    why = describe_mismatch(
        Node("n", labels={"zone": "a", "size": "4"}), parse_placement_rules(pod(affinity=affinity))
    )

    assert (why is None) is holds


@pytest.mark.parametrize(
    ("name", "amount", "text", "stored"),
    [
        ("cpu", Fraction(3, 2), "1.5", "1500m"),
        ("memory", Fraction(3 * 2**29), "1.5Gi", "1536Mi"),
        ("nvidia.com/gpu", Fraction(1, 3), "0.333", "334m"),
        ("nvidia.com/gpu", Fraction(2), "2", "2"),
    ],
)
def test_amounts_are_written_for_people_and_for_programs(
    name: str, amount: Fraction, text: str, stored: str
) -> None:
    assert (format_amount(name, amount), format_quantity(name, amount)) == (text, stored)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90s", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("250ms", 0.25),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("5μs", 5e-6),
        ("7200000000000ns", 7200),
        ("+1m", 60),
        ("-1m30s", -90),
        ("2562047h", 2562047 * 3600),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == seconds
    assert parse_waiting_time(text) == max(seconds, 0)


@pytest.mark.parametrize(
    "text", ["", None, "5", "m", "1 m", "1d", "--1s", "1h-1m", "٣s", ".s", "2562048h", "1s" * 21]
)
def test_what_go_cannot_read_is_no_duration(text: object) -> None:
    assert parse_go_duration(text) is None
    assert parse_waiting_time(text) == 0
