"""batch/v1 Jobs: defaults, rules and columns of the real job strategy."""

from typing import Any

from localkube import clock
from localkube.errors import Cause, required, unsupported
from localkube.metadata import Object, condition_of, is_terminating
from localkube.resources import cells
from localkube.resources.causes import immutable, invalid
from localkube.resources.cells import AGE, NAME, human, moment_of
from localkube.resources.failure_policy import check_policy, fill_policy
from localkube.resources.fields import number
from localkube.resources.metadata_rules import check_labels
from localkube.resources.pod_defaults import fill_spec
from localkube.resources.pod_rules import check_spec
from localkube.resources.resource import STATUS, Column, Resource

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID = "controller-uid"
LEGACY_JOB_NAME = "job-name"

MODES = ("Indexed", "NonIndexed")
REPLACEMENTS = ("Failed", "TerminatingOrFailed")
NOT_NEGATIVE = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
FIXED = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "successPolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "manualSelector",
)
UNSERVED = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
MOVABLE = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
"""What of the template's spec may change while the job is suspended and has not started."""

STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Condition and the word for it, first that holds first; no condition stands for a job that is
being deleted.
"""


def fill_job(job: Object) -> None:
    """The defaults, and the labels and selector that tie pods to this job by its uid (which is set
    before).
    """
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault(
        "podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    )
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    fill_spec(template.setdefault("spec", {}))
    fill_policy(spec.get("podFailurePolicy") or {})
    if not spec["manualSelector"]:
        _select_own(job, spec, template)
    if not job["metadata"].get("labels") and template["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(template["metadata"]["labels"])


def _select_own(job: Object, spec: dict[str, Any], template: dict[str, Any]) -> None:
    uid, name = job["metadata"].get("uid") or "", job["metadata"].get("name") or ""
    own = {CONTROLLER_UID: uid, JOB_NAME: name, LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}
    template["metadata"]["labels"] = (template["metadata"].get("labels") or {}) | own
    spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, uid)


def check_job(job: Object, old: Object | None) -> list[Cause]:
    spec = job["spec"]
    causes = [
        invalid(f"spec.{part}", spec[part], "must be greater than or equal to 0")
        for part in NOT_NEGATIVE
        if isinstance(spec.get(part), int) and spec[part] < 0
    ]
    if spec.get("completionMode") not in MODES:
        causes.append(unsupported("spec.completionMode", spec.get("completionMode") or "", MODES))
    elif spec["completionMode"] == "Indexed" and spec.get("completions") is None:
        causes.append(required("spec.completions", "when completion mode is Indexed"))
    if spec.get("podReplacementPolicy") not in REPLACEMENTS:
        causes.append(
            unsupported(
                "spec.podReplacementPolicy", spec.get("podReplacementPolicy") or "", REPLACEMENTS
            )
        )
    causes += _check_template(spec)
    causes += check_policy(spec, "spec")
    return causes if old is None else causes + _check_changes(spec, old)


def warn_of_job(job: Object) -> list[str]:
    return [
        f"spec.{part}: localkube does not serve this field, it has no effect"
        for part in UNSERVED
        if part in job["spec"]
    ]


def _check_template(spec: dict[str, Any]) -> list[Cause]:
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    causes = check_labels(labels, "spec.template.metadata.labels")
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        causes.append(
            invalid(
                "spec.template.metadata.labels",
                labels,
                "`selector` does not match template `labels`",
            )
        )
    causes += check_spec(template["spec"], "spec.template.spec")
    if template["spec"].get("restartPolicy") == "Always":
        causes.append(
            required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
        )
    return causes


def _check_changes(spec: dict[str, Any], old: Object) -> list[Cause]:
    was, causes = old["spec"], []
    completions = spec.get("completions")
    if completions != was.get("completions"):
        # An indexed job may grow or shrink as a whole.
        elastic = spec.get("completionMode") == "Indexed" and completions == spec.get("parallelism")
        if not elastic:
            causes.append(immutable("spec.completions", completions))
    causes += [
        immutable(f"spec.{part}", spec.get(part))
        for part in FIXED
        if spec.get(part) != was.get(part)
    ]
    idle = was.get("suspend") and not (old.get("status") or {}).get("startTime")
    if _kept(spec["template"], movable=idle) != _kept(was["template"], movable=idle):
        causes.append(immutable("spec.template", spec["template"]))
    return causes


def _kept(template: dict[str, Any], *, movable: bool) -> dict[str, Any]:
    """The part of a template that must stay as it is."""
    if not movable:
        return template
    return {"spec": {key: value for key, value in template["spec"].items() if key not in MOVABLE}}


def _status(job: Object) -> str:
    conditions = (job.get("status") or {}).get("conditions") or ()
    for kind, word in STATES:
        condition = condition_of(conditions, kind) if kind else None
        if (condition is not None and condition.get("status") == "True") or (
            not kind and is_terminating(job)
        ):
            return word
    return "Running"


def _completions(job: Object) -> str:
    spec, done = job["spec"], (job.get("status") or {}).get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(job: Object) -> str:
    status = job.get("status") or {}
    start = moment_of(status.get("startTime"))
    return (
        ""
        if start is None
        else human((moment_of(status.get("completionTime")) or clock.now()) - start)
    )


def _containers(job: Object, part: str) -> str:
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
        Column("Status", _status),
        Column("Completions", _completions),
        Column("Duration", _duration),
        AGE,
        Column("Containers", lambda job: _containers(job, "name"), priority=1),
        Column("Images", lambda job: _containers(job, "image"), priority=1),
        Column(
            "Selector",
            lambda job: cells.labels((job["spec"].get("selector") or {}).get("matchLabels")),
            priority=1,
        ),
    ),
    categories=("all",),
    subresources={"status": STATUS},
    field_selectors={"status.successful": number("status", "succeeded")},
    schema="jobs",
    defaults=fill_job,
    validate=check_job,
    warn=warn_of_job,
    orphans_by_default=True,
)
