"""What operators make of each kind of training job, and what they say of it: names, labels, owners,
conditions. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.conformance.api import Api, Object
from tests.journeys.made import (
    PREFIX,
    batch,
    holds,
    is_finished,
    of_template,
    phase,
    pod,
    set_condition,
)

YEAR = ["/bin/sh", "-c", "sleep 31536000"]


@dataclass(frozen=True)
class Kind:
    """A kind of job. `operator` is what its pods are labelled with."""

    api_version: str
    kind: str
    plural: str
    operator: str = ""

    def path(self, namespace: str) -> str:
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"

    def children(self, job: Object) -> Iterator[Object]:
        """The pods that there are to be, or the Jobs between."""
        for type, replica in replicas(job).items():
            for number in range(replica.get("replicas", 1)):
                yield self._pod(job, type.lower(), number, replica)

    def cleans_up(self, job: Object) -> bool:
        """Whether pods that still run when it has ended are removed."""
        return bool(job["spec"].get("runPolicy", {}).get("cleanPodPolicy") == "Running")

    def status(
        self,
        job: Object,
        pods: Sequence[Object],
        between: Sequence[Object],
        below: Sequence[Object],
        now: str,
    ) -> Object:
        """What the operator says of it. `pods` are its own, `below` those of the Jobs `between`."""
        leads = [
            each for each in pods if each["metadata"]["labels"].get(f"{PREFIX}job-role") == "master"
        ] or list(pods)
        alone = (
            any(type in ("Master", "Chief", "Launcher") for type in replicas(job))
            or self.kind == "TFJob"
        )
        deciding = leads if alone else list(pods)
        failed = [each for each in pods if phase(each) == "Failed"]
        done = (
            bool(deciding)
            and all(phase(each) == "Succeeded" for each in deciding)
            and (alone or len(pods) == count_wanted_replicas(job))
        )
        tallies = {
            type: {
                "active": count_pods(pods, type, "Running"),
                "succeeded": count_pods(pods, type, "Succeeded"),
                "failed": count_pods(pods, type, "Failed"),
            }
            for type in replicas(job)
        }
        up = bool(deciding) and any(phase(each) == "Running" for each in deciding)
        return self._told(job, tallies, now, up=up, done=done, failed=bool(failed))

    def _told(
        self,
        job: Object,
        tallies: Object,
        now: str,
        *,
        up: bool,
        done: bool,
        failed: bool,
        reason: str = "",
    ) -> Object:
        was = job.get("status") or {}
        if is_finished(job):
            return dict(was)
        status = {
            "startTime": was.get("startTime", now),
            "replicaStatuses": tallies,
            "conditions": list(was.get("conditions", [])),
        }
        name = job["metadata"]["name"]
        set_condition(
            status, "Created", f"{self.kind}Created", f"{self.kind} {name} is created.", now
        )
        if up:
            set_condition(
                status, "Running", f"{self.kind}Running", f"{self.kind} {name} is running.", now
            )
        if done:
            status["completionTime"] = now
            set_condition(
                status,
                "Succeeded",
                f"{self.kind}Succeeded",
                f"{self.kind} {name} is successfully completed.",
                now,
            )
        elif failed:
            status["completionTime"] = now
            set_condition(
                status,
                "Failed",
                reason or f"{self.kind}Failed",
                f"{self.kind} {name} is failed because 1 replica(s) failed.",
                now,
            )
        return status

    def _pod(self, job: Object, type: str, number: int, replica: Object) -> Object:
        ours = {
            f"{PREFIX}job-name": job["metadata"]["name"],
            f"{PREFIX}operator-name": self.operator,
        }
        ours |= {f"{PREFIX}replica-type": type, f"{PREFIX}replica-index": str(number)}
        first = (
            "master"
            if "Master" in replicas(job)
            else "chief"
            if "Chief" in replicas(job)
            else "worker"
        )
        if (type, number) == (first, 0) and not (
            first == "worker" and self.kind in ("XGBoostJob", "PaddleJob")
        ):
            ours[f"{PREFIX}job-role"] = "master"
        policy = replica.get("restartPolicy", "Never")
        return pod(
            f"{job['metadata']['name']}-{type}-{number}",
            replica["template"],
            ours,
            job,
            "Never" if policy == "ExitCode" else policy,
        )


class MpiV1(Kind):
    """Its launcher has no number, and its workers sleep until they are told what to do."""

    def _pod(self, job: Object, type: str, number: int, replica: Object) -> Object:
        made = super()._pod(job, type, number, replica)
        if type == "launcher":
            made["metadata"]["name"] = f"{job['metadata']['name']}-launcher"
            del made["metadata"]["labels"][f"{PREFIX}replica-index"]
            made["metadata"]["labels"][f"{PREFIX}job-role"] = "master"
        else:
            made["metadata"]["labels"].pop(f"{PREFIX}job-role", None)
            made["spec"]["containers"][0].setdefault("command", YEAR)
        return made


class Mpi(Kind):
    """Of the MPI operator: the launcher is a batch Job."""

    def children(self, job: Object) -> Iterator[Object]:
        launcher, worker = (replicas(job)[type] for type in ("Launcher", "Worker"))
        name = job["metadata"]["name"]
        ours = {f"{PREFIX}job-name": name, f"{PREFIX}operator-name": self.operator}
        for number in range(worker.get("replicas", 0)):
            more = ours | {f"{PREFIX}job-role": "worker", f"{PREFIX}replica-index": str(number)}
            made = pod(
                f"{name}-worker-{number}",
                worker["template"],
                more,
                job,
                worker.get("restartPolicy", "Never"),
            )
            made["spec"]["containers"][0].setdefault("command", YEAR)
            yield made
        template = of_template(
            launcher["template"],
            ours | {f"{PREFIX}job-role": "launcher"},
            launcher.get("restartPolicy", "OnFailure"),
        )
        policy = job["spec"].get("runPolicy", {})
        yield batch(
            f"{name}-launcher",
            {"app": name},
            job,
            template,
            backoffLimit=policy.get("backoffLimit", 6),
        )

    def status(
        self,
        job: Object,
        pods: Sequence[Object],
        between: Sequence[Object],
        below: Sequence[Object],
        now: str,
    ) -> Object:
        launcher = between[0] if between else {}
        done, failed = holds(launcher, "Complete"), holds(launcher, "Failed")
        tallies = {
            "Launcher": {
                word: sum(phase(each) == pod_phase for each in below)
                for word, pod_phase in TALLIES.items()
            },
            "Worker": {
                word: sum(phase(each) == pod_phase for each in pods)
                for word, pod_phase in TALLIES.items()
            },
        }
        up = bool(below) and all(phase(each) == "Running" for each in (*below, *pods))
        reason = (failed or {}).get("reason", "")
        return self._told(
            job, tallies, now, up=up, done=bool(done), failed=bool(failed), reason=reason
        )


class TrainJob(Kind):
    """Of Kubeflow Trainer: its nodes are an indexed Job. The runtime that it names is taken for a
    plain one.
    """

    def children(self, job: Object) -> Iterator[Object]:
        trainer, name = job["spec"]["trainer"], job["metadata"]["name"]
        (patch,) = job["spec"]["runtimePatches"]
        (node,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        template = node["template"]["spec"]["template"]
        container = {
            "image": trainer["image"],
            "command": trainer.get("command", []),
            "args": trainer.get("args", []),
        }
        container |= {
            "env": trainer.get("env", []),
            "resources": trainer.get("resourcesPerNode", {}),
        }
        template["spec"]["containers"][0] |= container
        ours = {
            "jobset.sigs.k8s.io/jobset-name": name,
            "jobset.sigs.k8s.io/replicatedjob-name": "node",
            "jobset.sigs.k8s.io/job-index": "0",
        }
        count = trainer.get("numNodes", 1)
        more = {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": 0,
        }
        yield batch(f"{name}-node-0", ours, job, of_template(template, ours, "Never"), **more)

    def status(
        self,
        job: Object,
        pods: Sequence[Object],
        between: Sequence[Object],
        below: Sequence[Object],
        now: str,
    ) -> Object:
        if is_finished(job) or not between:
            return dict(job.get("status") or {})
        jobs = between[0].get("status") or {}
        tally = {word: jobs.get(word, 0) for word in ("ready", "active", "succeeded", "failed")}
        status = {"jobsStatus": [{"name": "node", "suspended": 0, **tally}], "conditions": []}
        if holds(between[0], "Complete"):
            set_condition(
                status, "Complete", "AllJobsCompleted", "jobset completed successfully", now
            )
        elif holds(between[0], "Failed"):
            set_condition(
                status,
                "Failed",
                "FailedJobs",
                f"jobset failed due to one or more job failures (first failed job: {jobs})"[:400],
                now,
            )
        return status


TALLIES = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
JOB = Kind("batch/v1", "Job", "jobs")
KINDS = (
    JOB,
    Kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", "pytorchjob-controller"),
    Kind("kubeflow.org/v1", "TFJob", "tfjobs", "tfjob-controller"),
    Kind("kubeflow.org/v1", "XGBoostJob", "xgboostjobs", "xgboostjob-controller"),
    Kind("kubeflow.org/v1", "JAXJob", "jaxjobs", "jaxjob-controller"),
    Kind("kubeflow.org/v1", "PaddleJob", "paddlejobs", "paddlejob-controller"),
    MpiV1("kubeflow.org/v1", "MPIJob", "mpijobs", "mpijob-controller"),
    Mpi("kubeflow.org/v2beta1", "MPIJob", "mpijobs", "mpi-operator"),
    TrainJob("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs"),
)


def list_served_kinds(api: Api) -> list[Kind]:
    """The kinds that the cluster knows."""
    versions = {kind.api_version: api.get(f"/apis/{kind.api_version}") for kind in KINDS}
    known = {
        (version, each["name"])
        for version, answer in versions.items()
        if answer.status == 200
        for each in answer.json()["resources"]
    }
    return [kind for kind in KINDS if (kind.api_version, kind.plural) in known]


def replicas(job: Object) -> Object:
    """The replica map of a kind of kubeflow.org."""
    return next((value for name, value in job["spec"].items() if name.endswith("ReplicaSpecs")), {})


def count_wanted_replicas(job: Object) -> int:
    return sum(each.get("replicas", 1) for each in replicas(job).values())


def count_pods(pods: Sequence[Object], type: str, wanted: str) -> int:
    return sum(
        phase(each) == wanted
        and each["metadata"]["labels"][f"{PREFIX}replica-type"] == type.lower()
        for each in pods
    )
