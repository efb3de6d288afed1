"""What the nodes lack: amounts in all or on one node, labels, tolerated taints."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from workloads import quantities
from workloads.diagnosis.node_capacity import (
    NodeCapacity,
    NodeHolders,
    ResourceAmounts,
    filter_open_nodes,
    find_repelling_taint,
    has_wanted_labels,
    sum_amounts,
)
from workloads.diagnosis.node_refusals import advise_about_taint
from workloads.diagnosis.result import STARTS_BY_ITSELF, Diagnosis, build_sentence
from workloads.kube_objects import Object, clean_text, nested_dict, nested_list

Formatter = Callable[[Decimal], str]

RESOURCE_FORMATTERS: Mapping[str, Formatter] = {
    "gpus": lambda amount: quantities.format_count(amount, "GPU"),
    "cpu": lambda amount: quantities.format_count(amount, "CPU core"),
    "memory": lambda amount: f"{quantities.format_memory(amount)} of memory",
}


def diagnose_by_nodes(
    pod: Object,
    needs: Sequence[ResourceAmounts],
    total: ResourceAmounts,
    nodes: Sequence[NodeCapacity],
    holders: NodeHolders,
) -> Diagnosis | None:
    """Return what the nodes lack; None when by these numbers the pods would fit."""
    spec = nested_dict(pod, "spec")
    usable = filter_open_nodes(nodes, spec)
    if not usable:
        return _diagnose_no_usable_node(spec, [node for node in nodes if node.is_usable])
    offered, free = (
        sum_amounts(node.total for node in usable),
        sum_amounts(node.free for node in usable),
    )
    for attribute, show in RESOURCE_FORMATTERS.items():
        need, total_amount, free_amount = (
            getattr(amounts, attribute) for amounts in (total, offered, free)
        )
        largest_need = max(needs, key=lambda each: getattr(each, attribute))
        largest = max(getattr(node.total, attribute) for node in usable)
        pod_need = getattr(largest_need, attribute)
        if not need:
            continue
        if need > total_amount:
            return _diagnose_shortage(spec, attribute, need, total_amount, nodes)
        if pod_need > largest:
            text = (
                f"A pod needs {show(pod_need)} on one node; the largest node has "
                f"{_format_amount(attribute, largest)}"
            )
            return Diagnosis(
                build_sentence(text),
                "Ask for less for each pod, and for more workers if the work can be spread.",
            )
        if need > free_amount:
            holders_text = (
                _describe_holders(_sum_holders(holders, usable), total_amount - free_amount)
                if attribute == "gpus"
                else ""
            )
            share = _describe_share(attribute, free_amount, total_amount)
            text = f"Needs {show(need)}; {share} free{holders_text}"
            return Diagnosis(
                build_sentence(text),
                f"{STARTS_BY_ITSELF} To start sooner, ask for less or stop another workload.",
            )
    if not any(need.fits_in(node.free) for need in needs for node in usable):
        text = (
            f"Needs {_describe_demand(needs[0])} on one node; as much is free, but not on one node"
        )
        return Diagnosis(
            build_sentence(text), f"{STARTS_BY_ITSELF} Smaller pods find a place sooner."
        )
    return None


def _diagnose_shortage(
    spec: Object, attribute: str, need: Decimal, permitted: Decimal, nodes: Sequence[NodeCapacity]
) -> Diagnosis:
    """Return why the permitted nodes together have too little.

    Either taints or closed nodes keep the pods from more, or the cluster has too little.
    """
    show = RESOURCE_FORMATTERS[attribute]
    having = [
        node
        for node in nodes
        if has_wanted_labels(node, spec) and getattr(node.total, attribute) > 0
    ]
    tainted = [
        (node, taint)
        for node in having
        if node.is_usable and (taint := find_repelling_taint(node, spec))
    ]
    closed = [node for node in having if not node.is_usable]
    lead = (
        f"Needs {show(need)}; the nodes that would take it have "
        f"{_format_amount(attribute, permitted)}"
    )
    if tainted and permitted + sum(getattr(node.total, attribute) for node, _ in tainted) >= need:
        return Diagnosis(
            build_sentence(
                f"{lead}, and others keep it away by a taint that it does not tolerate: "
                f"{_describe_taints(tainted)}"
            ),
            _advise_about_taints(tainted),
        )
    if closed and permitted + sum(getattr(node.total, attribute) for node in closed) >= need:
        closed_words = (
            "1 more has some, and is"
            if len(closed) == 1
            else f"{len(closed)} more have some, and are"
        )
        return Diagnosis(
            build_sentence(f"{lead}; {closed_words} not ready or closed to pods"),
            "Ask the administrator of the cluster, or ask for less.",
        )
    cluster_total = sum((getattr(node.total, attribute) for node in having), Decimal(0))
    return Diagnosis(
        build_sentence(
            f"Needs {show(need)}; the cluster has {_format_amount(attribute, cluster_total)}"
        ),
        "Ask for less: it waits until the cluster has more nodes.",
    )


def _diagnose_no_usable_node(spec: Object, usable: Sequence[NodeCapacity]) -> Diagnosis:
    if not usable:
        return Diagnosis(
            "No node of the cluster is ready to take pods.", "Ask the administrator of the cluster."
        )
    matching = [node for node in usable if has_wanted_labels(node, spec)]
    if not matching:
        return Diagnosis(
            build_sentence(f"No node that can take pods has {_describe_wanted_labels(spec)}"),
            "Choose another node type or other node pools, or none.",
        )
    tainted = [(node, taint) for node in matching if (taint := find_repelling_taint(node, spec))]
    return Diagnosis(
        build_sentence(
            "Every node where it could be keeps it away by a taint that it does not tolerate: "
            f"{_describe_taints(tainted)}"
        ),
        _advise_about_taints(tainted),
    )


def _describe_wanted_labels(spec: Object) -> str:
    """Describe the labels that a pod requires."""
    labels = [f"{key}={value}" for key, value in nested_dict(spec, "nodeSelector").items()]
    required = nested_dict(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for expression in (
        each
        for term in nested_list(required, "nodeSelectorTerms")
        for each in nested_list(term, "matchExpressions")
    ):
        values = expression.get("values")
        labels.append(
            (
                f"{expression.get('key')} {expression.get('operator')} "
                f"{', '.join(map(str, values or ()))}"
            ).strip()
        )
    return clean_text(f"the label {', '.join(labels)}", 200)


def _describe_taints(tainted: Sequence[tuple[NodeCapacity, Object]]) -> str:
    return clean_text("; ".join(dict.fromkeys(_describe_taint(taint) for _, taint in tainted)), 200)


def _advise_about_taints(tainted: Sequence[tuple[NodeCapacity, Object]]) -> str:
    helps = dict.fromkeys(advise_about_taint(str(taint.get("key"))) for _, taint in tainted)
    return " ".join(list(helps)[:2])


def _describe_taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _format_amount(attribute: str, amount: Decimal) -> str:
    return (
        quantities.format_memory(amount)
        if attribute == "memory"
        else quantities.format_number(amount)
    )


def _describe_share(attribute: str, free: Decimal, total_amount: Decimal) -> str:
    """Describe what is free of a total: "1 of 4 is", "none of 4 is", "2 of 4 are"."""
    if not free:
        return f"none of {_format_amount(attribute, total_amount)} is"
    return (
        f"{_format_amount(attribute, free)} of {_format_amount(attribute, total_amount)} "
        f"{'is' if free <= 1 or attribute == 'memory' else 'are'}"
    )


def _sum_holders(holders: NodeHolders, nodes: Sequence[NodeCapacity]) -> Mapping[str, Decimal]:
    """Return the GPUs that other projects hold on these nodes together, by name."""
    sums: dict[str, Decimal] = {}
    for node in nodes:
        for name, gpus in holders.get(node.name, {}).items():
            sums[name] = sums.get(name, Decimal(0)) + gpus
    return sums


def _describe_holders(holders: Mapping[str, Decimal], used: Decimal) -> str:
    """Describe who holds the GPUs that are not free.

    Projects by name, then the other projects together, then this project. "" where they hold more
    than is used: the two were counted at different moments.
    """
    rest = used - sum(holders.values(), Decimal(0))
    if rest < 0:
        return ""
    parts = [
        f"{clean_text(name, 80)} holds {quantities.format_number(gpus)}"
        for name, gpus in sorted(holders.items())
        if name and gpus
    ]
    hidden = holders.get("", Decimal(0))
    if hidden:
        parts.append(
            f"{'further' if parts else 'other'} projects hold {quantities.format_number(hidden)}"
        )
    if holders and rest > 0:
        parts.append(f"this project holds {quantities.format_number(rest)}")
    return "".join(f"; {each}" for each in parts)


def _describe_demand(need: ResourceAmounts) -> str:
    texts = [
        show(getattr(need, attribute))
        for attribute, show in RESOURCE_FORMATTERS.items()
        if getattr(need, attribute)
    ]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
