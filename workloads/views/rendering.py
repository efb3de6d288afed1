"""A row of the table as HTML: the same for everybody who may see it, so it is made once for each
change and kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.core.cache import cache
from django.template.loader import get_template
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from workloads import limits
from workloads.models import Workload

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
    """How long a workload ran in all its attempts until now, as its time limit counts it; `since`
    is when it went on, while it runs.
    """

    seconds: float
    before: float
    since: str = ""


def runtime(workload: Workload) -> Runtime:
    """The running time, in seconds. One query, none for what has not run."""
    return runtimes([workload])[workload.pk]


def runtimes(workloads: Sequence[Workload]) -> Mapping[UUID, Runtime]:
    """The running time of each by its id. One query for all of them."""
    now = timezone.now()
    found = limits.runs(workloads, now)
    return {
        key: Runtime(ran.seconds(now), ran.before, ran.since.isoformat() if ran.since else "")
        for key, ran in found.items()
    }


def created(workload: Workload) -> int:
    """When it was made, in microseconds since 1970."""
    return int(workload.created_at.timestamp() * 1_000_000)


def rows(workloads: Iterable[Workload]) -> list[Row]:
    """The rows in the same order; those that were made before are not made again."""
    wanted = {f"row:{workload.pk}:{workload.changed}": workload for workload in workloads}
    known: dict[str, str] = cache.get_many(wanted)
    unknown = {key: workload for key, workload in wanted.items() if key not in known}
    ran = runtimes(list(unknown.values()))
    made = {key: render(workload, ran[workload.pk]) for key, workload in unknown.items()}
    cache.set_many(made, KEPT)
    html = known | made
    # What the cache gives back is what the template made, which has escaped everything.
    return [Row(str(each.pk), created(each), mark_safe(html[key])) for key, each in wanted.items()]  # noqa: S308


def render(workload: Workload, ran: Runtime) -> str:
    """One row. It is given the workload alone: nothing of the one who looks can get into it."""
    return str(
        get_template(TEMPLATE).render({"w": workload, "runtime": ran, "created": created(workload)})
    ).strip()
