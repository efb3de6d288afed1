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
        found = list(session.list_items(routes.LIST_PROJECTS, "projects", query=query, limit=1))
        if not found:
            raise NotFound(
                f"There is no project {name} among those that you may see.",
                "`muster project list` shows them.",
            )
        return found[0]
    found = list(session.list_items(routes.LIST_PROJECTS, "projects", limit=SHOWN_NAMES + 1))
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound("You are in no project.", "Ask an administrator for a role in one.")
    names = ", ".join(str(each["name"]) for each in found[:SHOWN_NAMES])
    raise UsageProblem(
        "Say in which project.",
        f"Give --project, or choose one with `muster project set NAME`: {names}"
        + ("…" if len(found) > SHOWN_NAMES else "."),
    )
