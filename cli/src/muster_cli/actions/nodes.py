"""How full the nodes are, and what holds most."""

from typing import Any

from muster_cli import routes
from muster_cli.actions import workloads
from muster_cli.errors import NotFound
from muster_cli.session import Session


def list_nodes(session: Session, cluster: str = "") -> list[dict[str, Any]]:
    """Return the nodes, of one cluster or all, those with most GPUs allocated first."""
    query = {"filterBy": f"clusterName=={cluster}" if cluster else None}
    nodes = list(session.list_items(routes.LIST_NODES, "nodes", query=query))
    return sorted(nodes, key=lambda node: (-_read_gpus(node), str(node["name"])))


def get_node(session: Session, name: str) -> dict[str, Any]:
    """Return the first node of a name. Raises NotFound."""
    query = {"filterBy": f"name=={name}"}
    nodes = list(session.list_items(routes.LIST_NODES, "nodes", query=query, limit=1))
    if not nodes:
        raise NotFound(
            f"There is no node {name} in the clusters that you may see.",
            "`muster top node` shows them.",
        )
    return nodes[0]


def _read_gpus(node: dict[str, Any]) -> float:
    return float((node.get("gpuInfo") or {}).get("allocated") or 0)


def list_holders(session: Session, project: str, limit: int) -> list[dict[str, Any]]:
    """Return the workloads that hold most GPUs, those with most first."""
    filter_by = workloads.build_filter(project=project, conditions=["allocatedGPU>=0.001"])
    return list(
        workloads.list_workloads(session, filter_by=filter_by, sort="-allocatedGPU", limit=limit)
    )
