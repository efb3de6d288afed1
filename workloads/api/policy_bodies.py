"""A policy in the words of Run:ai's API, and back: `defaults` and `rules` by the names that
submissions have.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from workloads import policing
from workloads.policing.kinds import DEFAULT, LEAST, LOCKED, MOST, OPTIONS, REQUIRED, STEP, Pairs
from workloads.policing.rules import Rule
from workloads.specs import Architecture

Problems = list[tuple[str, str]]
_POD_FIELDS = {
    "image": "image",
    "imagePullPolicy": "pull_policy",
    "command": "command",
    "args": "args",
    "workingDir": "working_dir",
    "environmentVariables": "variables",
    "compute.gpuDevicesRequest": "gpus.devices",
    "compute.gpuPortionRequest": "gpus.portion",
    "compute.gpuMemoryRequest": "gpus.memory",
    "compute.cpuCoreRequest": "cpu_request",
    "compute.cpuCoreLimit": "cpu_limit",
    "compute.cpuMemoryRequest": "memory_request",
    "compute.cpuMemoryLimit": "memory_limit",
    "compute.largeShmRequest": "large_shm",
    "nodeType": "node_type",
    "nodePools": "node_pools",
    "labels": "labels",
    "annotations": "annotations",
    "security.runAsUid": "uid",
    "security.runAsGid": "gid",
    "security.capabilities": "capabilities",
    "security.runAsNonRoot": "non_root",
    "security.readOnlyRootFilesystem": "read_only_root",
    "security.allowPrivilegeEscalation": "privilege_escalation",
    "security.hostIpc": "host_ipc",
    "security.hostNetwork": "host_network",
}
_WORKLOAD_FIELDS = {
    "priorityClass": "priority",
    "preemptibility": "preemptibility",
    "backoffLimit": "backoff_limit",
    "restartPolicy": "restart_policy",
    "terminationGracePeriodSeconds": "grace_seconds",
    "autoDeletionTimeAfterCompletionSeconds": "auto_delete_seconds",
}
_DISTRIBUTED_FIELDS = {
    "numWorkers": "workers",
    "maxReplicas": "elastic.max_workers",
    "parameterServers": "parameter_servers",
    "distributedFramework": "framework",
    "cleanPodPolicy": "clean_pod_policy",
}
_STANDARD_FIELDS = {"completions": "runs", "parallelism": "parallelism"}
_ATTRIBUTES = {"required": REQUIRED, "min": LEAST, "max": MOST, "step": STEP, "options": OPTIONS}


def _build_field_names(architecture: Architecture) -> dict[str, str]:
    """Their names with ours. Of a distributed workload everything may stand below `worker`."""
    if architecture is Architecture.STANDARD:
        return _POD_FIELDS | _WORKLOAD_FIELDS | _STANDARD_FIELDS
    below = {f"worker.{theirs}": ours for theirs, ours in (_POD_FIELDS | _WORKLOAD_FIELDS).items()}
    return below | _DISTRIBUTED_FIELDS


def parse_rules(body: object, architecture: Architecture) -> tuple[dict[str, Any], Problems]:
    """Our rules as JSON has them, not judged, and what of the body cannot be understood."""
    problems: Problems = []
    if not isinstance(body, Mapping):
        return {}, [("policy", "policy must be an object with defaults and rules.")]
    for name in body:
        if name not in ("defaults", "rules") and body[name]:
            problems.append(
                (
                    f"policy.{str(name)[:40]}",
                    f"policy.{str(name)[:40]} is not supported by this version.",
                )
            )
    names = _build_field_names(architecture)
    if architecture is Architecture.DISTRIBUTED:
        # Told without `worker`; Run:ai's clients write it with.
        names |= {f"worker.{theirs}": ours for theirs, ours in _DISTRIBUTED_FIELDS.items()}
    found: dict[str, dict[str, Any]] = {}
    for place, value in _walk_known_fields(
        body.get("defaults") or {}, names, "policy.defaults", problems
    ):
        found.setdefault(names[place], {})[DEFAULT] = _flatten_instances(value)
    for place, rule in _walk_known_fields(body.get("rules") or {}, names, "policy.rules", problems):
        found.setdefault(names[place], {}).update(
            _parse_rule(rule, f"policy.rules.{place}", problems)
        )
    return found, problems


def serialize_rules(rules: Mapping[str, Rule], architecture: Architecture) -> dict[str, Any]:
    """Rules in the words of the API; those of which it has no word are left out."""
    theirs = {ours: name for name, ours in _build_field_names(architecture).items()}
    defaults: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for name, rule in policing.serialize_rules(rules).items():
        if name not in theirs:
            continue
        if DEFAULT in rule:
            _put_at_path(defaults, theirs[name], _serialize_value(name, rule[DEFAULT]))
        said = {word: rule[ours] for word, ours in _ATTRIBUTES.items() if ours in rule}
        if OPTIONS in rule:
            said["options"] = [{"value": each} for each in rule[OPTIONS]]
        if rule.get(LOCKED):
            said["canEdit"] = False
        if said:
            _put_at_path(found, theirs[name], said)
    return {"defaults": defaults, "rules": found}


def get_body_path(field: str, attribute: str, architecture: Architecture) -> str:
    """Where in the body something of ours is."""
    theirs = next(
        (name for name, ours in _build_field_names(architecture).items() if ours == field), ""
    )
    if attribute == DEFAULT:
        return f"policy.defaults.{theirs}"
    word = next(
        (word for word, ours in _ATTRIBUTES.items() if ours == attribute),
        "canEdit" if attribute == LOCKED else "",
    )
    return ".".join(filter(None, ("policy.rules", theirs, word)))


def _walk_known_fields(
    tree: object, names: Mapping[str, str], path: str, problems: Problems, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """What stands at the known names; what stands elsewhere is refused."""
    if not isinstance(tree, Mapping):
        problems.append((path, f"{path} must be an object."))
        return
    for name, value in tree.items():
        place = f"{prefix}{str(name)[:60]}"
        if value is None:
            continue
        if place in names:
            yield place, value
        elif any(known.startswith(f"{place}.") for known in names):
            yield from _walk_known_fields(value, names, f"{path}.{name}", problems, f"{place}.")
        else:
            problems.append(
                (
                    f"{path}.{str(name)[:60]}",
                    (
                        f"{path}.{str(name)[:60]} is not a field that this version's policies can "
                        "speak of."
                    ),
                )
            )


def _parse_rule(rule: object, path: str, problems: Problems) -> dict[str, Any]:
    if not isinstance(rule, Mapping):
        problems.append((path, f"{path} must be an object."))
        return {}
    found: dict[str, Any] = {}
    for word, value in rule.items():
        if word == "canEdit":
            if value is False:
                found[LOCKED] = True
            elif value is not True and value is not None:
                problems.append((f"{path}.canEdit", f"{path}.canEdit must be true or false."))
        elif word == "options" and isinstance(value, list):
            found[OPTIONS] = [
                each["value"] if isinstance(each, Mapping) and "value" in each else each
                for each in value
            ]
        elif word in _ATTRIBUTES:
            found[_ATTRIBUTES[word]] = value
        elif value is not None:
            problems.append(
                (
                    f"{path}.{str(word)[:40]}",
                    f"{path}.{str(word)[:40]} is not supported by this version.",
                )
            )
    return found


def _flatten_instances(value: Any) -> Any:
    """Names with values, which the API has as a list."""
    if isinstance(value, Mapping) and isinstance(value.get("instances"), list):
        return {
            str(each.get("name", "")): str(each.get("value", ""))
            for each in value["instances"]
            if isinstance(each, Mapping)
        }
    return value


def _serialize_value(name: str, value: Any) -> Any:
    if isinstance(policing.CATALOGUE[name].kind, Pairs):
        return {"instances": [{"name": key, "value": text} for key, text in value.items()]}
    return value


def _put_at_path(tree: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = value
