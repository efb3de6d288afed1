"""The kinds that Muster uses, where they are served, and a valid object of each that no controller
acts on.
"""

import copy
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.api import Api, Object


@dataclass(frozen=True)
class Kind:
    """A served kind. `custom` says that a CRD defines it, which shows in deletions, patches and
    refusals.
    """

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True
    custom: bool = False

    @property
    def group(self) -> str:
        return self.api_version.split("/")[0] if "/" in self.api_version else ""

    @property
    def qualified(self) -> str:
        """How refusals name the resource: `pods`, `pytorchjobs.kubeflow.org`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The path of the collection, of one object, or of its subresource; without a namespace,
        over all of them.
        """
        parts = ["/apis" if self.group else "/api", self.api_version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *filter(None, (name, subresource))])

    def details(self, name: str = "") -> Object:
        """The `details` of a refusal about one object of this resource."""
        return {
            **({"name": name} if name else {}),
            **({"group": self.group} if self.group else {}),
            "kind": self.plural,
        }


NAMESPACES = Kind("v1", "namespaces", "Namespace", namespaced=False)
NODES = Kind("v1", "nodes", "Node", namespaced=False)
CONFIGMAPS = Kind("v1", "configmaps", "ConfigMap")
SECRETS = Kind("v1", "secrets", "Secret")
SERVICES = Kind("v1", "services", "Service")
SERVICEACCOUNTS = Kind("v1", "serviceaccounts", "ServiceAccount")
PODS = Kind("v1", "pods", "Pod")
EVENTS = Kind("v1", "events", "Event")
NEW_EVENTS = Kind("events.k8s.io/v1", "events", "Event")
LEASES = Kind("coordination.k8s.io/v1", "leases", "Lease")
JOBS = Kind("batch/v1", "jobs", "Job")
PYTORCHJOBS = Kind("kubeflow.org/v1", "pytorchjobs", "PyTorchJob", custom=True)
JAXJOBS = Kind("kubeflow.org/v1", "jaxjobs", "JAXJob", custom=True)
PADDLEJOBS = Kind("kubeflow.org/v1", "paddlejobs", "PaddleJob", custom=True)
PODGROUPS = Kind("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup", custom=True)
QUEUES = Kind("scheduling.run.ai/v2", "queues", "Queue", namespaced=False, custom=True)
CRDS = Kind(
    "apiextensions.k8s.io/v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)

GATE = "conformance.muster.dev/never"
FOREIGN_OPERATOR = "kueue.x-k8s.io/multikueue"
"""A PyTorchJob managed by this is left alone by the training operator (facts/engine.md 1.2)."""


def configmap(name: str = "cm", **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data or {"key": "value"},
    }


def secret(name: str = "secret") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "data": {"token": "c2VjcmV0"},
    }


def service(name: str = "svc") -> Object:
    spec = {
        "clusterIP": "None",
        "selector": {"app": "a"},
        "ports": [{"name": "main", "port": 23456}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def lease(name: str = "lease", holder: str = "a", **metadata: object) -> Object:
    """Leases stand for "any built-in kind" in lists and watches: no controller makes any in a new
    namespace.
    """
    meta = {"name": name, **metadata}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta,
        "spec": {"holderIdentity": holder},
    }


def job(name: str = "job") -> Object:
    """Build a batch Job that never starts a pod, as it is suspended."""
    template = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "train:1", "command": ["true"]}],
        }
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"suspend": True, "template": template},
    }


def replica(replicas: int) -> Object:
    container = {
        "name": "pytorch",
        "image": "train:1",
        "command": ["torchrun", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
    }
    return {
        "replicas": replicas,
        "restartPolicy": "OnFailure",
        "template": {"spec": {"containers": [container]}},
    }


def pytorchjob(name: str = "job", **metadata: object) -> Object:
    """Build the job of the recorded answers, given to an operator that does not exist."""
    run_policy = {"cleanPodPolicy": "None", "suspend": False, "managedBy": FOREIGN_OPERATOR}
    spec = {
        "runPolicy": run_policy,
        "pytorchReplicaSpecs": {"Master": replica(1), "Worker": replica(3)},
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def scalable_job(kind: Kind, name: str = "job") -> Object:
    """Build a job of three workers whose kind has the subresource scale."""
    if kind is PYTORCHJOBS:
        return pytorchjob(name)
    framework = {JAXJOBS: "jax", PADDLEJOBS: "paddle"}[kind]
    worker = replica(3)
    worker["template"]["spec"]["containers"][0]["name"] = framework
    run_policy = {"cleanPodPolicy": "None", "managedBy": FOREIGN_OPERATOR}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {"runPolicy": run_policy, f"{framework}ReplicaSpecs": {"Worker": worker}},
    }


def podgroup(name: str = "group") -> Object:
    meta = {"name": name}
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": 2, "queue": "none"},
    }


def queue(name: str) -> Object:
    gpu = {"quota": 1, "limit": 2, "overQuotaWeight": 1}
    spec = {"displayName": "a queue", "resources": {"gpu": gpu}}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def pod(name: str = "pod", **spec: object) -> Object:
    """Build a pod that waits for ever behind a scheduling gate: no scheduler and no kubelet takes
    it.
    """
    container = {"name": "main", "image": "train:1", "command": ["sleep", "60"]}
    full = {
        "restartPolicy": "Never",
        "schedulingGates": [{"name": GATE}],
        "containers": [container],
        **spec,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {k: v for k, v in full.items() if v is not None},
    }


def stray_pod(name: str = "pod") -> Object:
    """Build a pod bound to a node that does not exist: no kubelet ever confirms its deletion.

    Each has its own node: a real cluster removes pods by force 40 s after it first missed their
    node, however young they are.
    """
    return pod(
        name,
        schedulingGates=None,
        nodeName=f"conformance-{secrets.token_hex(5)}",
        terminationGracePeriodSeconds=30,
    )


def shell_pod(
    image: str, script: str, name: str = "pod", *, container: Object | None = None, **spec: object
) -> Object:
    """Build a pod whose one container runs the script in the image's shell; for clusters that run
    pods.
    """
    main = {
        "name": "main",
        "image": image,
        "command": ["/bin/sh", "-c", script],
        **(container or {}),
    }
    return pod(
        name,
        **{
            "schedulingGates": None,
            "containers": [main],
            "terminationGracePeriodSeconds": 5,
            **spec,
        },
    )


def sample(kind: Kind, name: str) -> Object:
    """Build a valid object of the kind, with this name."""
    makers: dict[Kind, Callable[[], Object]] = {
        NAMESPACES: lambda: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        CONFIGMAPS: lambda: configmap(name),
        SECRETS: lambda: secret(name),
        SERVICES: lambda: service(name),
        SERVICEACCOUNTS: lambda: {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name},
        },
        LEASES: lambda: lease(name),
        JOBS: lambda: job(name),
        PODS: lambda: pod(name),
        PYTORCHJOBS: lambda: pytorchjob(name),
        PODGROUPS: lambda: podgroup(name),
        QUEUES: lambda: queue(name),
    }
    return makers[kind]()


def create_pod(
    api: Api, namespace: str, obj: Object, *, within: float = 30.0, dry: bool = False
) -> Object:
    """Create a pod (or only ask for it, when `dry`), waiting for the namespace's default service
    account where the cluster insists on one.

    A cluster without the controller that makes that account gets it from here, once the wait is
    over.
    """
    deadline = time.monotonic() + within
    while True:
        answer = api.post(PODS.path(namespace), obj, dryRun="All" if dry else None)
        if answer.status != 403 or "service account" not in answer.text:
            made: Object = answer.ok(201)
            return made
        if time.monotonic() > deadline:
            api.post(SERVICEACCOUNTS.path(namespace), sample(SERVICEACCOUNTS, "default"))
        time.sleep(0.1)


def create(api: Api, kind: Kind, namespace: str, obj: Object) -> Object:
    """Create any sample; pods with the patience they need."""
    if kind is PODS:
        return create_pod(api, namespace, obj)
    made: Object = api.post(kind.path(namespace), obj).ok(201)
    return made


def without_bookkeeping(obj: Object) -> Object:
    """Return what a client wrote: the object without status and the fields that every write
    changes.
    """
    plain = copy.deepcopy(obj)
    plain.pop("status", None)
    for name in ("resourceVersion", "managedFields"):
        plain["metadata"].pop(name, None)
    return plain


def names(listing: Object) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


def frame_summary(frame: Object) -> tuple[str, str]:
    """Return a watch frame as (type, name)."""
    return frame["type"], frame["object"]["metadata"].get("name", "")
