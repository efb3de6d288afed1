"""The pods and Jobs that controllers make, and what a kubelet and the Job controller say of them.
Pure.
"""

import secrets
from collections.abc import Sequence

from tests.conformance.api import Object

PREFIX = "training.kubeflow.org/"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
CODE = 3
"""With which a pod fails."""


def phase(pod: Object) -> str:
    return str(pod["status"].get("phase", "Pending"))


def owner(obj: Object) -> str:
    """The uid of its controller, "" of one without."""
    return next(
        (
            str(each["uid"])
            for each in obj["metadata"].get("ownerReferences", ())
            if each.get("controller")
        ),
        "",
    )


def index(pod: Object) -> int:
    """Which completion of its Job a pod is; of one that is not counted, -1."""
    return int(pod["metadata"].get("annotations", {}).get(COMPLETION_INDEX, -1))


def holds(obj: Object, kind: str) -> Object | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next(
        (each for each in conditions if each["type"] == kind and each["status"] == "True"), None
    )


def is_finished(job: Object) -> bool:
    return any(holds(job, kind) for kind in ("Succeeded", "Complete", "Failed"))


def pod(name: str, template: Object, labels: Object, job: Object, policy: str) -> Object:
    """A pod of a template, as the job's own."""
    made = of_template(template, labels, policy)
    made["metadata"] |= {"name": name, "ownerReferences": [_owned_by(job)]}
    return {"apiVersion": "v1", "kind": "Pod", **made}


def batch(name: str, labels: Object, job: Object, template: Object, **spec: object) -> Object:
    """A batch Job as the job's own."""
    metadata = {"name": name, "labels": labels, "ownerReferences": [_owned_by(job)]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**spec, "template": template},
    }


def pod_of(job: Object, number: int) -> Object:
    """One pod of a batch Job."""
    name, template = job["metadata"]["name"], job["spec"]["template"]
    labels = {"batch.kubernetes.io/job-name": name, "job-name": name}
    made = pod(name, template, labels, job, template["spec"].get("restartPolicy", "Never"))
    made["metadata"]["name"] = f"{name}-{secrets.token_hex(3)}"
    if job["spec"].get("completionMode") == "Indexed":
        made["metadata"]["name"] = f"{name}-{number}-{secrets.token_hex(3)}"
        for part in ("labels", "annotations"):
            made["metadata"].setdefault(part, {})[COMPLETION_INDEX] = str(number)
    return made


def batch_status(job: Object, pods: Sequence[Object], now: str) -> Object:
    """What the Job controller says of a Job whose failed pods are not replaced."""
    was = job.get("status") or {}
    if is_finished(job):
        return dict(was)
    phases = [phase(each) for each in pods]
    succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
    status = {
        "startTime": was.get("startTime", now),
        "succeeded": succeeded,
        "failed": failed,
        "terminating": 0,
    }
    status |= {
        "active": len(pods) - succeeded - failed,
        "ready": phases.count("Running"),
        "conditions": [],
    }
    if job["spec"].get("completionMode") == "Indexed" and succeeded:
        status["completedIndexes"] = ",".join(
            str(index(each)) for each in sorted(pods, key=index) if phase(each) == "Succeeded"
        )
    if failed:
        status |= {"active": 0, "ready": 0}
        for kind in ("FailureTarget", "Failed"):
            set_condition(
                status,
                kind,
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
                now,
            )
    elif succeeded >= job["spec"].get("completions", 1):
        status |= {"completionTime": now, "ready": 0}
        for kind in ("SuccessCriteriaMet", "Complete"):
            set_condition(
                status, kind, "CompletionsReached", "Reached expected number of succeeded pods", now
            )
    return status


def pod_status(pod: Object, phase: str, now: str) -> Object:
    """What a kubelet says of a pod in a phase: waiting, up, ended well, or ended with CODE."""
    code = {"Succeeded": 0, "Failed": CODE}.get(phase)
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": now,
        "finishedAt": now,
    }
    state = {
        "Pending": {"waiting": {"reason": "ContainerCreating"}},
        "Running": {"running": {"startedAt": now}},
    }.get(phase, {"terminated": ended})
    up = str(phase == "Running")
    containers = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": up == "True",
            "restartCount": 0,
            "state": state,
            "lastState": {},
        }
        for each in pod["spec"]["containers"]
    ]
    conditions = [
        {"type": kind, "status": up, "lastTransitionTime": now}
        for kind in ("Ready", "ContainersReady")
    ]
    return {
        "phase": phase,
        "startTime": now,
        "conditions": conditions,
        "containerStatuses": containers,
    }


def waits_for_ever(pod: Object) -> bool:
    """Whether it ends only when it is removed: a worker of MPI."""
    labels = pod["metadata"]["labels"]
    is_worker = "worker" in (labels.get(f"{PREFIX}replica-type"), labels.get(f"{PREFIX}job-role"))
    return is_worker and labels.get(f"{PREFIX}operator-name") in (
        "mpi-operator",
        "mpijob-controller",
    )


def is_first(pod: Object, pods: Sequence[Object]) -> bool:
    """Whether it is the one of its job that everything hangs on."""
    return bool(min(pods, key=_rank)["metadata"]["name"] == pod["metadata"]["name"])


def _rank(pod: Object) -> tuple[bool, str]:
    labels = pod["metadata"]["labels"]
    roles = (labels.get(f"{PREFIX}replica-type"), labels.get(f"{PREFIX}job-role"))
    return not any(role in ("master", "chief", "launcher") for role in roles), pod["metadata"][
        "name"
    ]


def set_condition(status: Object, kind: str, reason: str, message: str, now: str) -> None:
    """Set a condition to True, as operators do: one that changes moves to the end, and an end is
    the end of running.
    """
    if any(each["type"] == kind and each["status"] == "True" for each in status["conditions"]):
        return
    kept = [each for each in status["conditions"] if each["type"] != kind]
    if kind in ("Succeeded", "Failed"):
        kept = [each | ({"status": "False"} if each["type"] == "Running" else {}) for each in kept]
    condition = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
    if (
        kind in ("Created", "Running", "Succeeded", "Failed")
        and "jobsStatus" not in status
        and "active" not in status
    ):
        condition["lastUpdateTime"] = now
    status["conditions"] = [*kept, condition]


def of_template(template: Object, labels: Object, policy: str) -> Object:
    metadata = template.get("metadata", {})
    made = {key: value for key, value in metadata.items() if key in ("annotations",)} | {
        "labels": metadata.get("labels", {}) | labels
    }
    return {"metadata": made, "spec": template["spec"] | {"restartPolicy": policy}}


def _owned_by(job: Object) -> Object:
    metadata = {name: job["metadata"][name] for name in ("name", "uid")}
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        **metadata,
        "controller": True,
        "blockOwnerDeletion": True,
    }
