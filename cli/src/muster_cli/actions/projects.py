"""The projects that the caller may see."""

from typing import Any

from muster_cli import routes
from muster_cli.errors import NotFound, UsageProblem
from muster_cli.session import Session

SHOWN_NAMES = 10


def get_project(session: Session, name: str = "") -> dict[str, Any]:
    """Return the project of a name, or the only one there is. Raises NotFound and UsageProblem."""
    if name:
        query = {"filterBy": f"name=={name}"}
        projects = list(session.list_items(routes.LIST_PROJECTS, "projects", query=query, limit=1))
        if not projects:
            raise NotFound(
                f"There is no project {name} among those that you may see.",
                "`muster project list` shows them.",
            )
        return projects[0]
    projects = list(session.list_items(routes.LIST_PROJECTS, "projects", limit=SHOWN_NAMES + 1))
    if len(projects) == 1:
        return projects[0]
    if not projects:
        raise NotFound("You are in no project.", "Ask an administrator for a role in one.")
    names = ", ".join(str(each["name"]) for each in projects[:SHOWN_NAMES])
    raise UsageProblem(
        "Say in which project.",
        f"Give --project, or choose one with `muster project set NAME`: {names}"
        + ("…" if len(projects) > SHOWN_NAMES else "."),
    )
