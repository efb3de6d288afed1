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
_OF_PODS = {
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
_OF_ALL = {
    "priorityClass": "priority",
    "preemptibility": "preemptibility",
    "backoffLimit": "backoff_limit",
    "restartPolicy": "restart_policy",
    "terminationGracePeriodSeconds": "grace_seconds",
    "autoDeletionTimeAfterCompletionSeconds": "auto_delete_seconds",
}
_OF_DISTRIBUTED = {
    "numWorkers": "workers",
    "maxReplicas": "elastic.max_workers",
    "parameterServers": "parameter_servers",
    "distributedFramework": "framework",
    "cleanPodPolicy": "clean_pod_policy",
}
_OF_STANDARD = {"completions": "runs", "parallelism": "parallelism"}
_ATTRIBUTES = {"required": REQUIRED, "min": LEAST, "max": MOST, "step": STEP, "options": OPTIONS}


def _names(architecture: Architecture) -> dict[str, str]:
    """Their names with ours. Of a distributed workload everything may stand below `worker`."""
    if architecture is Architecture.STANDARD:
        return _OF_PODS | _OF_ALL | _OF_STANDARD
    below = {f"worker.{theirs}": ours for theirs, ours in (_OF_PODS | _OF_ALL).items()}
    return below | _OF_DISTRIBUTED


def read(given: object, architecture: Architecture) -> tuple[dict[str, Any], Problems]:
    """Our rules as JSON has them, not judged, and what of the body cannot be understood."""
    problems: Problems = []
    if not isinstance(given, Mapping):
        return {}, [("policy", "policy must be an object with defaults and rules.")]
    for name in given:
        if name not in ("defaults", "rules") and given[name]:
            problems.append(
                (
                    f"policy.{str(name)[:40]}",
                    f"policy.{str(name)[:40]} is not supported by this version.",
                )
            )
    names = _names(architecture)
    if architecture is Architecture.DISTRIBUTED:
        # Told without `worker`; Run:ai's clients write it with.
        names |= {f"worker.{theirs}": ours for theirs, ours in _OF_DISTRIBUTED.items()}
    found: dict[str, dict[str, Any]] = {}
    for place, value in _leaves(given.get("defaults") or {}, names, "policy.defaults", problems):
        found.setdefault(names[place], {})[DEFAULT] = _instances(value)
    for place, rule in _leaves(given.get("rules") or {}, names, "policy.rules", problems):
        found.setdefault(names[place], {}).update(_rule(rule, f"policy.rules.{place}", problems))
    return found, problems


def told(rules: Mapping[str, Rule], architecture: Architecture) -> dict[str, Any]:
    """Rules in the words of the API; those of which it has no word are left out."""
    theirs = {ours: name for name, ours in _names(architecture).items()}
    defaults: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for name, rule in policing.write(rules).items():
        if name not in theirs:
            continue
        if DEFAULT in rule:
            _put(defaults, theirs[name], _shown(name, rule[DEFAULT]))
        said = {word: rule[ours] for word, ours in _ATTRIBUTES.items() if ours in rule}
        if OPTIONS in rule:
            said["options"] = [{"value": each} for each in rule[OPTIONS]]
        if rule.get(LOCKED):
            said["canEdit"] = False
        if said:
            _put(found, theirs[name], said)
    return {"defaults": defaults, "rules": found}


def place_of(field: str, attribute: str, architecture: Architecture) -> str:
    """Where in the body something of ours is."""
    theirs = next((name for name, ours in _names(architecture).items() if ours == field), "")
    if attribute == DEFAULT:
        return f"policy.defaults.{theirs}"
    word = next(
        (word for word, ours in _ATTRIBUTES.items() if ours == attribute),
        "canEdit" if attribute == LOCKED else "",
    )
    return ".".join(filter(None, ("policy.rules", theirs, word)))


def _leaves(
    tree: object, names: Mapping[str, str], at: str, problems: Problems, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """What stands at the known names; what stands elsewhere is refused."""
    if not isinstance(tree, Mapping):
        problems.append((at, f"{at} must be an object."))
        return
    for name, value in tree.items():
        place = f"{prefix}{str(name)[:60]}"
        if value is None:
            continue
        if place in names:
            yield place, value
        elif any(known.startswith(f"{place}.") for known in names):
            yield from _leaves(value, names, f"{at}.{name}", problems, f"{place}.")
        else:
            problems.append(
                (
                    f"{at}.{str(name)[:60]}",
                    (
                        f"{at}.{str(name)[:60]} is not a field that this version's policies can "
                        "speak of."
                    ),
                )
            )


def _rule(rule: object, at: str, problems: Problems) -> dict[str, Any]:
    if not isinstance(rule, Mapping):
        problems.append((at, f"{at} must be an object."))
        return {}
    found: dict[str, Any] = {}
    for word, value in rule.items():
        if word == "canEdit":
            if value is False:
                found[LOCKED] = True
            elif value is not True and value is not None:
                problems.append((f"{at}.canEdit", f"{at}.canEdit must be true or false."))
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
                    f"{at}.{str(word)[:40]}",
                    f"{at}.{str(word)[:40]} is not supported by this version.",
                )
            )
    return found


def _instances(value: Any) -> Any:
    """Names with values, which the API has as a list."""
    if isinstance(value, Mapping) and isinstance(value.get("instances"), list):
        return {
            str(each.get("name", "")): str(each.get("value", ""))
            for each in value["instances"]
            if isinstance(each, Mapping)
        }
    return value


def _shown(name: str, value: Any) -> Any:
    if isinstance(policing.CATALOGUE[name].kind, Pairs):
        return {"instances": [{"name": key, "value": text} for key, text in value.items()]}
    return value


def _put(tree: dict[str, Any], place: str, value: Any) -> None:
    *above, last = place.split(".")
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = value
