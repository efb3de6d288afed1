"""The defaults that a real server adds to a pod or to a pod template.

The source is the recorded `pod/create` answer.
"""

from collections.abc import Iterator
from typing import Any

from localkube import clock, quantities
from localkube.metadata import Object
from localkube.resources.taints import NOT_READY, UNREACHABLE

DEFAULT_FILE_MODE = 0o644

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

LOST_NODE_TAINTS = (NOT_READY, UNREACHABLE)


def set_pod_defaults(pod: Object) -> None:
    """Set the defaults of a whole pod.

    These are its spec, what admission adds, and the first status when it has none.
    """
    spec = pod.setdefault("spec", {})
    set_pod_spec_defaults(spec)
    for container in iterate_containers(spec):
        _set_requests_from_limits(container["resources"])
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", spec.get("serviceAccount") or "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    if not pod.get("status"):
        pod["status"] = _build_first_status(spec)


def set_pod_spec_defaults(spec: dict[str, Any]) -> None:
    """Set the defaults that a pod and a template share."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for container in iterate_containers(spec):
        _set_container_defaults(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _set_volume_defaults(volume)
    if "overhead" in spec:
        spec["overhead"] = canonicalize_amounts(spec["overhead"])


def iterate_containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the init containers and the containers of a spec."""
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def canonicalize_amounts(amounts: dict[str, Any]) -> dict[str, str]:
    """Return the same amounts, each quantity in its canonical form."""
    return {name: quantities.canonicalize_quantity(amount) for name, amount in amounts.items()}


def compute_qos_class(spec: dict[str, Any]) -> str:
    """Return the quality-of-service class.

    It is Guaranteed when every container's limits are its requests, BestEffort when there are none
    at all, else Burstable.
    """
    is_guaranteed, has_amounts = True, False
    for container in iterate_containers(spec):
        resources = container.get("resources") or {}
        limits, requests = (
            _parse_compute_amounts(resources.get("limits")),
            _parse_compute_amounts(resources.get("requests")),
        )
        has_amounts = has_amounts or bool(limits or requests)
        if set(limits) != {"cpu", "memory"} or requests != limits:
            is_guaranteed = False
    if not has_amounts:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _parse_compute_amounts(amounts: dict[str, Any] | None) -> dict[str, Any]:
    parsed = {
        name: quantities.parse_quantity(amount)
        for name, amount in (amounts or {}).items()
        if name in ("cpu", "memory")
    }
    return {name: amount for name, amount in parsed.items() if amount}


def _build_first_status(spec: dict[str, Any]) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": "Pending", "qosClass": compute_qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": clock.format_time(),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return status


def _set_requests_from_limits(resources: dict[str, Any]) -> None:
    for name, amount in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(name, amount)


def add_lost_node_tolerations(spec: dict[str, Any], seconds: int) -> None:
    """Add how long the pod stays bound to a lost node, as admission does, unless it says so."""
    tolerations = spec.setdefault("tolerations", [])
    for key in LOST_NODE_TAINTS:
        if not any(
            toleration.get("key") in (key, None, "")
            and toleration.get("effect") in ("NoExecute", None, "")
            for toleration in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": seconds,
                }
            )


def _set_container_defaults(container: dict[str, Any], *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if container.get("image"):
        container.setdefault(
            "imagePullPolicy", "Always" if _is_latest(container["image"]) else "IfNotPresent"
        )
    resources = container.setdefault("resources", {})
    for part in ("limits", "requests"):
        if part in resources:
            resources[part] = canonicalize_amounts(resources[part])
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and "containerPort" in port and not port.get("hostPort"):
            port["hostPort"] = port["containerPort"]
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        _set_field_ref_defaults(source.get("fieldRef"))
        if source.get("resourceFieldRef") is not None:
            source["resourceFieldRef"]["divisor"] = quantities.canonicalize_quantity(
                source["resourceFieldRef"].get("divisor", "0")
            )
    for probe in (container[kind] for kind in PROBES if container.get(kind)):
        _set_probe_defaults(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _set_http_defaults(hook.get("httpGet"))


def _is_latest(image: str) -> bool:
    """Return whether an image asks for "latest", by tag or by naming neither tag nor digest."""
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def _set_probe_defaults(probe: dict[str, Any]) -> None:
    probe |= {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    } | probe
    _set_http_defaults(probe.get("httpGet"))
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")


def _set_http_defaults(request: dict[str, Any] | None) -> None:
    if request is not None:
        request.setdefault("path", "/")
        request.setdefault("scheme", "HTTP")


def _set_field_ref_defaults(reference: dict[str, Any] | None) -> None:
    if reference is not None:
        reference.setdefault("apiVersion", "v1")


def _set_volume_defaults(volume: dict[str, Any]) -> None:
    sources = [source for source in volume if source != "name"]
    if not sources:
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(kind) is not None:
            volume[kind].setdefault("defaultMode", DEFAULT_FILE_MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    if (volume.get("emptyDir") or {}).get("sizeLimit") is not None:
        volume["emptyDir"]["sizeLimit"] = quantities.canonicalize_quantity(
            volume["emptyDir"]["sizeLimit"]
        )
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _set_field_ref_defaults(item.get("fieldRef"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _set_field_ref_defaults(item.get("fieldRef"))
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
