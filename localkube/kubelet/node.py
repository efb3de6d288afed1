"""A node as its kubelet reports it: labels, capacity, conditions, and heartbeats."""

import logging
import platform
import shutil
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

from localkube import KUBERNETES_VERSION, VERSION, ballast, clock
from localkube.errors import ApiError
from localkube.kubelet import proctree, read_only_mounts
from localkube.kubelet.environment import POD_IP
from localkube.kubelet.machine_division import NodeShare
from localkube.metadata import Object, find_condition, labels_of, set_condition
from localkube.objects import Objects
from localkube.options import DOMAIN, READ_ONLY_LABEL, Options
from localkube.resources import LEASE_NAMESPACE, LEASES, NODES

MAX_RENEW_SECONDS = 10.0
RENEWALS_PER_GRACE = 4
"""How often a lease is renewed until the node would count as lost."""

REPORT_EVERY = 30
"""Renewals between two writes of an unchanged node: five minutes, as a real kubelet."""

RUNTIME_PREFIX = "localkube://"
"""How the container runtime of every node of ours begins."""

MIN_FREE_BYTES = 1 << 30
MIN_FREE_SHARE = 0.05
"""The disk is nearly full with less than 1 GiB free, or less than 5 % of a smaller one."""

log = logging.getLogger(__name__)


class NodeReporter:
    """Keeps the node's object and lease up to date.

    `pressure` is why no pod may start now, or empty.
    """

    def __init__(self, objects: Objects, options: Options, share: NodeShare) -> None:
        self._objects = objects
        self._options = options
        self._share = share
        self._name = share.name
        self._stopping = False
        self._renewals = 0
        self.pressure = ""

    @property
    def renew_seconds(self) -> float:
        return min(MAX_RENEW_SECONDS, self._options.node_monitor_grace / RENEWALS_PER_GRACE)

    def register(self) -> bool:
        """Create or update the node's object; return whether the machine rebooted since its last
        write.
        """
        old = self._objects.find(NODES, "", self._name)
        booted_before = ((old or {}).get("status") or {}).get("nodeInfo", {}).get("bootID")
        if old is None:
            self._create_node()
        else:
            self._objects.modify(NODES, "", self._name, self._update_labels)
        self._stopping = False
        self.renew(report=True)
        return bool(booted_before) and booted_before != proctree.boot_id()

    def renew(self, *, report: bool = False) -> None:
        """Renew the lease; write the node's status when it changed, is due, or with `report`.

        A node that somebody deleted is created again, which a real kubelet does at its restart.
        """
        self._keep_ballast()
        try:
            self._renew_and_report(report)
        except ApiError as refusal:
            # The disk is full: free the ballast file and try once more, so that the node can still
            # report that it is under pressure.
            if refusal.code != HTTPStatus.INSUFFICIENT_STORAGE or not ballast.release_ballast(
                self._options.data
            ):
                raise
            self._renew_and_report(report)

    def _keep_ballast(self) -> None:
        usage = shutil.disk_usage(self._options.data)
        if not is_nearly_full(usage.free - ballast.compute_size(usage.total), usage.total):
            ballast.create_ballast(self._options.data, usage.total)

    def _renew_and_report(self, report: bool) -> None:
        self.pressure = describe_disk_pressure(self._options.data)
        self._renewals += 1
        report = report or self._renewals % REPORT_EVERY == 0
        if self._objects.find(NODES, "", self._name) is None:
            self._create_node()
        self._objects.modify(
            NODES,
            "",
            self._name,
            lambda node: self._update_status(node, report=report),
            subresource="status",
        )
        try:
            self._renew_lease()
        except ApiError as refusal:
            log.warning("the lease of %s was not renewed: %s", self._name, refusal.message)

    def _create_node(self) -> None:
        self._objects.create(
            NODES,
            "",
            {"metadata": {"name": self._name, "labels": build_labels(self._share)}, "spec": {}},
        )

    def report_shutdown(self) -> None:
        """Report that the node shuts down, so that nothing is placed on it meanwhile.

        The shutdown goes on also where that cannot be written.
        """
        self._stopping = True
        try:
            self.renew(report=True)
        except ApiError as refusal:
            log.warning("%s goes without a word: %s", self._name, refusal.message)

    def _update_labels(self, node: Object) -> None:
        own_prefixes = ("nvidia.com/gpu", f"{DOMAIN}/virtual-gpu")
        other_labels = {
            key: value for key, value in labels_of(node).items() if not key.startswith(own_prefixes)
        }
        node["metadata"]["labels"] = other_labels | build_labels(self._share)

    def _update_status(self, node: Object, *, report: bool) -> None:
        status = node.setdefault("status", {})
        conditions = status.setdefault("conditions", [])
        for condition in self._build_conditions():
            old = find_condition(conditions, condition["type"])
            if (
                old is not None
                and old.get("status") == condition["status"]
                and old.get("message") == condition["message"]
                and not report
            ):
                continue
            set_condition(conditions, condition | {"lastHeartbeatTime": clock.format_time()})
        # Write quantities in the canonical form in which the API server stores them, so that an
        # unchanged status is no change of the object.
        status["capacity"] = status["allocatable"] = dict(self._share.capacity)
        status["addresses"] = [
            {"type": "InternalIP", "address": POD_IP},
            {"type": "Hostname", "address": self._name},
        ]
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 0}}
        status["nodeInfo"] = build_node_info()

    def _build_conditions(self) -> Sequence[Object]:
        ready = ("True", "KubeletReady", "kubelet is posting ready status")
        if self._stopping:
            ready = ("False", "KubeletNotReady", "node is shutting down")
        disk = ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
        if self.pressure:
            disk = ("True", "KubeletHasDiskPressure", self.pressure)
        rows = {
            "MemoryPressure": (
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            "DiskPressure": disk,
            "PIDPressure": (
                "False",
                "KubeletHasSufficientPID",
                "kubelet has sufficient PID available",
            ),
            "Ready": ready,
        }
        return [
            {"type": kind, "status": status, "reason": reason, "message": message}
            for kind, (status, reason, message) in rows.items()
        ]

    def _renew_lease(self) -> None:
        spec = {
            "holderIdentity": self._name,
            "leaseDurationSeconds": self._options.node_monitor_grace,
            "renewTime": clock.format_micro_time(),
        }
        if self._objects.find(LEASES, LEASE_NAMESPACE, self._name) is None:
            self._objects.create(
                LEASES,
                LEASE_NAMESPACE,
                {"metadata": {"name": self._name, "namespace": LEASE_NAMESPACE}, "spec": spec},
            )
            return
        self._objects.modify(
            LEASES, LEASE_NAMESPACE, self._name, lambda lease: lease.update(spec=spec)
        )


def build_labels(share: NodeShare) -> dict[str, str]:
    """Build a node's labels.

    Those of GPUs are as NVIDIA's feature discovery writes them, with the memory in MiB of one
    device. One of our own says whether read-only mounts are kept.
    """
    system = {"os": platform.system().lower(), "arch": architecture()}
    labels = {
        f"{prefix}kubernetes.io/{key}": value
        for key, value in system.items()
        for prefix in ("", "beta.")
    }
    labels["kubernetes.io/hostname"] = share.name
    labels[READ_ONLY_LABEL] = "enforced" if read_only_mounts.is_enforceable() else "not-enforced"
    devices = share.devices
    if devices:
        labels |= {
            "nvidia.com/gpu.count": str(len(devices)),
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.memory": str(min(gpu.memory_mib for gpu in devices)),
            "nvidia.com/gpu.product": devices[0].product,
        }
    if any(gpu.virtual for gpu in devices):
        labels[f"{DOMAIN}/virtual-gpu"] = "true"
    return labels


def describe_disk_pressure(data: Path) -> str:
    """Return why the data directory's disk is too full to start anything; empty when it is not."""
    usage = shutil.disk_usage(_nearest_existing(data))
    if not is_nearly_full(usage.free, usage.total):
        return ""
    return (
        f"the disk of {data} is nearly full: {usage.free >> 20} MiB of {usage.total >> 20} MiB are "
        "free; free space and it goes on"
    )


def is_our_node(node: Object) -> bool:
    """Return whether the node is, or was, one of a machine of localkube."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion", "")).startswith(RUNTIME_PREFIX)


def is_nearly_full(free: int, total: int) -> bool:
    """Return whether a disk with so many bytes is too full to start anything on."""
    return free < min(MIN_FREE_BYTES, int(total * MIN_FREE_SHARE))


def _nearest_existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.exists())


def architecture() -> str:
    """Return the machine's architecture as Go names it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def build_node_info() -> Object:
    return {
        "machineID": "",
        "systemUUID": "",
        "bootID": proctree.boot_id(),
        "kernelVersion": platform.release(),
        "osImage": _os_name(),
        "containerRuntimeVersion": f"{RUNTIME_PREFIX}{VERSION}",
        "kubeletVersion": KUBERNETES_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": platform.system().lower(),
        "architecture": architecture(),
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"
