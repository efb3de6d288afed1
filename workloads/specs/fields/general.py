"""What happens around the pods."""

from typing import Any

from workloads.specs.choices import (
    Architecture,
    CleanPodPolicy,
    Preemptibility,
    Priority,
    RestartPolicy,
)
from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Choice, FieldType, Number

DAY = 24 * 3600


def _build(name: str, label: str, type_: FieldType, rest: str, **more: Any) -> Field:
    values: dict[str, Any] = {"policy": PolicyData(section=PolicySection.LIFE)} | more
    return Field(
        path=f"lifecycle.{name}",
        label=label,
        type=type_,
        place=Place.GENERAL,
        rest=rest,
        **values,
    )


GENERAL_FIELDS = (
    _build(
        "priority",
        "Priority",
        Choice(Priority, "The cluster's default (low)"),
        "priorityClass",
        help="Higher goes first.",
        fact_section=FactSection.WORKLOAD,
    ),
    _build(
        "preemptibility",
        "Preemptibility",
        Choice(Preemptibility, is_required=True),
        "preemptibility",
        help=(
            "Preemptible work may use GPUs beyond the project's quota, and gives them back when "
            "others need theirs."
        ),
        policy=PolicyData(section=PolicySection.LIFE, value="effective_preemptibility"),
    ),
    _build(
        "grace_seconds",
        "Grace period on preemption, in seconds",
        Number(
            0,
            3600,
            most_typed=300,
            too_large="The grace period must be at most 300 seconds, which is 5 minutes.",
        ),
        "terminationGracePeriodSeconds",
        title="Grace period",
        help="0 to 300. Empty: the cluster's default, 30.",
        subject="The grace period in seconds",
        fact="Time to end in peace",
        fact_section=FactSection.LIFECYCLE,
        phrase="{} s",
    ),
    _build(
        "preemption_delay",
        "Preemption delay, in seconds",
        Number(0, 7 * DAY),
        "preemptionDelaySeconds",
        title="Preemption delay",
        help=(
            "How long it waits for free room before others are evicted for it. KAI heeds it from "
            "0.17 on. Empty: they are evicted at once."
        ),
        rest_help="An extension of Muster: how long others are not evicted for it.",
        subject="The preemption delay in seconds",
        fact="Waits before others are evicted",
        fact_section=FactSection.LIFECYCLE,
        phrase="{} s",
        policy=PolicyData(section=PolicySection.LIFE, largest=7 * DAY),
    ),
    _build(
        "backoff_limit",
        "Backoff limit",
        Number(0, 100, default=6, required="Say how often to try again.", noun="time"),
        "backoffLimit",
        help="How often to try again after failures; 0 to 100.",
        subject="The backoff limit",
        fact="Tried again",
        fact_section=FactSection.LIFECYCLE,
        phrase="at most {}",
        policy=PolicyData(section=PolicySection.LIFE, is_implied=True),
    ),
    _build(
        "auto_delete_seconds",
        "Auto-deletion after the end, in seconds",
        Number(0, 365 * DAY),
        "autoDeletionTimeAfterCompletionSeconds",
        title="Auto-deletion after the end",
        help=(
            "Of completed and failed workloads; 0 deletes at once. Empty: it stays until somebody "
            "deletes it."
        ),
        subject="The time until auto-deletion in seconds",
        fact="Deleted after its end",
        fact_section=FactSection.LIFECYCLE,
        phrase="after {} s",
        policy=PolicyData(section=PolicySection.LIFE, is_open=True),
    ),
    _build(
        "restart_policy",
        "Restart policy",
        Choice(RestartPolicy, "The framework's default"),
        "restartPolicy",
        help=(
            "ExitCode tries again what a signal ended; codes up to 127 are final. Standard and MPI "
            "take OnFailure and Never only."
        ),
        rest_help=(
            "ExitCode is an extension of Muster: codes from 128 are tried again, others are final."
        ),
        subject="The restart policy",
        fact_section=FactSection.LIFECYCLE,
    ),
    _build(
        "clean_pod_policy",
        "Pods to delete at the end",
        Choice(CleanPodPolicy, "The framework's default"),
        "cleanPodPolicy",
        help="None keeps pods that still run, and their GPUs.",
        architecture=Architecture.DISTRIBUTED,
        fact="Pods cleaned up at the end",
        fact_section=FactSection.LIFECYCLE,
    ),
)
