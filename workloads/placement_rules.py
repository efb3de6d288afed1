"""What a project decides about its workloads' node pools and preemptibility."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.db.models.fields.json import KeyTextTransform

from clusters.models import Node, NodePool
from clusters.node_capacity import KAI_POOL_LABEL
from console.errors import Invalid
from projects.models import Project
from workloads.manifests.placement import NodePools
from workloads.specs import INHERITED, Preemptibility, Problem, Spec

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


def require_allowed_pools(spec: Spec, project: Project) -> None:
    """Raise Invalid for node pools that do not exist or that the project may not use."""
    if pool_problems := find_pool_problems(spec, project):
        raise Invalid([(problem.field, problem.text) for problem in pool_problems])


def find_pool_problems(spec: Spec, project: Project) -> Sequence[Problem]:
    """Return the problems with the node pools that a spec names.

    No query where it names none.
    """
    named_pools = list(_list_named_pools(spec))
    if not named_pools:
        return ()
    rows = _load_pool_rows(project)
    allowed = [name for name, _, _, is_allowed in rows if is_allowed]
    existing = {name for name, *_ in rows} | _load_labelled_pools(project.cluster_id)
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
            f"{_join_names(allowed)}; name one of these, or none."
        )
    # While a cluster's nodes have not been read yet, its pools are unknown: accept any name.
    if name in existing or (
        not existing and not Node.objects.filter(cluster=project.cluster_id).exists()
    ):
        return ""
    available = (
        f"There are {_join_names(sorted(existing))}."
        if existing
        else "It has none: name no pool, and any node will do."
    )
    return f"The cluster {project.cluster.name} has no node pool {name}. {available}"


def _list_named_pools(spec: Spec) -> Iterator[tuple[str, str]]:
    for index, name in enumerate(spec.setup.node_pools):
        yield f"setup.node_pools.{index}", name
    if spec.has_master and spec.master.node_pools is not INHERITED:
        for index, name in enumerate(spec.master.node_pools):
            yield f"master.node_pools.{index}", name


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


def _join_names(names: Sequence[str]) -> str:
    rest_words = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + rest_words
