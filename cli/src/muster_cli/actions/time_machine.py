"""A past moment: who waited and why, what ran where, and the quotas of then."""

from datetime import datetime
from typing import Any

from muster_cli import routes
from muster_cli.actions.nodes import get_node
from muster_cli.actions.projects import get_project
from muster_cli.actions.workloads import get_workload
from muster_cli.session import Session


def get_moment(
    session: Session, at: datetime | None, *, project: str = "", node: str = "", workload: str = ""
) -> dict[str, Any]:
    """Return a moment of everything, a project, a node or a workload; None is the last recorded."""
    query: dict[str, Any] = {"limit": 500}
    if at is not None:
        query["at"] = at.isoformat(timespec="seconds")
    if workload:
        query["workload"] = get_workload(session, workload, project)["id"]
    elif node:
        node_item = get_node(session, node)
        query["node"] = f"{node_item['clusterUuid']}/{node_item['name']}"
    elif project:
        query["project"] = get_project(session, project)["id"]
    moment: dict[str, Any] = session.call(routes.GET_TIME_MACHINE, query=query)
    return moment
