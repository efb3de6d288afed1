"""Policies in the words of Run:ai's API, parsed and serialized.

`defaults` and `rules` have the names of a submission's fields.
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
    """Return the API's field names with ours.

    Of a distributed workload the pods' fields stand below `worker`.
    """
    if architecture is Architecture.STANDARD:
        return _POD_FIELDS | _WORKLOAD_FIELDS | _STANDARD_FIELDS
    pod_fields = {
        f"worker.{api_name}": field for api_name, field in (_POD_FIELDS | _WORKLOAD_FIELDS).items()
    }
    return pod_fields | _DISTRIBUTED_FIELDS


def parse_rules(body: object, architecture: Architecture) -> tuple[dict[str, Any], Problems]:
    """Return our rules as JSON has them, not validated, and the problems of the body."""
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
        # Answers have these names without `worker`; Run:ai's clients send them with it.
        names |= {f"worker.{api_name}": field for api_name, field in _DISTRIBUTED_FIELDS.items()}
    rules: dict[str, dict[str, Any]] = {}
    for place, value in _walk_known_fields(
        body.get("defaults") or {}, names, "policy.defaults", problems
    ):
        rules.setdefault(names[place], {})[DEFAULT] = _flatten_instances(value)
    for place, rule in _walk_known_fields(body.get("rules") or {}, names, "policy.rules", problems):
        rules.setdefault(names[place], {}).update(
            _parse_rule(rule, f"policy.rules.{place}", problems)
        )
    return rules, problems


def serialize_rules(rules: Mapping[str, Rule], architecture: Architecture) -> dict[str, Any]:
    """Return rules in the words of the API.

    Rules for which it has no word are left out.
    """
    api_names = {attribute: name for name, attribute in _build_field_names(architecture).items()}
    defaults: dict[str, Any] = {}
    api_rules: dict[str, Any] = {}
    for name, rule in policing.serialize_rules(rules).items():
        if name not in api_names:
            continue
        if DEFAULT in rule:
            _put_at_path(defaults, api_names[name], _serialize_value(name, rule[DEFAULT]))
        api_rule = {
            word: rule[attribute] for word, attribute in _ATTRIBUTES.items() if attribute in rule
        }
        if OPTIONS in rule:
            api_rule["options"] = [{"value": each} for each in rule[OPTIONS]]
        if rule.get(LOCKED):
            api_rule["canEdit"] = False
        if api_rule:
            _put_at_path(api_rules, api_names[name], api_rule)
    return {"defaults": defaults, "rules": api_rules}


def get_body_path(field: str, attribute: str, architecture: Architecture) -> str:
    """Return where in the body an attribute of one of our fields is."""
    api_name = next(
        (name for name, ours in _build_field_names(architecture).items() if ours == field), ""
    )
    if attribute == DEFAULT:
        return f"policy.defaults.{api_name}"
    word = next(
        (word for word, ours in _ATTRIBUTES.items() if ours == attribute),
        "canEdit" if attribute == LOCKED else "",
    )
    return ".".join(filter(None, ("policy.rules", api_name, word)))


def _walk_known_fields(
    tree: object, names: Mapping[str, str], path: str, problems: Problems, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield the values at the known names; add a problem for each other name."""
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
    attributes: dict[str, Any] = {}
    for word, value in rule.items():
        if word == "canEdit":
            if value is False:
                attributes[LOCKED] = True
            elif value is not True and value is not None:
                problems.append((f"{path}.canEdit", f"{path}.canEdit must be true or false."))
        elif word == "options" and isinstance(value, list):
            attributes[OPTIONS] = [
                each["value"] if isinstance(each, Mapping) and "value" in each else each
                for each in value
            ]
        elif word in _ATTRIBUTES:
            attributes[_ATTRIBUTES[word]] = value
        elif value is not None:
            problems.append(
                (
                    f"{path}.{str(word)[:40]}",
                    f"{path}.{str(word)[:40]} is not supported by this version.",
                )
            )
    return attributes


def _flatten_instances(value: Any) -> Any:
    """Return names with values as an object; the API has them as a list of instances."""
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
