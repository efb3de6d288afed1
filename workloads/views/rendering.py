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

from workloads import runtime_limits
from workloads.models import Workload

CACHE_SECONDS = 300
"""Seconds: a project or a person may be given another name without a change of the row."""
TEMPLATE = "workloads/_row.html"


@dataclass(frozen=True, slots=True)
class RenderedRow:
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


def load_runtime(workload: Workload) -> Runtime:
    """The running time, in seconds. One query, none for what has not run."""
    return load_runtimes([workload])[workload.pk]


def load_runtimes(workloads: Sequence[Workload]) -> Mapping[UUID, Runtime]:
    """The running time of each by its id. One query for all of them."""
    now = timezone.now()
    found = runtime_limits.load_running_times(workloads, now)
    return {
        key: Runtime(
            ran.total_seconds(now),
            ran.seconds_before,
            ran.running_since.isoformat() if ran.running_since else "",
        )
        for key, ran in found.items()
    }


def created_microseconds(workload: Workload) -> int:
    """When it was made, in microseconds since 1970."""
    return int(workload.created_at.timestamp() * 1_000_000)


def render_rows(workloads: Iterable[Workload]) -> list[RenderedRow]:
    """The rows in the same order; those that were made before are not made again."""
    wanted = {f"row:{workload.pk}:{workload.changed}": workload for workload in workloads}
    known: dict[str, str] = cache.get_many(wanted)
    unknown = {key: workload for key, workload in wanted.items() if key not in known}
    ran = load_runtimes(list(unknown.values()))
    made = {key: render_row(workload, ran[workload.pk]) for key, workload in unknown.items()}
    cache.set_many(made, CACHE_SECONDS)
    html = known | made
    # What the cache gives back is what the template made, which has escaped everything.
    return [
        RenderedRow(str(each.pk), created_microseconds(each), mark_safe(html[key]))  # noqa: S308
        for key, each in wanted.items()
    ]


def render_row(workload: Workload, runtime: Runtime) -> str:
    """One row. It is given the workload alone: nothing of the one who looks can get into it."""
    return str(
        get_template(TEMPLATE).render(
            {"w": workload, "runtime": runtime, "created": created_microseconds(workload)}
        )
    ).strip()
