"""Objects that claim to be a workload's, or nearly, and that no program of ours has made: through
the API, with garbage inside.
"""

from tests.conformance.api import Object

NAMESPACE = "muster-team-a"
HOSTILE = "<script>alert(1)</script>\x1b[31m\x00\u202e{{ 7*7 }}"
HUGE = "x" * 200_000
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
JOBS = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs"
NOWHERE = "00000000-0000-4000-8000-000000000000"
ENDS = ["/bin/sh", "-c", "printf '<b>\\033[31m\\000\\377'; exit 7"]


def labels(workload_id: object, attempt: object) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "muster",
        "muster.dev/workload": str(workload_id),
        "muster.dev/attempt": str(attempt),
    }


def pods(mine: str, other: str) -> list[Object]:
    """Pods that carry the labels of `mine`, or of `other`, which has ended, or labels that are
    nobody's.
    """
    claims = [
        (mine, 1),
        (mine, 2),
        (mine, 10**20),
        (mine, "one"),
        (mine, ""),
        (other, 1),
        (other, 7),
        (NOWHERE, 1),
        ("no-uuid", 1),
        ("", 1),
    ]
    made = [pod(f"poison-{number}", labels(*claim)) for number, claim in enumerate(claims)]
    return [
        *made,
        pod("p" * 253, labels(mine, 1)),
        without_status(mine),
        pod("poison-huge", labels(mine, 1), HUGE),
    ]


def pod(name: str, claimed: dict[str, str], annotation: str = HOSTILE) -> Object:
    container = {"name": "c", "image": HOSTILE[:25], "command": ENDS}
    metadata = {"name": name, "labels": claimed, "annotations": {"gpu-note": annotation}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def without_status(workload_id: str) -> Object:
    """A pod that no node takes, so that it never has a container's status."""
    waits = pod("poison-waits", labels(workload_id, 1))
    waits["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "100000"},
        "limits": {"cpu": "100000"},
    }
    return waits


def job(name: str, claimed: dict[str, str]) -> Object:
    template = {
        "spec": {"containers": [{"name": "pytorch", "image": "muster/allreduce", "command": ENDS}]}
    }
    master = {"replicas": 1, "restartPolicy": "Never", "template": template}
    metadata = {"name": name, "labels": claimed, "annotations": {"note": HUGE}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata,
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }


def jobs(mine: str, other: str) -> list[Object]:
    claims = [(mine, 1), (other, 1), (other, 10**20), (NOWHERE, 1)]
    return [job(f"poison-job-{number}", labels(*claim)) for number, claim in enumerate(claims)]


def events(workload_id: str, name: str) -> list[Object]:
    """Events about a workload's job, or nearly."""
    about = {"kind": "PyTorchJob", "namespace": NAMESPACE, "name": name, "uid": workload_id}
    garbage: list[Object] = [
        {
            "reason": HOSTILE[:60],
            "message": HOSTILE * 20,
            "count": 2**31 - 1,
            "lastTimestamp": "9999-12-31T23:59:59Z",
        },
        {"reason": "\x00", "message": "\x00" * 1000, "lastTimestamp": "0001-01-01T00:00:00Z"},
        {"reason": "Invalid", "message": "a time that is none", "lastTimestamp": "tomorrow"},
        {
            "reason": "Invalid",
            "message": "a time that is none",
            "eventTime": "2026-13-41T99:99:99Z",
        },
        {
            "reason": "Negative",
            "message": HUGE[:1000],
            "count": -5,
            "firstTimestamp": "1969-12-31T23:59:59Z",
        },
        {"reason": "NoSubject", "involvedObject": {}},
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"poison-{number}"},
            "involvedObject": about,
        }
        | each
        for number, each in enumerate(garbage)
    ]
