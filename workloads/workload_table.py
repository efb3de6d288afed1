"""The table of workloads: a column is one entry here, for its page, live rows and CSV."""

from collections.abc import Callable
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.moments import format_moment
from console.tables import Column, Table, Width, build_time_column
from console.templatetags.muster import (
    NO_VALUE,
    address,
    duration,
    gpus,
    mebibytes,
    render_time_of_day,
)
from console.texts import group_thousands
from workloads import quantities
from workloads.filter_catalogue import PAGE_FILTERS
from workloads.models import Workload
from workloads.specs.choices import Priority
from workloads.states import UP
from workloads.status_cell import render_status
from workloads.training_progress import find_place, format_place
from workloads.utilisation import get_current_use


def _render_checkbox(row: Workload) -> SafeString:
    return format_html(
        '<input type="checkbox" name="id" value="{}" form="bulk" data-choose '
        'aria-label="Choose {}">',
        row.pk,
        row.name,
    )


def _render_name(row: Workload) -> SafeString:
    return format_html(
        '<a id="name-{0}" href="{1}" data-drawer="{1}?pane=1">{2}</a>',
        row.pk,
        address("workload", row.pk),
        row.name,
    )


def _render_type(row: Workload) -> SafeString | str:
    if not row.framework:
        return row.architecture
    return format_html('{} <span class="wl-quiet">{}</span>', row.architecture, row.framework_label)


def _count_pods(row: Workload) -> str:
    return row.ended or f"{row.running_pods}/{row.requested_pods}"


def _render_pods(row: Workload) -> SafeString:
    return format_html(
        '<a id="pods-{0}" href="{1}" data-dialog="{1}" aria-label="{2}{3}: pods of {4}">{2}</a>',
        row.pk,
        address("workload-pods", row.pk),
        group_thousands(_count_pods(row)),
        "" if row.ended else " running",
        row.name,
    )


def _format_gpu_request(row: Workload) -> str:
    if row.gpu_memory_requested:
        return mebibytes(row.gpu_memory_requested)
    return gpus(row.gpus_requested)


def _format_submitter(row: Workload) -> str:
    return row.submitted_by.username if row.submitted_by else ""


def _format_priority(row: Workload) -> str:
    is_known = row.priority in Priority.__members__.values()
    return Priority(row.priority).label if is_known else row.priority


def _memory_formatter(name: str) -> Callable[[Workload], str]:
    """Return a function that formats bytes of a row; nothing is 0, like GPUs and cores."""
    return lambda row: (
        quantities.format_memory(Decimal(amount)) if (amount := getattr(row, name)) else "0"
    )


def _render_whole_text(name: str) -> Callable[[Workload], SafeString | str]:
    """Return a renderer of a long text, which the cell cuts and shows whole on hover."""
    return lambda row: (
        format_html('<span title="{0}">{0}</span>', text)
        if (text := getattr(row, name))
        else NO_VALUE
    )


def _render_runtime(row: Any) -> SafeString:
    return render_to_string("workloads/_runtime.html", {"runtime": row.runtime})


def _format_progress(row: Any) -> str:
    # What is known of an earlier attempt says nothing of this one.
    if row.progress_attempt != row.attempt:
        return ""
    return format_place(
        row.progress_step, row.progress_total, row.progress_epoch, row.progress_epochs
    )


def _is_use_shown(row: Any) -> bool:
    """Return whether the row's GPU use is of now: it runs, and was measured lately."""
    return get_current_use(row.status, row.gpu_use, row.gpu_use_at) is not None


def _format_gpu_use(row: Any) -> str:
    return f"{row.gpu_use:.0f} %" if _is_use_shown(row) else ""


def _render_gpu_use(row: Any) -> SafeString | str:
    if not _is_use_shown(row):
        return NO_VALUE
    return format_html(
        '<span title="{}"><progress class="mu-bar" max="100" value="{}" '
        'aria-label="GPU use of {}"></progress>{}</span>',
        f"At {row.gpu_use_at:%H:%M} UTC",
        f"{row.gpu_use:.1f}",
        row.name,
        _format_gpu_use(row),
    )


def _render_likely_start(row: Workload) -> SafeString | str:
    moment = render_time_of_day(row.likely_start)
    return format_html("due since {}", moment) if row.is_start_due else moment


def _get_progress(row: Any, name: str) -> object:
    is_current = row.progress_attempt == row.attempt
    value = getattr(row, f"progress_{name}") if is_current else None
    return "" if value is None else value


def _render_progress(row: Any) -> SafeString | str:
    words = _format_progress(row)
    if not words:
        return NO_VALUE
    place = find_place(
        row.progress_step, row.progress_total, row.progress_epoch, row.progress_epochs
    )
    share = None if place is None else place.share
    estimate = row.progress_estimate if row.status in UP else ""
    return format_html(
        '<span title="{}">{}{}</span>',
        f"Ends in {estimate}" if estimate else words,
        ""
        if share is None
        else format_html(
            '<progress class="mu-bar" max="1" value="{}" aria-label="{}"></progress>',
            f"{share:.4f}",
            f"Progress of {row.name}",
        ),
        words,
    )


CHECKBOX = Column("check", "", lambda _: "", render=_render_checkbox, width=Width.CHECKBOX)
"""What a row is chosen with: before the other columns, and never chosen itself."""

TABLE = Table(
    "Workloads",
    (
        Column(
            "name",
            "Workload",
            attrgetter("name"),
            render=_render_name,
            order=("name",),
            width=Width.AT_MOST_340,
            csv={"Workload": attrgetter("name"), "Id": attrgetter("pk")},
            fields=("name",),
        ),
        Column(
            "type",
            "Type",
            attrgetter("architecture"),
            render=_render_type,
            is_wide_only=True,
            csv={
                "Architecture": attrgetter("architecture"),
                "Framework": attrgetter("framework_label"),
            },
            fields=("architecture", "framework"),
        ),
        Column(
            "status",
            "Status",
            attrgetter("state.label"),
            render=render_status,
            order=("status", "-created_at"),
            width=Width.AT_LEAST_184,
            csv={
                "Status": attrgetter("state.label"),
                "Status since": lambda row: format_moment(row.status_at),
                "Reason": attrgetter("reason"),
            },
            fields=("status", "status_at", "reason", "released_at"),
        ),
        Column(
            "project",
            "Project",
            attrgetter("project.name"),
            order=("project__name", "-created_at"),
            width=Width.AT_MOST_180,
            fields=("project__name",),
        ),
        Column(
            "by",
            "Submitted by",
            _format_submitter,
            width=Width.AT_MOST_180,
            fields=("submitted_by__username",),
        ),
        Column(
            "preemptible",
            "Preemptible",
            lambda row: "Yes" if row.preemptible else "No",
            csv={"Preemptible": lambda row: "yes" if row.preemptible else "no"},
            fields=("preemptible",),
        ),
        Column(
            "pods",
            "Running / requested pods",
            _count_pods,
            render=_render_pods,
            csv={
                "Running pods": attrgetter("running_pods"),
                "Requested pods": attrgetter("requested_pods"),
                "Pods ended": attrgetter("ended"),
            },
            fields=("running_pods", "requested_pods", "ended"),
        ),
        Column(
            "request",
            "GPU request",
            _format_gpu_request,
            is_number=True,
            csv={
                "GPU request": attrgetter("gpus_requested"),
                "GPU memory request (MiB)": attrgetter("gpu_memory_requested"),
            },
            fields=("gpus_requested", "gpu_memory_requested"),
        ),
        Column(
            "allocation",
            "GPU allocation",
            lambda row: gpus(row.gpus_allocated),
            is_number=True,
            csv={"GPU allocation": attrgetter("gpus_allocated")},
            fields=("gpus_allocated",),
        ),
        build_time_column(
            "created",
            "Created",
            "created_at",
            is_sortable=True,
        ),
        Column(
            "runtime",
            "Runtime",
            lambda row: duration(row.runtime.seconds),
            render=_render_runtime,
            width=Width.AT_LEAST_96,
            csv={
                "Runtime (s)": lambda row: round(row.runtime.seconds, 1),
            },
            fields=("started_at", "ended_at", "ran_seconds", "attempt"),
        ),
        Column(
            "cluster",
            "Cluster",
            attrgetter("cluster_name"),
            order=("cluster__name", "-created_at"),
            is_extra=True,
            width=Width.AT_MOST_180,
            annotations={"cluster_name": "cluster__name"},
        ),
        Column(
            "department",
            "Department",
            attrgetter("department_name"),
            order=("project__department__name", "-created_at"),
            is_extra=True,
            width=Width.AT_MOST_180,
            annotations={"department_name": "project__department__name"},
        ),
        Column(
            "node_pool",
            "Node pools",
            attrgetter("node_pools"),
            render=_render_whole_text("node_pools"),
            is_extra=True,
            width=Width.AT_MOST_180,
            fields=("node_pools",),
        ),
        Column(
            "priority",
            "Priority",
            _format_priority,
            is_extra=True,
            csv={"Priority": attrgetter("priority")},
            fields=("priority",),
        ),
        Column(
            "image",
            "Image",
            attrgetter("image"),
            render=_render_whole_text("image"),
            order=("image", "-created_at"),
            is_extra=True,
            width=Width.AT_MOST_340,
            fields=("image",),
        ),
        Column(
            "command",
            "Command",
            attrgetter("command"),
            render=_render_whole_text("command"),
            is_extra=True,
            width=Width.AT_MOST_340,
            fields=("command",),
        ),
        Column(
            "cpu_request",
            "CPU request",
            lambda row: gpus(row.cpu_requested),
            order=("cpu_requested", "-created_at"),
            is_number=True,
            is_extra=True,
            csv={"CPU request (cores)": attrgetter("cpu_requested")},
            fields=("cpu_requested",),
        ),
        Column(
            "cpu_allocation",
            "CPU allocation",
            lambda row: gpus(row.cpu_allocated),
            is_number=True,
            is_extra=True,
            csv={"CPU allocation (cores)": attrgetter("cpu_allocated")},
            fields=("cpu_allocated",),
        ),
        Column(
            "memory_request",
            "Memory request",
            _memory_formatter("memory_requested"),
            order=("memory_requested", "-created_at"),
            is_number=True,
            is_extra=True,
            csv={"Memory request (bytes)": attrgetter("memory_requested")},
            fields=("memory_requested",),
        ),
        Column(
            "memory_allocation",
            "Memory allocation",
            _memory_formatter("memory_allocated"),
            is_number=True,
            is_extra=True,
            csv={"Memory allocation (bytes)": attrgetter("memory_allocated")},
            fields=("memory_allocated",),
        ),
        Column(
            "likely_start",
            "Likely start",
            lambda row: format_moment(row.likely_start) or "",
            render=_render_likely_start,
            order=("likely_start_at", "-created_at"),
            is_extra=True,
            fields=("likely_start_at", "status"),
        ),
        build_time_column("started", "Started", "started_at", is_extra=True),
        build_time_column("ended", "Ended", "ended_at", is_extra=True),
        Column(
            "attempt",
            "Attempt",
            attrgetter("attempt"),
            order=("attempt", "-created_at"),
            is_number=True,
            is_extra=True,
            fields=("attempt",),
        ),
        Column(
            "labels",
            "Labels",
            attrgetter("labels"),
            render=_render_whole_text("labels"),
            is_extra=True,
            width=Width.AT_MOST_340,
            fields=("labels",),
        ),
        Column(
            "min_pods",
            "Minimum of pods",
            lambda row: "" if row.min_pods is None else row.min_pods,
            is_number=True,
            is_extra=True,
            fields=("min_pods",),
        ),
        Column(
            "max_pods",
            "Maximum of pods",
            lambda row: "" if row.max_pods is None else row.max_pods,
            is_number=True,
            is_extra=True,
            fields=("max_pods",),
        ),
        Column(
            "progress",
            "Progress",
            _format_progress,
            render=_render_progress,
            is_extra=True,
            width=Width.AT_LEAST_96,
            csv={
                "Step": lambda row: _get_progress(row, "step"),
                "Steps in all": lambda row: _get_progress(row, "total"),
                "Epoch": lambda row: _get_progress(row, "epoch"),
            },
            fields=("attempt", "status"),
            annotations={
                f"progress_{name}": f"progress__{name}"
                for name in ("attempt", "step", "total", "epoch", "epochs", "estimate")
            },
        ),
        Column(
            "gpu_use",
            "GPU use",
            _format_gpu_use,
            render=_render_gpu_use,
            is_extra=True,
            width=Width.AT_LEAST_96,
            csv={
                "GPU use (%)": lambda row: f"{row.gpu_use:.1f}" if _is_use_shown(row) else "",
            },
            fields=("status",),
            annotations={
                "gpu_use": "metric_series__gpu_use",
                "gpu_use_at": "metric_series__gpu_use_at",
            },
        ),
        build_time_column("idle_since", "Idle since", "idle_since", is_extra=True),
    ),
    filters=PAGE_FILTERS,
    sort="-created",
    cookie="muster_cols",
)
