"""A total of GPUs as machines: how many pods with how many GPUs each make it whole. Pure.

Every pod with GPUs stands for a machine. Either the compute resource says how many GPUs a pod has,
or a pod takes a whole node of one of the sizes that there are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from workloads.quantities import format_count
from workloads.specs.fields.numbers import MAX_WORKERS
from workloads.specs.pod_setup import Compute, Gpus, Setup
from workloads.specs.spec import UNCHANGED, MasterChanges, Spec

TOTAL_FIELD = "total_gpus"


@dataclass(frozen=True, slots=True)
class MachineSize:
    """A number of GPUs that a worker can have.

    `master` is what the master has beside such workers; 0 where there is none, or it has none.
    `most` is how many machines of the size there are room for; None where nobody counted. `fewest`
    is 0 where the master may be alone.
    """

    worker: Fraction
    master: Fraction = Fraction(0)
    most: int | None = None
    fewest: int = 1

    def count_workers(self, total: int) -> int | None:
        """Return how many workers make the total whole; None where none can."""
        number = (total - self.master) / self.worker
        is_possible = number.denominator == 1 and self.fewest <= number <= MAX_WORKERS
        return int(number) if is_possible else None

    def has_room(self, workers: int) -> bool:
        """Tell whether there are as many machines of the size, the master's among them."""
        return self.most is None or workers + int(self.master == self.worker) <= self.most

    def list_neighbours(self, total: int) -> Iterator[int]:
        """Yield the next smaller and the next larger total that are whole with this size."""
        at = (total - self.master) / self.worker
        # A whole total comes back after so many workers at the latest.
        period = min(self.worker.denominator * self.master.denominator, MAX_WORKERS)
        for first, step in ((-(-at // 1) - 1, -1), (at // 1 + 1, 1)):
            start = int(min(max(first, self.fewest), MAX_WORKERS))
            for workers in range(start, start + step * period, step):
                candidate = self.master + self.worker * workers
                is_counted = self.fewest <= workers <= MAX_WORKERS
                if is_counted and candidate.denominator == 1 and candidate != total:
                    yield int(candidate)
                    break


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """So many workers of one size, which make a total whole."""

    size: MachineSize
    workers: int


class NotWhole(Exception):
    """No machines make the total. `nearest` are the totals below and above it that can be had."""

    def __init__(self, nearest: Sequence[int]) -> None:
        super().__init__()
        self.nearest = tuple(nearest)


def plan_machines(total: int, sizes: Sequence[MachineSize]) -> MachinePlan:
    """Return the machines for a total of GPUs: the largest that make it whole.

    Sizes of which there are enough machines go before larger ones of which there are not. Raises
    NotWhole.
    """
    plans = [
        MachinePlan(size, workers)
        for size in sorted(sizes, key=lambda each: each.worker, reverse=True)
        if (workers := size.count_workers(total)) is not None
    ]
    if not plans:
        raise NotWhole(find_nearest(total, sizes))
    return next((plan for plan in plans if plan.size.has_room(plan.workers)), plans[0])


def find_nearest(total: int, sizes: Sequence[MachineSize]) -> Sequence[int]:
    """Return the nearest total below and the nearest above that machines make whole."""
    totals = {neighbour for size in sizes for neighbour in size.list_neighbours(total)}
    below = max((each for each in totals if each < total), default=None)
    above = min((each for each in totals if each > total), default=None)
    return [each for each in (below, above) if each is not None]


def asks_for_gpus(compute: Compute) -> bool:
    """Tell whether a compute resource says how many GPUs a pod has."""
    return bool(compute.gpus.device_count)


def list_own_sizes(spec: Spec) -> Sequence[MachineSize]:
    """Return the one size of a spec whose compute resource asks for GPUs."""
    worker = count_gpus(spec.setup)
    master = count_gpus(spec.master_setup) if spec.has_master else Fraction(0)
    if worker <= 0:
        return []
    master = max(master, Fraction(0))
    return [MachineSize(worker, master, fewest=_count_fewest_workers(spec, master))]


def list_node_sizes(spec: Spec, nodes: Mapping[int, int]) -> Sequence[MachineSize]:
    """Return the sizes of whole nodes, for a spec whose compute resource asks for no GPUs.

    `nodes` are numbers of nodes by their GPUs. The master has a machine as the workers have, unless
    it has GPUs of its own, or leads without being a rank, as a launcher does.
    """
    own = count_gpus(spec.master_setup) if spec.has_master else Fraction(0)
    follows = spec.has_master and not own and _has_ranked_master(spec)
    return [
        MachineSize(
            Fraction(size),
            master := Fraction(size) if follows else own,
            sum(count * (gpus // size) for gpus, count in nodes.items()),
            _count_fewest_workers(spec, master),
        )
        for size in nodes
        if size > 0
    ]


def _count_fewest_workers(spec: Spec, master: Fraction) -> int:
    return 0 if master and spec.can_master_be_alone else 1


def apply_plan(spec: Spec, plan: MachinePlan) -> Spec:
    """Return the spec with the workers of a plan and, where it asked for no GPUs, theirs."""
    spec = replace(spec, workers=plan.workers)
    if asks_for_gpus(spec.setup.compute):
        return spec
    devices = int(plan.size.worker)
    if spec.has_master and not plan.size.master:
        spec = replace(spec, master=MasterChanges(**spec.master.changes | {"gpus": Gpus()}))
    return replace(spec, machine_gpus=devices, setup=_set_gpus(spec.setup, Gpus(devices)))


def undo_plan(spec: Spec) -> Spec:
    """Return a spec as it was asked for: without what was worked out of its total of GPUs."""
    if spec.total_gpus is None:
        return spec
    spec = replace(spec, workers=1)
    if spec.machine_gpus is None:
        return spec
    changes = spec.master.changes
    if changes.get("gpus") == Gpus():
        del changes["gpus"]
    return replace(
        spec,
        machine_gpus=None,
        master=MasterChanges(**changes) if changes else UNCHANGED,
        setup=_set_gpus(spec.setup, Gpus()),
    )


def describe_machines(spec: Spec) -> str:
    """Describe a total of GPUs as machines: "16 GPUs = 2 machines × 8: one master, one worker".

    "" for a spec without a total.
    """
    if spec.total_gpus is None:
        return ""
    worker = count_gpus(spec.setup)
    master = count_gpus(spec.master_setup) if spec.has_master else Fraction(0)
    leader = spec.framework.master_name if spec.framework else "master"
    total = format_count(spec.total_gpus, "GPU")
    if not spec.workers:
        return f"{total} = 1 machine × {format_number(master)}: one {leader}"
    words = _count_pods(spec.workers, "worker")
    if spec.has_master and master == worker:
        machines = format_count(spec.workers + 1, "machine")
        return f"{total} = {machines} × {format_number(worker)}: one {leader}, {words}"
    machines = f"{format_count(spec.workers, 'machine')} × {format_number(worker)}"
    if not master:
        beside = f", and a {leader} without GPUs" if spec.has_master else ""
        return f"{total} = {machines}: {words}{beside}"
    return f"{total} = {format_number(master)} + {machines}: one {leader}, {words}"


def _has_ranked_master(spec: Spec) -> bool:
    return spec.framework is None or spec.framework.adapter.is_leader_ranked


def count_total(spec: Spec) -> Fraction:
    """Return the GPUs of all pods together; 0 where they are asked for by their memory."""
    return sum((count_gpus(setup) * pods for setup, pods in spec.pod_kinds), Fraction(0))


def count_gpus(setup: Setup) -> Fraction:
    gpus = setup.compute.gpus
    if gpus.memory:
        return Fraction(0)
    portion = Decimal(1) if gpus.portion is None else gpus.portion
    return gpus.device_count * Fraction(portion)


def _set_gpus(setup: Setup, gpus: Gpus) -> Setup:
    return replace(setup, compute=replace(setup.compute, gpus=gpus))


def _count_pods(count: int, noun: str) -> str:
    return f"one {noun}" if count == 1 else format_count(count, noun)


def format_number(number: Fraction) -> str:
    return f"{float(number):,.2f}".rstrip("0").rstrip(".")
