"""The changes of a submission that may let it start sooner, each as the spec of a copy. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import zip_longest

from workloads.manifests.placement import NodePools
from workloads.specs import Gpus, Preemptibility, Priority, Spec
from workloads.specs.gpu_totals import undo_plan

MOST_POOLS = 3
"""Other node pools that are tried, by name."""
_HALF = Decimal("0.5")
_SMALLEST_PORTION = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A spec with one thing otherwise. `key` names the change in addresses, `title` to people."""

    key: str
    title: str
    spec: Spec


def list_spec_changes(spec: Spec, pools: NodePools, *, has_kai: bool) -> Sequence[SpecChange]:
    """Return the changes that a submission allows: the gentlest of each sort first.

    Then come the next of each sort, so that a sort with many leaves room for the others. `pools`
    are those of its cluster. Whether policies and cluster allow them is not judged.
    """
    requested_spec = undo_plan(spec)
    rounds = zip_longest(*(build(requested_spec, pools) for build in _CHANGES))
    return [
        change
        for each in rounds
        for change in each
        if change is not None and (has_kai or change.key not in _FOR_KAI)
    ]


def find_spec_change(spec: Spec, pools: NodePools, key: str) -> SpecChange | None:
    """Return the change of this key; None where the submission has no such change."""
    changes = list_spec_changes(spec, pools, has_kai=True)
    return next((each for each in changes if each.key == key), None)


def _change_preemptibility(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    if not spec.is_preemptible:
        lifecycle = replace(spec.lifecycle, preemptibility=Preemptibility.PREEMPTIBLE)
        title = "As preemptible work, which may use what others leave and gives it back"
        yield SpecChange("preemptible", title, replace(spec, lifecycle=lifecycle))


def _change_priority(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    """Yield the next higher priority that keeps whether it is preemptible."""
    now = spec.lifecycle.priority
    number = 0 if now is None else now.number
    higher = next((each for each in Priority if each.number > max(number, _USUAL_NUMBER)), None)
    if higher is None:
        return
    lifecycle = replace(
        spec.lifecycle, priority=higher, preemptibility=spec.effective_preemptibility
    )
    title = f"With priority {higher.label}, which may take GPUs from lower work of its project"
    yield SpecChange("priority", title, replace(spec, lifecycle=lifecycle))


_USUAL_NUMBER = 50
"""What counts where a workload names no priority, KAI's `train`."""
_FOR_KAI = frozenset({"preemptible", "priority"})
"""Changes that say nothing to the default scheduler, which heeds neither."""


def _lower_minimum(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    elastic = spec.elastic
    if elastic is None:
        return
    least = 1 + int(spec.has_master)
    for key, minimum in (("minimum-half", elastic.min_pods // 2), ("minimum-least", least)):
        if least <= minimum < elastic.min_pods and (key == "minimum-least" or minimum > least):
            title = f"With {_count_nouns(minimum, 'pod')} at least instead of {elastic.min_pods:,}"
            yield SpecChange(key, title, replace(spec, elastic=replace(elastic, min_pods=minimum)))


def _use_fewer_workers(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    if not spec.is_distributed or spec.elastic is not None or spec.total_gpus is not None:
        return
    numbers = {
        spec.workers * 3 // 4: "workers-most",
        spec.workers // 2: "workers-half",
        spec.workers // 4: "workers-quarter",
    }
    for workers, key in numbers.items():
        if 1 <= workers < spec.workers:
            title = f"With {_count_nouns(workers, 'worker')} instead of {spec.workers:,}"
            yield SpecChange(key, title, replace(spec, workers=workers))


def _use_fewer_runs_at_once(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    if spec.is_distributed or min(spec.runs, spec.parallelism) < 2:
        return
    now = min(spec.runs, spec.parallelism)
    parallelism = now // 2
    title = f"With {_count_nouns(parallelism, 'run')} at once instead of {now:,}"
    yield SpecChange("parallelism-half", title, replace(spec, parallelism=parallelism))


def _use_fewer_gpus_in_all(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    total = spec.total_gpus
    for key, wanted in (("total-half", (total or 0) // 2), ("total-quarter", (total or 0) // 4)):
        if total is not None and wanted >= 1:
            title = f"With {_count_nouns(wanted, 'GPU')} in all instead of {total:,}"
            yield SpecChange(key, title, replace(spec, total_gpus=wanted))


def _use_fewer_gpus_each(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    gpus = spec.setup.compute.gpus
    if spec.total_gpus is not None or gpus.is_shared or gpus.device_count < 2:
        return
    devices = gpus.device_count // 2
    for key, number in (("gpus-half", devices), ("gpus-one", 1)):
        if key == "gpus-half" or devices > 1:
            words = f"{_count_nouns(number, 'GPU')} for each {_name_pod(spec)}"
            title = f"With {words} instead of {gpus.device_count}"
            yield SpecChange(key, title, _set_gpus(spec, replace(gpus, devices=number)))


def _use_part_of_gpu(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    gpus = spec.setup.compute.gpus
    if gpus.memory or gpus.device_count != 1 or spec.total_gpus is not None:
        return
    now = gpus.effective_portion or Decimal(1)
    portion = (now * _HALF).quantize(Decimal("0.01"))
    if portion >= _SMALLEST_PORTION:
        words = f"{portion.normalize():f} of a GPU for each {_name_pod(spec)}"
        title = f"With {words} instead of {now.normalize():f}"
        yield SpecChange("portion-half", title, _set_gpus(spec, replace(gpus, portion=portion)))


def _leave_host_network(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    setup = spec.setup
    if spec.find_host_port(setup) is not None:
        security = replace(setup.security, host_network=False)
        title = "Without the host's network, on which each pod takes a port of a node for itself"
        yield SpecChange(
            "own-network", title, replace(spec, setup=replace(setup, security=security))
        )


def _use_other_pools(spec: Spec, pools: NodePools) -> Iterator[SpecChange]:
    named = spec.setup.node_pools
    if named:
        title = "In any node pool of its project" if pools.default_names else "On any node"
        yield SpecChange("pools-any", title, _set_pools(spec, ()))
    allowed = pools.default_names or sorted(pools.labels)
    others = [name for name in allowed if name not in named]
    # Without a name it may use each of them already.
    for name in others[:MOST_POOLS] if named else ():
        yield SpecChange(f"pool-{name}", f"In node pool {name}", _set_pools(spec, (name,)))


def _name_pod(spec: Spec) -> str:
    """Name the pods of the setup; a master may have its own."""
    return "worker" if spec.is_distributed else "pod"


def _set_pools(spec: Spec, names: tuple[str, ...]) -> Spec:
    return replace(spec, setup=replace(spec.setup, node_pools=names))


def _set_gpus(spec: Spec, gpus: Gpus) -> Spec:
    compute = replace(spec.setup.compute, gpus=gpus)
    return replace(spec, setup=replace(spec.setup, compute=compute))


def _count_nouns(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


_CHANGES: Sequence[Callable[[Spec, NodePools], Iterator[SpecChange]]] = (
    _lower_minimum,
    _change_preemptibility,
    _change_priority,
    _use_other_pools,
    _leave_host_network,
    _use_fewer_workers,
    _use_fewer_runs_at_once,
    _use_fewer_gpus_in_all,
    _use_part_of_gpu,
    _use_fewer_gpus_each,
)
