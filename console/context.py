"""What every page needs of the frame around it."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject


@dataclass(frozen=True, slots=True)
class Entry:
    """A place of the side navigation, by the name of its address."""

    name: str
    label: str
    icon: str
    restricted: bool = False
    """For administrators of Muster only."""


ENTRIES = (
    Entry("workloads", "Workloads", icon="layers"),
    Entry("environments", "Environments", icon="container"),
    Entry("compute-resources", "Compute resources", icon="cpu"),
    Entry("projects", "Projects", icon="folder-kanban"),
    Entry("clusters", "Clusters", icon="server"),
    Entry("users", "Users", icon="users", restricted=True),
)


@dataclass(frozen=True, slots=True)
class Place:
    """An entry as one page shows it; `here` says that the page belongs to it."""

    url: str
    icon: str
    label: str
    here: bool


def frame(request: HttpRequest) -> dict[str, Any]:
    """The theme a person chose ("light", "dark" or "" for the system's), so that the first paint has it, and the navigation."""
    theme = request.COOKIES.get("muster_theme", "")
    return {"theme": theme if theme in ("light", "dark") else "", "places": SimpleLazyObject(lambda: _places(request))}


def _places(request: HttpRequest) -> list[Place]:
    user = getattr(request, "user", None)
    found = []
    for entry in ENTRIES:
        if entry.restricted and not getattr(user, "is_superuser", False):
            continue
        url = reverse(entry.name)
        here = request.path == url or request.path.startswith(f"{url}/")
        found.append(Place(url, entry.icon, entry.label, here))
    return found
