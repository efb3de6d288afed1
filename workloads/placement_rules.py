"""What a project decides about its workloads' node pools and preemptibility."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.db.models.fields.json import KeyTextTransform

from clusters.models import Node, NodePool
from clusters.node_capacity import KAI_POOL_LABEL
from console.texts import join_first
from projects.models import Project
from workloads.manifests.placement import NodePools
from workloads.specs import Preemptibility, Problem, Spec

MOST_POOLS = 500
"""Node pools of a cluster that are read."""
MOST_NAMED = 10


def load_pools(project: Project) -> NodePools:
    """Return the node pools of the project's cluster, and those the project is limited to.

    One query.
    """
    rows = _load_pool_rows(project)
    return NodePools(
        {name: (key, value) for name, key, value, _ in rows},
        tuple(name for name, _, _, allowed in rows if allowed),
    )


def apply_project_defaults(spec: Spec, project: Project) -> Spec:
    """Return the spec with the project's default preemptibility.

    The default applies where the spec sets neither preemptibility nor priority.
    """
    lifecycle = spec.lifecycle
    if (
        project.default_preemptible
        or lifecycle.preemptibility is not None
        or lifecycle.priority is not None
    ):
        return spec
    return replace(
        spec, lifecycle=replace(lifecycle, preemptibility=Preemptibility.NON_PREEMPTIBLE)
    )


def find_pool_problems(
    named_pools: Sequence[tuple[str, str]], project: Project, pools: NodePools
) -> Sequence[Problem]:
    """Return the problems with node pools that a spec names: of those that do not exist, or that
    the project may not use.

    `named_pools` are `list_named_pools`'s, `pools` those of the project's cluster.
    """
    allowed = pools.default_names
    existing = {*pools.labels} | _load_labelled_pools(project.cluster_id)
    return tuple(
        Problem(field, text)
        for field, name in named_pools
        if (text := _describe_problem(name, project, allowed, existing))
    )


def _describe_problem(
    name: str, project: Project, allowed: Sequence[str], existing: set[str]
) -> str:
    if allowed and name not in allowed:
        return (
            f"Project {project.name} may not use the node pool {name}. It may use "
            f"{join_first(allowed, MOST_NAMED)}; name one of these, or none."
        )
    # While a cluster's nodes have not been read yet, its pools are unknown: accept any name.
    if name in existing or (
        not existing and not Node.objects.filter(cluster=project.cluster_id).exists()
    ):
        return ""
    available = (
        f"There are {join_first(sorted(existing), MOST_NAMED)}."
        if existing
        else "It has none: name no pool, and any node will do."
    )
    return f"The cluster {project.cluster.name} has no node pool {name}. {available}"


def list_named_pools(spec: Spec) -> Sequence[tuple[str, str]]:
    """Return the node pools that a spec names, each with its field."""
    master = spec.master_setup if spec.has_master and "node_pools" in spec.master.changes else None
    return [
        (f"{prefix}.node_pools.{index}", name)
        for prefix, setup in (("setup", spec.setup), ("master", master))
        for index, name in enumerate(setup.node_pools if setup else ())
    ]


def _load_pool_rows(project: Project) -> Sequence[tuple[str, str, str, bool]]:
    """Return each pool of the cluster with its label, and whether the project is limited to it."""
    project_pools = Project.node_pools.through.objects.filter(
        project=project.pk, nodepool=OuterRef("pk")
    )
    rows = (
        NodePool.objects.filter(cluster=project.cluster_id)
        .annotate(is_allowed=Exists(project_pools))
        .order_by("name")
    )
    return list(rows.values_list("name", "label_key", "label_value", "is_allowed")[:MOST_POOLS])


def _load_labelled_pools(cluster_id: UUID) -> set[str]:
    """Return KAI's own pools: the values of its label on the nodes."""
    value = KeyTextTransform(KAI_POOL_LABEL, "labels")
    rows = (
        Node.objects.filter(cluster=cluster_id, labels__has_key=KAI_POOL_LABEL)
        .annotate(pool=value)
        .order_by()
    )
    return {name for name in rows.values_list("pool", flat=True).distinct()[:MOST_POOLS] if name}
