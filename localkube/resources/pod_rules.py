"""The rules for a pod or a pod template, and for what may change in an existing pod."""

from typing import Any

import msgspec

from localkube.errors import MAX_CAUSES, Cause, forbidden_cause, required_cause, unsupported_cause
from localkube.metadata import Object, deep_copy
from localkube.resources import name_rules
from localkube.resources.affinity_rules import check_affinity
from localkube.resources.causes import duplicate_cause, immutable_cause, invalid_value_cause
from localkube.resources.container_rules import check_container, check_dns_label
from localkube.resources.count_rules import check_counts
from localkube.resources.gated_pod_rules import check_placement_changes, restore_placement
from localkube.resources.host_port_rules import check_host_ports
from localkube.resources.metadata_rules import check_labels
from localkube.resources.source_rules import check_sources
from localkube.resources.storage import check_claim_spec

RESTART_POLICIES = ("Always", "Never", "OnFailure")
DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
TAINT_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
TOLERATION_OPERATORS = ("Equal", "Exists")

ALLOWED_CHANGES_MESSAGE = (
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(pod: Object, old: Object | None) -> list[Cause]:
    """Return all problems of a pod; on an update, also those of forbidden changes."""
    # Of a stored pod the counts cannot change, and one from before they were bounded may stay.
    if old is None and (counts := check_counts(pod["spec"], "spec")):
        return counts
    causes = check_pod_spec(pod["spec"], "spec")
    if old is None:
        # Of a stored pod these cannot change either.
        causes += check_host_ports(pod["spec"], "spec")
        return causes + check_sources(pod["spec"], "spec")
    return causes + _check_changes(pod["spec"], old["spec"]) + _check_qos_class(pod, old)


def _check_qos_class(pod: Object, old: Object) -> list[Cause]:
    """Return the problem of a changed quality of service; a status without one may get one."""
    new_class, old_class = ((each.get("status") or {}).get("qosClass") for each in (pod, old))
    if not old_class or new_class == old_class:
        return []
    return [immutable_cause("status.qosClass", new_class or "")]


def check_pod_spec(spec: dict[str, Any], field: str) -> list[Cause]:
    """Return all problems of the spec of a pod or of a template, after defaults.

    Ends soon after MAX_CAUSES in containers.
    """
    volumes, causes = _check_volumes(spec.get("volumes") or [], f"{field}.volumes")
    containers, init_containers = spec.get("containers") or [], spec.get("initContainers") or []
    names: set[str] = set()
    if not containers:
        causes.append(required_cause(f"{field}.containers"))
    for part, part_containers in (("containers", containers), ("initContainers", init_containers)):
        for index, container in enumerate(part_containers):
            if len(causes) > MAX_CAUSES:
                return causes
            at = f"{field}.{part}[{index}]"
            causes += check_container(container, at, volumes)
            name = container.get("name")
            if name and name in names:
                causes.append(duplicate_cause(f"{at}.name", name))
            names.add(name or "")
    return causes + _check_choices(spec, field)


def _check_choices(spec: dict[str, Any], field: str) -> list[Cause]:
    causes = []
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        causes.append(
            unsupported_cause(
                f"{field}.restartPolicy", spec.get("restartPolicy") or "", RESTART_POLICIES
            )
        )
    if spec.get("dnsPolicy") not in DNS_POLICIES:
        causes.append(
            unsupported_cause(f"{field}.dnsPolicy", spec.get("dnsPolicy") or "", DNS_POLICIES)
        )
    causes += check_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    for part, rule in (
        ("serviceAccountName", name_rules.check_subdomain),
        ("nodeName", name_rules.check_subdomain),
        ("priorityClassName", name_rules.check_subdomain),
    ):
        value = spec.get(part)
        if value:
            causes += [invalid_value_cause(f"{field}.{part}", value, text) for text in rule(value)]
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        causes.append(
            invalid_value_cause(
                f"{field}.activeDeadlineSeconds",
                deadline,
                "must be between 1 and 2147483647, inclusive",
            )
        )
    for part in ("hostname", "subdomain"):
        value = spec.get(part)
        if value:
            causes += [
                invalid_value_cause(f"{field}.{part}", value, text)
                for text in name_rules.check_label(value)
            ]
    grace = spec.get("terminationGracePeriodSeconds") or 0
    if grace < 0 and grace != -1:
        causes.append(
            invalid_value_cause(
                f"{field}.terminationGracePeriodSeconds",
                grace,
                "must be greater than or equal to 0",
            )
        )
    causes += check_affinity(spec.get("affinity"), f"{field}.affinity")
    return causes + _check_tolerations(spec.get("tolerations") or [], f"{field}.tolerations")


def _check_tolerations(tolerations: list[dict[str, Any]], field: str) -> list[Cause]:
    causes = []
    for index, toleration in enumerate(tolerations):
        at = f"{field}[{index}]"
        key, operator, effect = (
            toleration.get("key"),
            toleration.get("operator") or "Equal",
            toleration.get("effect"),
        )
        if key:
            causes += [
                invalid_value_cause(f"{at}.key", key, text)
                for text in name_rules.check_qualified_name(key)
            ]
        elif operator != "Exists":
            causes.append(
                invalid_value_cause(
                    f"{at}.operator",
                    operator,
                    (
                        'operator must be Exists when `key` is empty, which means "match all '
                        'values and all keys"'
                    ),
                )
            )
        if operator not in TOLERATION_OPERATORS:
            causes.append(unsupported_cause(f"{at}.operator", operator, TOLERATION_OPERATORS))
        elif operator == "Exists" and toleration.get("value"):
            causes.append(
                invalid_value_cause(
                    f"{at}.operator",
                    toleration["value"],
                    "value must be empty when `operator` is 'Exists'",
                )
            )
        if effect and effect not in TAINT_EFFECTS:
            causes.append(unsupported_cause(f"{at}.effect", effect, TAINT_EFFECTS))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            causes.append(
                invalid_value_cause(
                    f"{at}.effect",
                    effect or "",
                    "effect must be 'NoExecute' when `tolerationSeconds` is set",
                )
            )
    return causes


def _check_volumes(volumes: list[dict[str, Any]], field: str) -> tuple[set[str], list[Cause]]:
    """Return the names of the volumes, and their problems."""
    names: set[str] = set()
    causes = []
    for index, volume in enumerate(volumes):
        at = f"{field}[{index}]"
        name = volume.get("name") or ""
        problems = check_dns_label(name, f"{at}.name")
        causes += problems
        if not problems and name in names:
            causes.append(duplicate_cause(f"{at}.name", name))
        names.add(name)
        causes += _check_volume(volume, at)
    return names, causes


def _check_volume(volume: dict[str, Any], field: str) -> list[Cause]:
    kinds = [kind for kind in volume if kind != "name"]
    causes = [
        forbidden_cause(f"{field}.{kind}", "may not specify more than 1 volume type")
        for kind in kinds[1:]
    ]
    if kinds[:1] == ["hostPath"] and not (volume["hostPath"] or {}).get("path"):
        causes.append(required_cause(f"{field}.hostPath.path"))
    if kinds[:1] == ["configMap"] and not (volume["configMap"] or {}).get("name"):
        causes.append(required_cause(f"{field}.configMap.name"))
    if kinds[:1] == ["secret"] and not (volume["secret"] or {}).get("secretName"):
        causes.append(required_cause(f"{field}.secret.secretName"))
    if kinds[:1] == ["persistentVolumeClaim"] and not (volume["persistentVolumeClaim"] or {}).get(
        "claimName"
    ):
        causes.append(required_cause(f"{field}.persistentVolumeClaim.claimName"))
    if kinds[:1] == ["ephemeral"]:
        template = (volume["ephemeral"] or {}).get("volumeClaimTemplate")
        if template is None:
            causes.append(required_cause(f"{field}.ephemeral.volumeClaimTemplate"))
        else:
            causes += check_claim_spec(
                template.get("spec") or {}, f"{field}.ephemeral.volumeClaimTemplate.spec"
            )
    return causes


def _check_changes(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    if new == old:
        return []
    allowed_spec = deep_copy(new)
    causes = []
    if old.get("schedulingGates"):
        causes = check_placement_changes(new, old)
        restore_placement(allowed_spec, old)
    for part in ("containers", "initContainers"):
        old_containers = old.get(part) or []
        if len(old_containers) != len(allowed_spec.get(part) or []):
            return [forbidden_cause("spec." + part, "pod updates may not add or remove containers")]
        for container, old_container in zip(
            allowed_spec.get(part) or [], old_containers, strict=True
        ):
            container["image"] = old_container.get("image")
    for part, is_allowed in (
        ("activeDeadlineSeconds", _is_shorter_deadline(new, old)),
        (
            "tolerations",
            _contains_all(new.get("tolerations"), old.get("tolerations")),
        ),
        ("terminationGracePeriodSeconds", _is_allowed_grace(new, old)),
        # Our scheduler binds with an update of the pod; a real one uses the binding subresource.
        ("nodeName", not old.get("nodeName")),
        (
            "schedulingGates",
            _contains_all(old.get("schedulingGates"), new.get("schedulingGates")),
        ),
    ):
        if is_allowed:
            allowed_spec.pop(part, None)
            if part in old:
                allowed_spec[part] = old[part]
    changed = sorted(
        part for part in allowed_spec.keys() | old.keys() if allowed_spec.get(part) != old.get(part)
    )
    if changed:
        text = f"{ALLOWED_CHANGES_MESSAGE}\n  changed: {', '.join(changed)}"
        causes.append(forbidden_cause("spec", text))
    return causes


def _contains_all(
    items: list[dict[str, Any]] | None, wanted_items: list[dict[str, Any]] | None
) -> bool:
    """Return whether each of the wanted items is among the items."""
    # Compared encoded, as a set: of lists of many thousands each pair would else be compared.
    encoded = {_encode_item(item) for item in items or ()}
    return all(_encode_item(item) in encoded for item in wanted_items or ())


def _encode_item(item: dict[str, Any]) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


def _is_shorter_deadline(new: dict[str, Any], old: dict[str, Any]) -> bool:
    new_deadline, old_deadline = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    return new_deadline is not None and (old_deadline is None or new_deadline <= old_deadline)


def _is_allowed_grace(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get(
        "terminationGracePeriodSeconds"
    ) == 1
