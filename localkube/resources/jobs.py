"""batch/v1 Jobs: defaults, rules and columns of the real job strategy."""

from typing import Any

from localkube import clock
from localkube.errors import Cause, required_cause, unsupported_cause
from localkube.metadata import Object, find_condition, is_terminating
from localkube.resources import table_cells
from localkube.resources.causes import immutable_cause, invalid_value_cause
from localkube.resources.count_rules import check_counts
from localkube.resources.failure_policy import check_policy, set_policy_defaults
from localkube.resources.field_readers import number_reader
from localkube.resources.host_port_rules import check_host_ports
from localkube.resources.ignored_parts import find_ignored_parts
from localkube.resources.job_index_rules import check_completions, check_index_fields
from localkube.resources.metadata_rules import check_labels
from localkube.resources.pod_defaults import set_pod_spec_defaults
from localkube.resources.pod_rules import check_pod_spec
from localkube.resources.resource import STATUS, Column, Resource
from localkube.resources.source_rules import check_sources
from localkube.resources.table_cells import AGE, NAME, format_duration, parse_optional_time

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID = "controller-uid"
LEGACY_JOB_NAME = "job-name"

COMPLETION_MODES = ("Indexed", "NonIndexed")
REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
NON_NEGATIVE_FIELDS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
UNLIMITED = 2**31 - 1
"""The backoffLimit of a Job with a limit per index that says none."""

IMMUTABLE_FIELDS = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "successPolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "manualSelector",
)
MUTABLE_WHILE_SUSPENDED = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
"""Fields of the template's spec that may change while the job is suspended and has not started."""

STATUS_WORDS = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Condition and the word for it; the first condition that is true counts.

"" stands for a job that is being deleted.
"""


def set_job_defaults(job: Object) -> None:
    """Set the defaults, and the labels and selector that tie pods to this job.

    The job's uid ties them, which must be set before.
    """
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else UNLIMITED)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault(
        "podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    )
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    set_pod_spec_defaults(template.setdefault("spec", {}))
    set_policy_defaults(spec.get("podFailurePolicy") or {})
    if not spec["manualSelector"]:
        _set_own_selector(job, spec, template)
    if not job["metadata"].get("labels") and template["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(template["metadata"]["labels"])


def _set_own_selector(job: Object, spec: dict[str, Any], template: dict[str, Any]) -> None:
    uid, name = job["metadata"].get("uid") or "", job["metadata"].get("name") or ""
    own_labels = {
        CONTROLLER_UID: uid,
        JOB_NAME: name,
        LEGACY_CONTROLLER_UID: uid,
        LEGACY_JOB_NAME: name,
    }
    template["metadata"]["labels"] = (template["metadata"].get("labels") or {}) | own_labels
    spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, uid)


def check_job(job: Object, old: Object | None) -> list[Cause]:
    spec = job["spec"]
    causes = [
        invalid_value_cause(f"spec.{part}", spec[part], "must be greater than or equal to 0")
        for part in NON_NEGATIVE_FIELDS
        if isinstance(spec.get(part), int) and spec[part] < 0
    ]
    if spec.get("completionMode") not in COMPLETION_MODES:
        causes.append(
            unsupported_cause(
                "spec.completionMode", spec.get("completionMode") or "", COMPLETION_MODES
            )
        )
    causes += check_completions(spec)
    # A Job from before these rules were kept must still get its status.
    if old is None or old["spec"] != spec:
        causes += check_index_fields(spec)
    if spec.get("podReplacementPolicy") not in REPLACEMENT_POLICIES:
        causes.append(
            unsupported_cause(
                "spec.podReplacementPolicy",
                spec.get("podReplacementPolicy") or "",
                REPLACEMENT_POLICIES,
            )
        )
    if old is None and (counts := check_counts(spec["template"]["spec"], "spec.template.spec")):
        return causes + counts
    causes += _check_template(spec)
    if old is None or old["spec"]["template"] != spec["template"]:
        causes += check_host_ports(spec["template"]["spec"], "spec.template.spec")
        causes += check_sources(spec["template"]["spec"], "spec.template.spec")
    causes += check_policy(spec, "spec")
    return causes if old is None else causes + _check_changes(spec, old)


def _check_template(spec: dict[str, Any]) -> list[Cause]:
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    causes = check_labels(labels, "spec.template.metadata.labels")
    selector_labels = (spec.get("selector") or {}).get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in selector_labels.items()):
        causes.append(
            invalid_value_cause(
                "spec.template.metadata.labels",
                labels,
                "`selector` does not match template `labels`",
            )
        )
    causes += check_pod_spec(template["spec"], "spec.template.spec")
    if template["spec"].get("restartPolicy") == "Always":
        causes.append(
            required_cause("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
        )
    return causes


def _check_changes(spec: dict[str, Any], old: Object) -> list[Cause]:
    old_spec, causes = old["spec"], []
    completions = spec.get("completions")
    if completions != old_spec.get("completions"):
        # An indexed job may grow or shrink as a whole.
        is_elastic = spec.get("completionMode") == "Indexed" and completions == spec.get(
            "parallelism"
        )
        if not is_elastic:
            causes.append(immutable_cause("spec.completions", completions))
    causes += [
        immutable_cause(f"spec.{part}", spec.get(part))
        for part in IMMUTABLE_FIELDS
        if spec.get(part) != old_spec.get(part)
    ]
    is_idle = old_spec.get("suspend") and not (old.get("status") or {}).get("startTime")
    if _select_fixed_part(spec["template"], is_idle=is_idle) != _select_fixed_part(
        old_spec["template"], is_idle=is_idle
    ):
        causes.append(immutable_cause("spec.template", spec["template"]))
    return causes


def _select_fixed_part(template: dict[str, Any], *, is_idle: bool) -> dict[str, Any]:
    """Return the part of a template that must stay as it is."""
    if not is_idle:
        return template
    return {
        "spec": {
            key: value
            for key, value in template["spec"].items()
            if key not in MUTABLE_WHILE_SUSPENDED
        }
    }


def _format_status(job: Object) -> str:
    conditions = (job.get("status") or {}).get("conditions") or ()
    for kind, word in STATUS_WORDS:
        condition = find_condition(conditions, kind) if kind else None
        if (condition is not None and condition.get("status") == "True") or (
            not kind and is_terminating(job)
        ):
            return word
    return "Running"


def _format_completions(job: Object) -> str:
    spec, succeeded = job["spec"], (job.get("status") or {}).get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _format_duration(job: Object) -> str:
    status = job.get("status") or {}
    start = parse_optional_time(status.get("startTime"))
    if start is None:
        return ""
    end = parse_optional_time(status.get("completionTime")) or clock.current_time()
    return format_duration(end - start)


def _format_containers(job: Object, part: str) -> str:
    return ",".join(
        str(container.get(part, ""))
        for container in job["spec"]["template"]["spec"].get("containers") or ()
    )


JOBS = Resource(
    "batch",
    "v1",
    "jobs",
    "Job",
    columns=(
        NAME,
        Column("Status", _format_status),
        Column("Completions", _format_completions),
        Column("Duration", _format_duration),
        AGE,
        Column("Containers", lambda job: _format_containers(job, "name"), priority=1),
        Column("Images", lambda job: _format_containers(job, "image"), priority=1),
        Column(
            "Selector",
            lambda job: table_cells.format_labels(
                (job["spec"].get("selector") or {}).get("matchLabels")
            ),
            priority=1,
        ),
    ),
    categories=("all",),
    subresources={"status": STATUS},
    field_selectors={"status.successful": number_reader("status", "succeeded")},
    schema="jobs",
    set_defaults=set_job_defaults,
    validate=check_job,
    find_warnings=find_ignored_parts,
    orphans_by_default=True,
)
