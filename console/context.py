"""The template context of the frame around every page: theme and navigation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from console.templatetags.muster import has_permission


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """An entry of the side navigation, by its URL name."""

    name: str
    label: str
    icon: str
    permission: str = ""
    """The permission without which it is not offered, as "users:view"; "" needs none."""
    group: str = ""
    """One of GROUPS; its heading stands above the entry."""


WORK, ORGANISATION, ACCESS = "Workload manager", "Organisation", "Access"
GROUPS = ("", WORK, ORGANISATION, ACCESS)
"""The headings in their order; entries without a heading stand above all of them."""

NAVIGATION = (
    NavigationEntry("overview", "Overview", icon="layout-dashboard", permission="overview:view"),
    NavigationEntry("usage", "GPU hours", icon="gauge", permission="workloads:view"),
    NavigationEntry("workloads", "Workloads", icon="layers", group=WORK),
    NavigationEntry("templates", "Templates", icon="bookmark", group=WORK),
    NavigationEntry("environments", "Environments", icon="container", group=WORK),
    NavigationEntry("compute-resources", "Compute resources", icon="cpu", group=WORK),
    NavigationEntry("data-sources", "Data sources", icon="database", group=WORK),
    NavigationEntry("credentials", "Credentials", icon="key", group=WORK),
    NavigationEntry("policies", "Policies", icon="scale", group=WORK),
    NavigationEntry("projects", "Projects", icon="folder-kanban", group=ORGANISATION),
    NavigationEntry(
        "departments",
        "Departments",
        icon="network",
        permission="departments:view",
        group=ORGANISATION,
    ),
    NavigationEntry(
        "node-pools", "Node pools", icon="boxes", permission="node-pools:view", group=ORGANISATION
    ),
    NavigationEntry("clusters", "Clusters", icon="server", group=ORGANISATION),
    NavigationEntry("users", "Users", icon="users", permission="users:view", group=ACCESS),
    NavigationEntry(
        "accounts", "Service accounts", icon="bot", permission="service-accounts:view", group=ACCESS
    ),
    NavigationEntry(
        "access-rules",
        "Access rules",
        icon="key-round",
        permission="access-rules:view",
        group=ACCESS,
    ),
    NavigationEntry(
        "roles", "Roles", icon="shield-check", permission="access-rules:view", group=ACCESS
    ),
    NavigationEntry("rest-reference", "REST API", icon="plug-zap", group=ACCESS),
    NavigationEntry(
        "audit", "Audit log", icon="scroll-text", permission="audit:view", group=ACCESS
    ),
    NavigationEntry(
        "settings", "Settings", icon="settings", permission="settings:view", group=ACCESS
    ),
)


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """An entry as one page shows it; `is_current` says that the page belongs to it."""

    url: str
    icon: str
    label: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class NavigationGroup:
    """The links below one heading, which may be ""."""

    heading: str
    links: Sequence[NavigationLink]


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the theme and the navigation, for every template.

    The theme is the one a person chose ("light", "dark", or "" for the system's), so that the first
    paint has it.
    """
    theme = request.COOKIES.get("muster_theme", "")
    return {
        "theme": theme if theme in ("light", "dark") else "",
        # Lazily: a part of a page shows no navigation, and loads no permissions for it.
        "navigation": SimpleLazyObject(lambda: _build_navigation(request)),
    }


def _build_navigation(request: HttpRequest) -> list[NavigationGroup]:
    user = getattr(request, "user", None)
    allowed = [
        entry
        for entry in NAVIGATION
        if not entry.permission or has_permission(user, entry.permission)
    ]
    groups = [
        NavigationGroup(
            heading, [_build_link(request, entry) for entry in allowed if entry.group == heading]
        )
        for heading in GROUPS
    ]
    return [group for group in groups if group.links]


def _build_link(request: HttpRequest, entry: NavigationEntry) -> NavigationLink:
    url = reverse(entry.name)
    return NavigationLink(
        url, entry.icon, entry.label, request.path == url or request.path.startswith(f"{url}/")
    )
