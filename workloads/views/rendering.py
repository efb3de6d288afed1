"""A row of the table as HTML: the same for everybody who may see it, so it is made once for each change and kept."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.core.cache import cache
from django.template.loader import get_template
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from workloads.models import Workload
from workloads.states import ACTIVE, LEAVING

KEPT = 300
"""Seconds: a project or a person may be given another name without a change of the row."""
TEMPLATE = "workloads/_row.html"


@dataclass(frozen=True, slots=True)
class Row:
    """`created` as the function of this name gives it: what the page sorts by."""

    id: str
    created: int
    html: SafeString


@dataclass(frozen=True, slots=True)
class Runtime:
    """How long a workload ran in all its attempts until now; `since` is when the running one began, while it does."""

    seconds: float
    before: float
    since: str = ""


def runtime(workload: Workload) -> Runtime:
    """The running time, in seconds."""
    before = workload.ran_seconds
    if workload.started_at is None:
        return Runtime(before, before)
    if workload.ended_at is not None or workload.status not in ACTIVE | LEAVING:
        end = workload.ended_at or workload.status_at
        total = before + max(0.0, (end - workload.started_at).total_seconds())
        return Runtime(total, total)
    now = before + max(0.0, (timezone.now() - workload.started_at).total_seconds())
    return Runtime(now, before, workload.started_at.isoformat())


def created(workload: Workload) -> int:
    """When it was made, in microseconds since 1970."""
    return int(workload.created_at.timestamp() * 1_000_000)


def rows(workloads: Iterable[Workload]) -> list[Row]:
    """The rows in the same order; those that were made before are not made again."""
    wanted = {f"row:{workload.pk}:{workload.changed}": workload for workload in workloads}
    known: dict[str, str] = cache.get_many(wanted)
    made = {key: render(workload) for key, workload in wanted.items() if key not in known}
    cache.set_many(made, KEPT)
    html = known | made
    # What the cache gives back is what the template made, which has escaped everything.
    return [Row(str(each.pk), created(each), mark_safe(html[key])) for key, each in wanted.items()]  # noqa: S308


def render(workload: Workload) -> str:
    """One row. It is given the workload alone: nothing of the one who looks can get into it."""
    return str(get_template(TEMPLATE).render({"w": workload, "runtime": runtime(workload), "created": created(workload)})).strip()
