"""A total of GPUs as machines: whole, the largest first, and the nearest totals that can be."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.specs import (
    Architecture,
    Compute,
    Configuration,
    Environment,
    Framework,
    Gpus,
    MasterChanges,
    Setup,
    Spec,
    gpu_totals,
)
from workloads.specs.fields.numbers import MAX_TOTAL_GPUS, MAX_WORKERS
from workloads.specs.gpu_totals import MachineSize, NotWhole, plan_machines

WORKERS = st.one_of(
    st.integers(1, 16).map(Fraction), st.sampled_from([Fraction(1, 2), Fraction(1, 3)])
)


@st.composite
def sizes(draw: st.DrawFn) -> MachineSize:
    worker = draw(WORKERS)
    master = draw(st.sampled_from([Fraction(0), worker, Fraction(1)]))
    most = draw(st.none() | st.integers(0, 50))
    return MachineSize(worker, master, most, draw(st.integers(0, 1)) if master else 1)


TOTALS = st.integers(1, 200)
SIZES = st.lists(sizes(), min_size=1, max_size=4, unique_by=lambda size: size.worker)


def is_whole(total: int, offered: list[MachineSize]) -> bool:
    """Tell whether machines make a total, by trying every number of workers."""
    return any(
        size.master + size.worker * workers == total
        for size in offered
        for workers in range(size.fewest, 3 * total + 1)
    )


def find_refusal(total: int, offered: list[MachineSize]) -> tuple[int, ...] | None:
    """Return the nearest totals where this one is refused."""
    try:
        plan_machines(total, offered)
    except NotWhole as error:
        return error.nearest
    return None


@given(TOTALS, SIZES)
def test_the_machines_have_exactly_the_total_or_it_is_refused(
    total: int, offered: list[MachineSize]
) -> None:
    try:
        plan = plan_machines(total, offered)
    except NotWhole:
        assert not is_whole(total, offered)
        return
    assert plan.size.master + plan.size.worker * plan.workers == total
    assert plan.size.fewest <= plan.workers <= MAX_WORKERS


@given(TOTALS, SIZES)
def test_no_larger_machine_would_have_done_as_well(total: int, offered: list[MachineSize]) -> None:
    try:
        plan = plan_machines(total, offered)
    except NotWhole:
        return
    for size in offered:
        workers = size.count_workers(total)
        if size.worker > plan.size.worker and workers is not None:
            assert not size.has_room(workers)


@given(TOTALS, SIZES)
def test_the_nearest_totals_can_be_had_and_none_between(
    total: int, offered: list[MachineSize]
) -> None:
    nearest = find_refusal(total, offered)
    if nearest is None:
        return
    below = [each for each in nearest if each < total]
    above = [each for each in nearest if each > total]
    assert max(len(below), len(above)) <= 1
    assert len(nearest) == len(below) + len(above)
    assert all(is_whole(each, offered) for each in nearest)
    low, high = (below or [0])[0], (above or [total + 40])[0]
    assert not any(is_whole(each, offered) for each in range(low + 1, high))


@given(st.integers(1, MAX_TOTAL_GPUS), SIZES)
def test_any_total_is_answered_within_bounds(total: int, offered: list[MachineSize]) -> None:
    nearest = find_refusal(total, offered)
    if nearest is None:
        assert plan_machines(total, offered).workers <= MAX_WORKERS
    else:
        assert len(nearest) <= 2


def test_largest_whole_machines_go_first_where_there_are_enough() -> None:
    nodes = {8: 1, 4: 10}
    planned = plan_machines(16, gpu_totals.list_node_sizes(a_spec(16), nodes))
    assert (planned.size.worker, planned.workers) == (4, 3)
    nodes = {8: 2, 4: 10}
    planned = plan_machines(16, gpu_totals.list_node_sizes(a_spec(16), nodes))
    assert (planned.size.worker, planned.workers) == (8, 1)


def a_spec(total: int, gpus: Gpus | None = None, **more: object) -> Spec:
    fields: dict[str, object] = {
        "name": "a",
        "project": "p",
        "namespace": "n",
        "queue": "q",
        "setup": Setup(Environment("x"), Compute(gpus or Gpus())),
        "architecture": Architecture.DISTRIBUTED,
        "framework": Framework.PYTORCH,
        "total_gpus": total,
    }
    return Spec(**(fields | more))  # type: ignore[arg-type]


def plan_spec(spec: Spec, nodes: dict[int, int] | None = None) -> Spec:
    own = spec.setup.compute.gpus.device_count
    offered = (
        gpu_totals.list_own_sizes(spec) if own else gpu_totals.list_node_sizes(spec, nodes or {})
    )
    assert spec.total_gpus is not None
    return gpu_totals.apply_plan(spec, plan_machines(spec.total_gpus, offered))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (a_spec(16, Gpus(8)), "16 GPUs = 2 machines × 8: one master, one worker"),
        (a_spec(32), "32 GPUs = 4 machines × 8: one master, 3 workers"),
        (
            a_spec(8, configuration=Configuration.WORKERS_ONLY),
            "8 GPUs = 1 machine × 8: one worker",
        ),
        (
            a_spec(17, Gpus(8), master=MasterChanges(gpus=Gpus(1))),
            "17 GPUs = 1 + 2 machines × 8: one master, 2 workers",
        ),
        (
            a_spec(16, framework=Framework.MPI),
            "16 GPUs = 2 machines × 8: 2 workers, and a launcher without GPUs",
        ),
        (
            a_spec(2, Gpus(1, portion=Decimal("0.5"))),
            "2 GPUs = 4 machines × 0.5: one master, 3 workers",
        ),
    ],
)
def test_a_total_is_said_as_machines(spec: Spec, sentence: str) -> None:
    planned = plan_spec(spec, {8: 4})
    assert gpu_totals.describe_machines(planned) == sentence
    assert planned.totals.gpus == spec.total_gpus


@pytest.mark.parametrize(
    "spec",
    [
        a_spec(16),
        a_spec(16, Gpus(8)),
        a_spec(16, framework=Framework.MPI),
        a_spec(16, master=MasterChanges(command=("lead",))),
    ],
)
def test_a_plan_undone_is_what_was_asked_for(spec: Spec) -> None:
    assert gpu_totals.undo_plan(plan_spec(spec, {8: 4})) == spec
