"""Services: they give a training job's pods stable names."""

from typing import Any

from localkube.errors import Cause, required_cause, unsupported_cause
from localkube.metadata import Object
from localkube.resources import name_rules, table_cells
from localkube.resources.causes import duplicate_cause, immutable_cause, invalid_value_cause
from localkube.resources.container_rules import PROTOCOLS, check_port
from localkube.resources.field_readers import text_reader
from localkube.resources.resource import STATUS, Column, Resource
from localkube.resources.table_cells import AGE, NAME, NONE

SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
SESSION_AFFINITIES = ("ClientIP", "None")

HEADLESS = "None"
CLUSTER_ADDRESS = "127.0.0.1"
"""Every service's cluster address.

All pods share this machine's network, so a service's port is its pod's.
"""


def set_service_defaults(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port", 0))
    if spec["type"] != "ExternalName":
        spec.setdefault("clusterIP", CLUSTER_ADDRESS)
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
    service.setdefault("status", {"loadBalancer": {}})


def check_service(service: Object, old: Object | None) -> list[Cause]:
    spec = service["spec"]
    causes = _check_ports(spec)
    if spec["type"] not in SERVICE_TYPES:
        causes.append(unsupported_cause("spec.type", spec["type"], SERVICE_TYPES))
    if spec["sessionAffinity"] not in SESSION_AFFINITIES:
        causes.append(
            unsupported_cause("spec.sessionAffinity", spec["sessionAffinity"], SESSION_AFFINITIES)
        )
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        causes.append(required_cause("spec.externalName"))
    for key, value in (spec.get("selector") or {}).items():
        causes += [
            invalid_value_cause("spec.selector", key, text)
            for text in name_rules.check_qualified_name(key)
        ]
        causes += [
            invalid_value_cause("spec.selector", value, text)
            for text in name_rules.check_label_value(value)
        ]
    if old is not None and spec["type"] == old["spec"].get("type") != "ExternalName":
        address = old["spec"].get("clusterIP")
        if address and spec.get("clusterIP") != address:
            causes.append(immutable_cause("spec.clusterIPs[0]", [spec.get("clusterIP")]))
    return causes


def _check_ports(spec: dict[str, Any]) -> list[Cause]:
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != HEADLESS and spec.get("type") != "ExternalName":
        return [required_cause("spec.ports")]
    causes, names, numbers = [], set(), set()
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        name, number = port.get("name") or "", port.get("port") or 0
        if not name and len(ports) > 1:
            causes.append(required_cause(f"{at}.name"))
        elif name:
            causes += [
                invalid_value_cause(f"{at}.name", name, text)
                for text in name_rules.check_label(name)
            ]
            if name in names:
                causes.append(duplicate_cause(f"{at}.name", name))
        causes += check_port(number, f"{at}.port")
        if port["protocol"] not in PROTOCOLS:
            causes.append(unsupported_cause(f"{at}.protocol", port["protocol"], PROTOCOLS))
        target = port.get("targetPort")
        if isinstance(target, int):
            causes += check_port(target, f"{at}.targetPort")
        elif target:
            causes += [
                invalid_value_cause(f"{at}.targetPort", target, text)
                for text in name_rules.check_port_name(target)
            ]
        if (port["protocol"], number) in numbers:
            quoted = f'{{"protocol":"{port["protocol"]}","port":{number}}}'
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {quoted}", at))
        names.add(name)
        numbers.add((port["protocol"], number))
    return causes


def _format_external_ip(service: Object) -> str:
    spec = service["spec"]
    kind = spec.get("type")
    if kind == "ExternalName":
        return str(spec.get("externalName") or "")
    addresses = list(spec.get("externalIPs") or ())
    if kind == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        addresses = [
            point.get("ip") or point.get("hostname") or "" for point in ingress
        ] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or NONE


def _format_ports(service: Object) -> str:
    formatted = []
    for port in service["spec"].get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        formatted.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(formatted) or NONE


SERVICES = Resource(
    "",
    "v1",
    "services",
    "Service",
    columns=(
        NAME,
        Column("Type", lambda service: service["spec"].get("type", "")),
        Column("Cluster-IP", lambda service: service["spec"].get("clusterIP") or NONE),
        Column("External-IP", _format_external_ip),
        Column("Port(s)", _format_ports),
        AGE,
        Column(
            "Selector",
            lambda service: table_cells.format_labels(service["spec"].get("selector")),
            priority=1,
        ),
    ),
    short_names=("svc",),
    categories=("all",),
    subresources={"status": STATUS},
    field_selectors={
        "spec.clusterIP": text_reader("spec", "clusterIP"),
        "spec.type": text_reader("spec", "type"),
    },
    schema="services",
    set_defaults=set_service_defaults,
    validate=check_service,
    generation=False,
    returns_deleted=True,
)
