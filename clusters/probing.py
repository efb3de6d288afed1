"""What a cluster can do, found out by asking it: what it serves, whether it shares GPUs, which
classes and runtimes it has.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from clusters.capabilities import UNKNOWN, Capabilities, Runtime
from clusters.findings import Findings, StorageClass
from clusters.kube import calls, discovery, resources
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Rejected, Unauthorized, Unavailable, bounded
from clusters.kube.resources import (
    CLUSTERTRAININGRUNTIMES,
    PODS,
    PRIORITYCLASSES,
    STORAGECLASSES,
    TRAINJOBS,
    Resource,
)

T = TypeVar("T")

USED = tuple(each for each in vars(resources).values() if isinstance(each, Resource))
"""The kinds that Muster uses: of everything that a cluster serves only these are kept."""
MOST = 200
"""Classes and runtimes that are kept, and fields of a kind."""
MAX_NAME = 253

FRAMEWORK = "trainer.kubeflow.org/framework"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"

_MAKERS = (
    (re.compile(r"\+k3s"), "K3s"),
    (re.compile(r"\+rke2"), "RKE2"),
    (re.compile(r"-gke\."), "GKE"),
    (re.compile(r"-eks-"), "EKS"),
    (re.compile(r"-aliyun\."), "ACK"),
    (re.compile(r"\+k0s"), "k0s"),
    (re.compile(r"\+vmware"), "VMware"),
    (re.compile(r"localkube"), "localkube"),
)
"""How makers of distributions mark the versions that are theirs."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found out."""

    capabilities: Capabilities
    findings: Findings


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Named(msgspec.Struct):
    metadata: _Meta


class _StorageClass(msgspec.Struct):
    metadata: _Meta
    provisioner: str = ""


class _Runtime(msgspec.Struct):
    metadata: _Meta
    spec: dict[str, Any] = {}


_named = msgspec.json.Decoder(_Named)
_storage_classes = msgspec.json.Decoder(_StorageClass)
_runtimes = msgspec.json.Decoder(_Runtime)


def probe(client: Client, namespaces: Iterable[str] = ()) -> Probe:
    """Ask for everything: about eight requests. `namespaces` are those of our projects there, where
    a pod can be tried.

    What the credentials may not ask for is told in the findings; a cluster that does not answer
    raises Unavailable or Unauthorized.
    """
    unanswered: dict[str, str] = {}

    def asked(name: str, question: Callable[[], T], otherwise: T) -> T:
        try:
            return question()
        except (Unavailable, Unauthorized):
            raise
        except KubeError as error:
            unanswered[name] = error.message
            return otherwise

    served: frozenset[str] | None = asked("served", lambda: _served(client), None)
    if served is None:
        # Who may not even ask what there is finds out when launching.
        return Probe(UNKNOWN, Findings(unanswered=unanswered))
    classes: list[_Named] = asked(
        "priority_classes", lambda: _list(client, PRIORITYCLASSES, _named), []
    )
    storage: list[_StorageClass] = asked(
        "storage_classes", lambda: _list(client, STORAGECLASSES, _storage_classes), []
    )
    runtimes: list[_Runtime] = []
    fields: frozenset[str] = frozenset()
    if path(TRAINJOBS) in served:
        runtimes = asked("runtimes", lambda: _list(client, CLUSTERTRAININGRUNTIMES, _runtimes), [])
        fields = asked(
            "trainjob_fields",
            lambda: discovery.spec_fields(client, TRAINJOBS, "TrainJob"),
            frozenset(),
        )
        fields = frozenset(name[:MAX_NAME] for name in sorted(fields)[:MOST])
    capabilities = Capabilities(
        served=served,
        priority_classes=frozenset(_named_as(each) for each in classes),
        runtimes=tuple(map(_runtime, runtimes)),
        trainjob_fields=fields,
    )
    sharing = _sharing(client, [*namespaces, "default"], unanswered) if capabilities.kai else False
    found = tuple(
        StorageClass(
            _named_as(each),
            bounded(each.provisioner)[:MAX_NAME],
            (each.metadata.annotations or {}).get(DEFAULT_CLASS) == "true",
        )
        for each in storage
    )
    return Probe(
        dataclasses.replace(capabilities, gpu_sharing=sharing), Findings(found, unanswered)
    )


def platform(about: discovery.About) -> str:
    """What the server is and runs on, in words: "K3s, linux/arm64". The version says whose
    distribution it is, where it does.
    """
    maker = next((name for mark, name in _MAKERS if mark.search(about.version)), "")
    return ", ".join(filter(None, (maker, about.platform)))


def path(resource: Resource) -> str:
    """A kind as `Capabilities.served` has it."""
    return f"{resource.api_version}/{resource.plural}"


def _served(client: Client) -> frozenset[str]:
    used = {path(each) for each in USED}
    versions = {each.api_version for each in USED}
    return frozenset(
        found
        for each in discovery.discovery(client, versions)
        if (found := path(each.resource)) in used
    )


def _list(client: Client, resource: Resource, decoder: "msgspec.json.Decoder[T]") -> list[T]:
    page = calls.list_page(client, resource, limit=MOST, decoder=decoder)
    # A server need not keep to the limit.
    return page.items[:MOST]


def _runtime(found: _Runtime) -> Runtime:
    """The scheduler is that of the first pod template in it that names one."""
    labels = found.metadata.labels or {}
    scheduler = bounded(next(_schedulers(found.spec), ""))[:MAX_NAME]
    return Runtime(_named_as(found), bounded(labels.get(FRAMEWORK, ""))[:MAX_NAME], scheduler)


def _named_as(found: _Named | _StorageClass | _Runtime) -> str:
    return bounded(found.metadata.name)[:MAX_NAME]


def _schedulers(value: Any, depth: int = 12) -> Iterator[str]:
    if isinstance(value, dict) and depth:
        named = value.get("schedulerName")
        if isinstance(named, str) and named:
            yield named
        for inner in value.values():
            yield from _schedulers(inner, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _schedulers(inner, depth - 1)


def _sharing(client: Client, namespaces: list[str], unanswered: dict[str, str]) -> bool | None:
    """Whether KAI shares devices: its webhook refuses a pod that asks for a part of one while it
    does not. Nothing is made by asking.
    """
    why = ""
    for namespace in namespaces:
        try:
            calls.create(client, PODS, _pod(), namespace=namespace, dry_run=True)
        except (Unavailable, Unauthorized):
            raise
        except Rejected as error:
            if "admission webhook" in error.message and "sharing" in error.message.lower():
                return False
            why = why or error.message
        except KubeError as error:
            # That namespace is not there (any more): another one may be.
            why = why or error.message
        else:
            return True
    unanswered["gpu_sharing"] = why
    return None


def _pod() -> dict[str, Any]:
    """A pod that asks for half a GPU, and that no policy of a namespace has a reason to refuse."""
    secured = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    amounts = {"cpu": "1m", "memory": "8Mi"}
    container = {
        "name": "probe",
        "image": "none",
        "securityContext": secured,
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "muster-probe",
            "annotations": {"gpu-fraction": "0.5"},
            "labels": {"kai.scheduler/queue": "default-queue"},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }
