"""A change over REST that conflicts with another one: what somebody else changed meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

from console import edit_conflicts
from console.errors import Clash
from environments.kinds import AssetKind
from environments.models import Asset
from projects.api.merging import StaleRead
from projects.audit import Event
from projects.models import AuditEntry

MOST_CHANGES = 50


@contextmanager
def explain_late_change(
    kind: AssetKind, asset: Asset, version: int | None, status: int = 409
) -> Iterator[None]:
    """Turn ChangedMeanwhile inside the context into a Clash that says what changed.

    `version` is the one that was edited.
    """
    try:
        yield
    except StaleRead:
        # No version was edited: the whole change is carried out again.
        raise
    except edit_conflicts.ChangedMeanwhile as error:
        text = describe_changes(kind, asset, error.version, version or 0)
        raise Clash(text, status=status) from error


def describe_changes(kind: AssetKind, asset: Asset, now: int, edited: int) -> str:
    """Say who changed which fields since a version, from the audit log, and what to do."""
    entries = AuditEntry.objects.filter(
        entity=kind.key, entity_id=str(asset.pk), event=Event.UPDATE
    ).order_by("-at", "-id")
    newer_entries = [
        each for each in entries[:MOST_CHANGES] if (each.after or {}).get("version", 0) > edited
    ]
    names = sorted(
        {name for each in newer_entries for name in (each.after or {}) if name != "version"}
    )
    people = sorted({each.subject for each in newer_entries})
    changed_text = f" {' and '.join(people)} changed {', '.join(names)}." if names else ""
    return (
        f"{asset.name} was changed meanwhile: its version is {now}, and you changed "
        f"{edited}.{changed_text} Get it again and repeat your change."
    )
