"""What every page needs of the frame around it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from console.templatetags.muster import may


@dataclass(frozen=True, slots=True)
class Entry:
    """A place of the side navigation, by the name of its address."""

    name: str
    label: str
    icon: str
    needs: str = ""
    """The permission without which it is not offered, as "users:view"."""
    group: str = ""
    """One of GROUPS; its heading stands above it."""


WORK, ORGANISATION, ACCESS = "Workload manager", "Organisation", "Access"
GROUPS = ("", WORK, ORGANISATION, ACCESS)
"""The headings in their order; what has none stands above all of them."""

ENTRIES = (
    Entry("overview", "Overview", icon="layout-dashboard", needs="overview:view"),
    Entry("workloads", "Workloads", icon="layers", group=WORK),
    Entry("templates", "Templates", icon="bookmark", group=WORK),
    Entry("environments", "Environments", icon="container", group=WORK),
    Entry("compute-resources", "Compute resources", icon="cpu", group=WORK),
    Entry("data-sources", "Data sources", icon="database", group=WORK),
    Entry("credentials", "Credentials", icon="key", group=WORK),
    Entry("policies", "Policies", icon="scale", group=WORK),
    Entry("projects", "Projects", icon="folder-kanban", group=ORGANISATION),
    Entry(
        "departments", "Departments", icon="network", needs="departments:view", group=ORGANISATION
    ),
    Entry("node-pools", "Node pools", icon="boxes", needs="node-pools:view", group=ORGANISATION),
    Entry("clusters", "Clusters", icon="server", group=ORGANISATION),
    Entry("users", "Users", icon="users", needs="users:view", group=ACCESS),
    Entry("accounts", "Service accounts", icon="bot", needs="service-accounts:view", group=ACCESS),
    Entry(
        "access-rules", "Access rules", icon="key-round", needs="access-rules:view", group=ACCESS
    ),
    Entry("roles", "Roles", icon="shield-check", needs="access-rules:view", group=ACCESS),
    Entry("audit", "Audit log", icon="scroll-text", needs="audit:view", group=ACCESS),
    Entry("settings", "Settings", icon="settings", needs="settings:view", group=ACCESS),
)


@dataclass(frozen=True, slots=True)
class Place:
    """An entry as one page shows it; `here` says that the page belongs to it."""

    url: str
    icon: str
    label: str
    here: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Entries below one heading, which may be ""."""

    heading: str
    places: Sequence[Place]


def frame(request: HttpRequest) -> dict[str, Any]:
    """The theme a person chose ("light", "dark" or "" for the system's), so that the first paint
    has it, and the navigation.
    """
    theme = request.COOKIES.get("muster_theme", "")
    return {
        "theme": theme if theme in ("light", "dark") else "",
        "navigation": SimpleLazyObject(lambda: _navigation(request)),
    }


def _navigation(request: HttpRequest) -> list[Group]:
    user = getattr(request, "user", None)
    offered = [entry for entry in ENTRIES if not entry.needs or may(user, entry.needs)]
    found = [
        Group(heading, [_place(request, entry) for entry in offered if entry.group == heading])
        for heading in GROUPS
    ]
    return [group for group in found if group.places]


def _place(request: HttpRequest, entry: Entry) -> Place:
    url = reverse(entry.name)
    return Place(
        url, entry.icon, entry.label, request.path == url or request.path.startswith(f"{url}/")
    )
