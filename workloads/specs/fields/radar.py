"""What the radar watches for in a workload while it runs, and what it may do about it."""

from typing import Any

from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.general import DAY
from workloads.specs.fields.types import FieldType, Flag, Number, Switch

LEAST_HANG_SECONDS = 30
LEAST_STRAGGLER_PERCENT = 110
MAX_STRAGGLER_PERCENT = 1000
DEFAULT_STRAGGLER_PERCENT = 150
"""From where a rank is called slow when nobody chose."""
LEAST_STOP_SECONDS = 60
MAX_STOP_DAYS = 30
_EXTENSION = "An extension of Muster"


def _build(name: str, label: str, type_: FieldType, rest: str, **more: Any) -> Field:
    # Rules have the whole path as their name: "is_on" alone would not say of what.
    path = f"radar.{name}"
    largest = type_.most if isinstance(type_, Number) else None
    policy = PolicyData(
        section=PolicySection.LIFE,
        name=path,
        is_open=more.pop("is_open", False),
        is_implied=isinstance(type_, Switch | Flag),
        largest=largest,
    )
    return Field(
        path=path,
        label=label,
        type=type_,
        place=Place.RADAR,
        rest=rest,
        fact_section=FactSection.RADAR,
        policy=policy,
        **more,
    )


RADAR_FIELDS = (
    _build(
        "is_on",
        "Watch for trouble",
        Switch(),
        "radar",
        help=(
            "Muster looks for hangs, stragglers, idle GPUs, memory that grows, faulty nodes and "
            "bad losses, and says what it finds. It does nothing by itself, save what is set for a "
            "hang and a faulty node."
        ),
        rest_help=(
            f"{_EXTENSION}: whether it is watched for hangs, stragglers, idle GPUs, memory that "
            "grows, faulty nodes and bad losses. Left out: true."
        ),
        form=("radar",),
        lock="radar",
        fact="Watched for trouble",
    ),
    _build(
        "hang_seconds",
        "Silence that is called a hang, in seconds",
        Number(LEAST_HANG_SECONDS, DAY),
        "radarHangSeconds",
        title="Silence that is called a hang",
        help=(
            f"{LEAST_HANG_SECONDS} to {DAY:,}: how long its ranks say nothing before that is "
            "called a hang. Empty: a minute, or more where steps are long."
        ),
        rest_help=f"{_EXTENSION}: how long ranks say nothing before that is called a hang.",
        subject="The silence in seconds that is called a hang",
        fact="Called a hang",
        phrase="after {} s of silence",
    ),
    _build(
        "straggler_percent",
        "Slow rank, in percent of the median step",
        Number(LEAST_STRAGGLER_PERCENT, MAX_STRAGGLER_PERCENT),
        "radarStragglerPercent",
        title="Slow rank",
        help=(
            f"{LEAST_STRAGGLER_PERCENT} to {MAX_STRAGGLER_PERCENT:,}: a rank is called slow when "
            "its steps take so many percent of the median step. Empty: "
            f"{DEFAULT_STRAGGLER_PERCENT}."
        ),
        rest_help=(
            f"{_EXTENSION}: from how many percent of the median step a rank is called slow."
        ),
        subject="The percentage of the median step from which a rank is slow",
        fact="Called slow",
        phrase="a rank from {} % of the median step",
    ),
    _build(
        "stop_after_hang_seconds",
        "Stop when it hangs, after seconds",
        Number(LEAST_STOP_SECONDS, MAX_STOP_DAYS * DAY),
        "radarStopAfterHangSeconds",
        title="Stop when it hangs",
        help=(
            f"{LEAST_STOP_SECONDS} to {MAX_STOP_DAYS * DAY:,}, which is {MAX_STOP_DAYS} days: the "
            "workload is stopped when it has hung so long. Empty: never."
        ),
        rest_help=f"{_EXTENSION}: it is stopped when it has hung so long. Left out: never.",
        subject="The time in seconds until it is stopped when it hangs",
        fact="Stopped when it hangs",
        phrase="after {} s",
        # Without a value it hangs, and holds its GPUs, without limit.
        is_open=True,
    ),
    _build(
        "restarts_without_faulty_node",
        "Run again without a faulty node",
        Flag(),
        "radarRestartWithoutFaultyNode",
        help=(
            "When a device or a node of it is faulty, it is stopped, and runs again without that "
            "node."
        ),
        rest_help=(
            f"{_EXTENSION}: when a device or a node of it is faulty, it is stopped, and runs again "
            "without that node."
        ),
    ),
)
