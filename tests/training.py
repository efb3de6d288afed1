"""PyTorchJobs for tests: made, awaited, and their logs read, on an embedded cluster of the test's
own.
"""

import re
from typing import Any

from tests.conformance.api import Api, Object, eventually

JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
PODS = "/api/v1/namespaces/default/pods"
FINAL = ("Succeeded", "Failed")


def replica(
    image: str,
    arguments: list[str],
    count: int,
    *,
    command: list[str] | None = None,
    restart: str = "OnFailure",
    **container: Any,
) -> Object:
    """A replica spec whose container runs `image`, or `command` where given."""
    run: Object = {"name": "pytorch", "image": image, "args": arguments, **container}
    if command:
        run["command"] = command
    return {
        "replicas": count,
        "restartPolicy": restart,
        "template": {"spec": {"containers": [run], "terminationGracePeriodSeconds": 5}},
    }


def job(name: str, replicas: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": replicas, **spec},
    }


def allreduce(name: str, *arguments: str, workers: int = 2) -> Object:
    """One master and some workers of the bundled `allreduce` example."""
    image = "muster/allreduce"
    return job(
        name,
        {
            "Master": replica(image, list(arguments), 1),
            "Worker": replica(image, list(arguments), workers),
        },
    )


def submit(api: Api, body: Object) -> str:
    """Create the job and give its name."""
    name: str = api.post(JOBS, body).ok(201)["metadata"]["name"]
    return name


def condition(api: Api, name: str, kind: str) -> Object | None:
    conditions = api.get(f"{JOBS}/{name}").ok().get("status", {}).get("conditions", [])
    return next(
        (entry for entry in conditions if entry["type"] == kind and entry["status"] == "True"), None
    )


def wait_for_end(api: Api, name: str, within: float = 180) -> str:
    """Wait for the job's end and give the condition that says how it ended."""
    return str(
        eventually(
            lambda: next((kind for kind in FINAL if condition(api, name, kind)), None), within
        )
    )


def pods(api: Api, name: str) -> list[Object]:
    found: list[Object] = api.get(
        PODS, labelSelector=f"training.kubeflow.org/job-name={name}"
    ).ok()["items"]
    return found


def logs(api: Api, name: str, **query: Any) -> dict[str, str]:
    """The whole log of each pod of the job."""
    return {
        pod["metadata"]["name"]: api.get(
            f"{PODS}/{pod['metadata']['name']}/log", accept="*/*", **query
        ).text
        for pod in pods(api, name)
    }


def steps(log: str) -> list[int]:
    """The training steps that a log tells of, in its order."""
    return [int(number) for number in re.findall(r"^step (\d+) ", log, re.MULTILINE)]


def digests(every: dict[str, str]) -> set[str]:
    """What the ranks say about their final weights; one element when they agree."""
    return {
        found for log in every.values() for found in re.findall(r"^digest (\w+)", log, re.MULTILINE)
    }
