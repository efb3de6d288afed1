"""What a pod or a pod template must be, and what may change in a pod once it is there."""

from typing import Any

from localkube.errors import Cause, forbidden_cause, required_cause, unsupported_cause
from localkube.metadata import Object, deep_copy
from localkube.resources import name_rules
from localkube.resources.affinity_rules import check_affinity
from localkube.resources.causes import duplicate_cause, invalid_value_cause
from localkube.resources.container_rules import check_container, check_dns_label
from localkube.resources.metadata_rules import check_labels
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
    """Everything wrong with a pod; of an update, also what may not change."""
    causes = check_pod_spec(pod["spec"], "spec")
    return causes if old is None else causes + _check_changes(pod["spec"], old["spec"])


def check_pod_spec(spec: dict[str, Any], field: str) -> list[Cause]:
    """Everything wrong with the spec of a pod or of a template, after defaults."""
    volumes, causes = _check_volumes(spec.get("volumes") or [], f"{field}.volumes")
    mains, inits = spec.get("containers") or [], spec.get("initContainers") or []
    seen: set[str] = set()
    if not mains:
        causes.append(required_cause(f"{field}.containers"))
    for part, listed in (("containers", mains), ("initContainers", inits)):
        for index, container in enumerate(listed):
            at = f"{field}.{part}[{index}]"
            causes += check_container(container, at, volumes)
            name = container.get("name")
            if name and name in seen:
                causes.append(duplicate_cause(f"{at}.name", name))
            seen.add(name or "")
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
    """The names of the volumes, and what is wrong with them."""
    seen: set[str] = set()
    causes = []
    for index, volume in enumerate(volumes):
        at = f"{field}[{index}]"
        name = volume.get("name") or ""
        wrong = check_dns_label(name, f"{at}.name")
        causes += wrong
        if not wrong and name in seen:
            causes.append(duplicate_cause(f"{at}.name", name))
        seen.add(name)
        causes += _check_volume(volume, at)
    return seen, causes


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
    allowed = deep_copy(new)
    for part in ("containers", "initContainers"):
        before = old.get(part) or []
        if len(before) != len(allowed.get(part) or []):
            return [forbidden_cause("spec." + part, "pod updates may not add or remove containers")]
        for container, was in zip(allowed.get(part) or [], before, strict=True):
            container["image"] = was.get("image")
    for part, may in (
        ("activeDeadlineSeconds", _is_shorter_deadline(new, old)),
        (
            "tolerations",
            all(one in (new.get("tolerations") or []) for one in old.get("tolerations") or []),
        ),
        ("terminationGracePeriodSeconds", _is_allowed_grace(new, old)),
        # The scheduler is one of our own parts and binds with an update; on a real cluster that is
        # the binding subresource.
        ("nodeName", not old.get("nodeName")),
        (
            "schedulingGates",
            all(
                one in (old.get("schedulingGates") or [])
                for one in new.get("schedulingGates") or []
            ),
        ),
    ):
        if may:
            allowed.pop(part, None)
            if part in old:
                allowed[part] = old[part]
    changed = sorted(
        part for part in allowed.keys() | old.keys() if allowed.get(part) != old.get(part)
    )
    return (
        [forbidden_cause("spec", f"{ALLOWED_CHANGES_MESSAGE}\n  changed: {', '.join(changed)}")]
        if changed
        else []
    )


def _is_shorter_deadline(new: dict[str, Any], old: dict[str, Any]) -> bool:
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    return after is not None and (before is None or after <= before)


def _is_allowed_grace(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get(
        "terminationGracePeriodSeconds"
    ) == 1
