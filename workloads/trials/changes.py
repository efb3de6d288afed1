"""What a trial changes: one value of a project, a department, or a kind of nodes each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from console.texts import join_first
from projects.models import Department, Project

SHARE_FIELDS = ("gpu_quota", "gpu_limit", "over_quota_weight")
"""What is tried of a project or a department."""
COUNT_FIELD = "count"
MOST_CHANGES = 2_000
MOST_FIRST_CHANGES = 3
"""Changes that a list of trials names."""
MOST_NAME_CHARACTERS = 40
"""Of a name in the words on what is not there any more."""
FIELD_WORDS = {
    "gpu_quota": "GPU quota",
    "gpu_limit": "GPU limit",
    "over_quota_weight": "over-quota weight",
    COUNT_FIELD: "nodes",
}


class ChangesOutdated(Exception):
    """What a trial changes is not there any more; the text says what, for people."""


class ChangeKind(StrEnum):
    """What a change is of."""

    PROJECT = "project"
    DEPARTMENT = "department"
    NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Change:
    """One value that is tried; "" is none: unlimited, or the sum of a department's projects."""

    kind: ChangeKind
    id: str
    """The id of the row, or the key of the kind of nodes."""
    name: str
    """How it was called then."""
    field: str
    before: str
    after: str

    @property
    def words(self) -> str:
        """What is changed of it."""
        return FIELD_WORDS.get(self.field, self.field)


def build_change_fields(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the values of a trial's row that say what it changes."""
    data = [asdict(change) for change in changes]
    return {
        "changes": data,
        "first_changes": data[:MOST_FIRST_CHANGES],
        "change_count": len(changes),
    }


def decode_changes(data: Any) -> Sequence[Change]:
    """Return the changes that `build_change_fields` encoded."""
    return [Change(ChangeKind(each["kind"]), *_list_texts(each)) for each in data]


def _list_texts(data: Mapping[str, Any]) -> Iterable[str]:
    return (str(data[name]) for name in ("id", "name", "field", "before", "after"))


def require_targets(
    changes: Iterable[Change], projects: Iterable[Project], node_kinds: Iterable[str]
) -> None:
    """Check that all that is changed is there still. Raises ChangesOutdated.

    It waits for its turn: meanwhile projects are removed, pools renamed, nodes not ready.
    """
    targets = {(ChangeKind.NODES, key) for key in node_kinds}
    for project in projects:
        targets.add((ChangeKind.PROJECT, str(project.pk)))
        targets.add((ChangeKind.DEPARTMENT, str(project.department_id)))
    outdated_changes = [change for change in changes if (change.kind, change.id) not in targets]
    if outdated_changes:
        # The same row may have several changes.
        names = list(dict.fromkeys(_describe_target(change) for change in outdated_changes))
        raise ChangesOutdated(
            "Not on the cluster any more, or not as it was when this was asked: "
            f"{join_first(names, 3)}. Change it further and ask again."
        )


def _describe_target(change: Change) -> str:
    """Return what a change is of; short, since several stand in one sentence."""
    word = "nodes" if change.kind is ChangeKind.NODES else change.kind.value
    return f"{word} {change.name[:MOST_NAME_CHARACTERS]}"


def change_projects(projects: Iterable[Project], changes: Iterable[Change]) -> None:
    """Set the tried values on rows of projects and of their departments; nothing is saved."""
    by_row: dict[tuple[ChangeKind, str], list[Change]] = {}
    for change in changes:
        by_row.setdefault((change.kind, change.id), []).append(change)
    for project in projects:
        # Each project has its department as an object of its own.
        _set_values(project, by_row.get((ChangeKind.PROJECT, str(project.pk)), ()))
        department = project.department
        _set_values(department, by_row.get((ChangeKind.DEPARTMENT, str(department.pk)), ()))


def _set_values(row: Project | Department, changes: Iterable[Change]) -> None:
    for change in changes:
        setattr(row, change.field, Decimal(change.after) if change.after else None)


def list_node_counts(changes: Iterable[Change]) -> Mapping[str, int]:
    """Return the tried numbers of nodes, by the key of their kind."""
    return {change.id: int(change.after) for change in changes if change.kind is ChangeKind.NODES}
