"""Rows of the table as HTML, rendered once for each change and cached.

A row is the same for everybody who may see it.
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
"""Seconds: a project or a person may be renamed without a change of the row."""
TEMPLATE = "workloads/_row.html"


@dataclass(frozen=True, slots=True)
class RenderedRow:
    """A row as HTML; the page sorts by `created`, in microseconds since 1970."""

    id: str
    created: int
    html: SafeString


@dataclass(frozen=True, slots=True)
class Runtime:
    """Seconds that a workload ran in all its attempts, as its time limit counts them.

    `since` is when it went on, while it runs; `before` are the seconds until then.
    """

    seconds: float
    before: float
    since: str = ""


def load_runtime(workload: Workload) -> Runtime:
    """Load the running time of a workload. One query, none for what has not run."""
    return load_runtimes([workload])[workload.pk]


def load_runtimes(workloads: Sequence[Workload]) -> Mapping[UUID, Runtime]:
    """Load the running time of each workload, by its id. One query for all of them."""
    now = timezone.now()
    runs = runtime_limits.load_running_times(workloads, now)
    return {
        key: Runtime(
            ran.total_seconds(now),
            ran.seconds_before,
            ran.running_since.isoformat() if ran.running_since else "",
        )
        for key, ran in runs.items()
    }


def created_microseconds(workload: Workload) -> int:
    """Return when it was made, in microseconds since 1970."""
    return int(workload.created_at.timestamp() * 1_000_000)


def render_rows(workloads: Iterable[Workload]) -> list[RenderedRow]:
    """Render the rows in the same order; cached ones are not rendered again."""
    by_key = {f"row:{workload.pk}:{workload.changed}": workload for workload in workloads}
    cached: dict[str, str] = cache.get_many(by_key)
    missing = {key: workload for key, workload in by_key.items() if key not in cached}
    runtimes = load_runtimes(list(missing.values()))
    rendered = {
        key: render_row(workload, runtimes[workload.pk]) for key, workload in missing.items()
    }
    cache.set_many(rendered, CACHE_SECONDS)
    html = cached | rendered
    # What the cache gives back is what the template made, which has escaped everything.
    return [
        RenderedRow(str(each.pk), created_microseconds(each), mark_safe(html[key]))  # noqa: S308
        for key, each in by_key.items()
    ]


def render_row(workload: Workload, runtime: Runtime) -> str:
    """Render one row from the workload alone: nothing of the viewer can get into it."""
    return str(
        get_template(TEMPLATE).render(
            {"w": workload, "runtime": runtime, "created": created_microseconds(workload)}
        )
    ).strip()
