"""A submission: its body out of typed values, a file or a template; previewed and sent."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from muster_cli import routes
from muster_cli.actions import projects
from muster_cli.errors import NotFound, Refused, UsageProblem
from muster_cli.fields import Catalogue, SubmissionField, VolumeField
from muster_cli.session import Session

Body = dict[str, Any]

READ_ONLY = frozenset(
    {
        "requestedName",
        "workloadId",
        "departmentId",
        "createdBy",
        "createdAt",
        "deletedAt",
        "desiredPhase",
        "actualPhase",
    }
)
"""What an answer says of a submission, and a request must not."""
GPU_AMOUNTS = frozenset({"gpuDevicesRequest", "gpuPortionRequest", "gpuMemoryRequest"})
GPU_SHARING = (
    "gpuRequestType",
    "gpuPortionRequest",
    "gpuPortionLimit",
    "gpuMemoryRequest",
    "gpuMemoryLimit",
)
"""What `compute` says of how a GPU is shared."""
MASTER_FIELDS = ("noMaster", "masterSpecSameAsWorker", "masterSpec")
"""What a body says of its master; a template's is taken over where it says nothing."""


def build_value(field: SubmissionField, typed: Any) -> Any:
    """Return what REST takes of what was typed for a field. Raises UsageProblem."""
    match field.kind:
        case "names":
            return _split_names(typed)
        case "objects":
            return [{"name": each} for each in _split_names(typed)]
        case "pairs":
            return [dict(zip(("name", "value"), _split_pair(each), strict=True)) for each in typed]
        case "variables":
            return [_build_variable(each) for each in typed]
        case "resources":
            return [
                dict(zip(("resource", "quantity"), _split_pair(each), strict=True))
                for each in typed
            ]
        case "tolerations":
            return [_build_toleration(each) for each in typed]
        case "topology":
            key, _, kind = typed.partition(":")
            return {"key": key, "type": kind.capitalize() or "Required"}
    return typed


def _split_names(typed: Sequence[str]) -> list[str]:
    """Return names that were given one by one, or several with spaces between them."""
    return [name for each in typed for name in each.split()]


def _split_pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise UsageProblem(f"{text} is not as NAME=VALUE.")
    return name, value


def _build_variable(text: str) -> Body:
    """Build a variable: NAME=VALUE, or NAME=secret:NAME/KEY and NAME=config-map:NAME/KEY."""
    name, value = _split_pair(text)
    for prefix, place in (("secret:", "secret"), ("config-map:", "configMap")):
        if value.startswith(prefix):
            source, slash, key = value.removeprefix(prefix).partition("/")
            if not (source and slash and key):
                raise UsageProblem(f"{text} is not as {name}={prefix}NAME/KEY.")
            return {"name": name, place: {"name": source, "key": key}}
    return {"name": name, "value": value}


def _build_toleration(text: str) -> Body:
    """Build a toleration: KEY[=VALUE][:EFFECT]."""
    rest, _, effect = text.partition(":")
    key, sign, value = rest.partition("=")
    toleration: Body = {"key": key, "operator": "Equal" if sign else "Exists"}
    if sign:
        toleration["value"] = value
    return toleration | ({"effect": effect} if effect else {})


def build_volume(volume: VolumeField, text: str) -> Body:
    """Build a volume of KEY=VALUE,KEY=VALUE: keys as REST has them. Raises UsageProblem."""
    built: Body = {}
    for part in text.split(","):
        key, value = _split_pair(part)
        if key not in volume.keys:
            raise UsageProblem(
                f"{volume.flag} does not know {key}.", f"It takes {', '.join(volume.keys)}."
            )
        set_value(built, key, _convert(volume.flag, key, value, volume.keys[key]))
    return built


def _convert(flag: str, key: str, text: str, kind: str) -> Any:
    if kind == "boolean":
        if text.lower() not in ("true", "false", "yes", "no"):
            raise UsageProblem(f"{key} of {flag} is true or false, and not {text}.")
        return text.lower() in ("true", "yes")
    if kind == "integer":
        if not (text.isascii() and text.removeprefix("-").isdigit()):
            raise UsageProblem(f"{key} of {flag} is a whole number, and not {text}.")
        return int(text)
    return text


def set_value(body: Body, place: str, value: Any) -> None:
    """Put a value at a dotted place of a body."""
    *above, last = place.split(".")
    for name in above:
        body = body.setdefault(name, {})
    body[last] = value


def merge_values(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Body:
    """Return the base with the changes merged over it: objects are merged, lists replaced."""
    merged = dict(base)
    for name, value in changes.items():
        current = merged.get(name)
        merged[name] = (
            merge_values(current, value)
            if isinstance(current, Mapping) and isinstance(value, Mapping)
            else value
        )
    return merged


def complete_gpus(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Body:
    """Return typed changes of a spec with what they imply of its GPUs.

    A share is of as many devices as the base has, or of one; a number of devices alone asks for
    whole ones. Null takes away what the base says of another way to share a GPU.
    """
    typed = changes.get("compute", {})
    if GPU_AMOUNTS.isdisjoint(typed):
        return dict(changes)
    replaced_names = [
        name for name in GPU_SHARING if _find_value(base, f"compute.{name}") is not None
    ]
    compute = dict.fromkeys(replaced_names) | typed
    has_portion = typed.get("gpuPortionRequest") is not None
    if has_portion or typed.get("gpuMemoryRequest"):
        # REST wants to be told which of the two ways to share a GPU is meant.
        compute["gpuRequestType"] = "portion" if has_portion else "memory"
        if not _find_value(base, "compute.gpuDevicesRequest"):
            compute.setdefault("gpuDevicesRequest", 1)
    return {**changes, "compute": compute}


def merge_spec(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Body:
    """Return a spec, or a master's, with what was typed merged over it."""
    return merge_values(base, complete_gpus(base, changes))


def build_master(
    spec: Mapping[str, Any], changes: Mapping[str, Any], fields: Sequence[SubmissionField]
) -> Body:
    """Return a master as the workers are, with some values of its own.

    In REST a master stands for itself: what it shares with the workers is said twice.
    """
    shared: Body = {}
    for place in _list_pod_places(fields):
        value = _find_value(spec, place)
        if value is not None:
            set_value(shared, place, value)
    return merge_spec(shared, changes)


def change_master(
    body: Mapping[str, Any],
    template: Mapping[str, Any],
    changes: Mapping[str, Any],
    fields: Sequence[SubmissionField],
) -> Body:
    """Return a body whose master has these changes; the template is {} without one.

    They are merged over the body's own master. Where it has none, the master is as the workers are,
    save in what the template's master differs from the template's workers. Raises UsageProblem.
    """
    new_body, master = dict(body), body.get("masterSpec")
    if master is None:
        gives_master = any(body.get(name) is not None for name in MASTER_FIELDS)
        base = {} if gives_master else template
        if base.get("noMaster"):
            # The server refuses both together, and says why.
            new_body["noMaster"] = True
        workers = merge_values(template.get("spec") or {}, body["spec"])
        master = build_master(workers, _find_master_differences(base, fields), fields)
    elif not isinstance(master, Mapping):
        raise UsageProblem(
            "The submission's masterSpec is no object: it holds no names with values."
        )
    new_body.pop("masterSpecSameAsWorker", None)
    return new_body | {"masterSpec": merge_spec(master, changes)}


def _find_master_differences(
    template: Mapping[str, Any], fields: Sequence[SubmissionField]
) -> Body:
    """Return in what a template's master differs from its workers; null where it has nothing."""
    master, differences = template.get("masterSpec"), Body()
    if master is None:
        return differences
    pairs = {
        place: (_find_value(template, f"spec.{place}"), _find_value(master, place))
        for place in _list_pod_places(fields)
    }
    gpu_places = {f"compute.{name}" for name in GPU_AMOUNTS}
    # Devices and how they are shared are one choice: they differ together.
    has_own_gpus = any(pairs[place][0] != pairs[place][1] for place in gpu_places)
    for place, (shared, own) in pairs.items():
        if shared != own or (has_own_gpus and place in gpu_places):
            set_value(differences, place, own)
    return differences


def _list_pod_places(fields: Sequence[SubmissionField]) -> list[str]:
    """Return the places of what a master can have of its own."""
    return [*(field.place for field in fields if field.is_of_pods), "storage"]


def _find_value(body: Any, place: str) -> Any:
    """Return the value at a dotted place of a body; None where there is none."""
    for name in place.split("."):
        body = body.get(name) if isinstance(body, Mapping) else None
    return body


def is_distributed(body: Mapping[str, Any]) -> bool:
    """Tell whether a body is that of a distributed workload, by what only those have."""
    spec = body.get("spec")
    names = set(body) | set(spec if isinstance(spec, Mapping) else ())
    return bool(
        names & {"distributedFramework", "numWorkers", "masterSpec", "noMaster", "parameterServers"}
    )


def read_file_body(value: Any) -> Body:
    """Return the submission that a file holds, without what only answers have."""
    if not isinstance(value, Mapping):
        raise UsageProblem("The file is not a submission: it has no name and spec.")
    body = {str(name): each for name, each in value.items() if name not in READ_ONLY}
    raw_spec = body.get("spec") or {}
    if not isinstance(raw_spec, Mapping):
        raise UsageProblem("The submission's spec is no object: it holds no names with values.")
    spec = dict(raw_spec)
    if "framework" in body:
        spec["distributedFramework"] = body.pop("framework")
    return body | {"spec": spec}


def get_template(session: Session, reference: str) -> Body:
    """Return a template with its spec, by its name or id. Raises NotFound and UsageProblem."""
    matches = [
        each
        for each in session.list_items(routes.LIST_TEMPLATES, "entries")
        if reference in (each["meta"]["name"], each["meta"]["id"])
    ]
    if not matches:
        raise NotFound(
            f"There is no template {reference} among those that you may see.",
            "`muster template list` shows them.",
        )
    if len(matches) > 1:
        ids = ", ".join(str(each["meta"]["id"]) for each in matches[:10])
        raise UsageProblem(f"Several templates are called {reference}.", f"Name its id: {ids}.")
    template: Body = session.call(routes.GET_TEMPLATE, template_id=str(matches[0]["meta"]["id"]))
    return template


def complete_body(session: Session, body: Body, project: str) -> Body:
    """Return the body with the ids of its project and cluster.

    What the body says of them itself stays, save where a project is named beside it.
    """
    body = dict(body)
    named = str(body.pop("project", "") or "")
    if "projectId" in body and not project and not named:
        return body
    project_item = projects.get_project(session, project or named)
    return body | {
        "projectId": str(project_item["id"]),
        "clusterId": str(project_item["clusterId"]),
    }


def get_routes(distributed: bool) -> routes.KindRoutes:
    """Return the routes of distributed workloads, or of standard ones."""
    return routes.DISTRIBUTED if distributed else routes.STANDARD


def preview(session: Session, body: Body, *, distributed: bool) -> Body:
    """Return the objects that a submission would become, whether it fits, and what the cluster says
    of them in a dry run. Raises Refused.
    """
    previewed: Body = session.call(get_routes(distributed).preflight, body=body)
    return previewed


def submit(session: Session, body: Body, *, distributed: bool) -> Body:
    """Submit a workload; return it, with `warnings` where it cannot start. Raises Refused."""
    submitted: Body = session.call(get_routes(distributed).submit, body=body)
    return submitted


def name_flags(refusal: Refused, catalogue: Catalogue) -> Refused:
    """Return a refusal that names the flag of each field, beside the place that REST names."""
    message = refusal.message
    details: list[tuple[str, str]] = []
    for place, text in refusal.details:
        flag = find_flag(catalogue, place)
        named = f"{flag} ({place})" if flag else place
        if place:
            message = message.replace(f"{place}: ", f"{named}: ")
        details.append((named, text))
    return Refused(refusal.status, message, tuple(details), refusal.hint)


def find_flag(catalogue: Catalogue, place: str) -> str:
    """Return the flag of a place in a body, as spec.image; "" where there is none."""
    above, _, below = place.partition(".")
    prefix = {"spec": "--", "masterSpec": "--master-"}.get(above, "")
    flags = {each.place: each.flags[0] for each in catalogue.fields}
    flags |= {each.place: each.flag for each in catalogue.volumes}
    parts = below.split(".")
    for count in range(len(parts), 0, -1):
        if prefix and (flag := flags.get(".".join(parts[:count]))):
            return f"{prefix}{flag.removeprefix('--')}"
    return ""


def get_submission(session: Session, workload: Mapping[str, Any]) -> tuple[Body, bool]:
    """Return the body that a workload was submitted with, and whether it is distributed."""
    distributed = workload["type"] == "Distributed"
    answer = session.call(get_routes(distributed).get, workload_id=str(workload["id"]))
    return {name: value for name, value in answer.items() if name not in READ_ONLY}, distributed


def join_command(words: Sequence[str]) -> str:
    """Return words as one line that the server splits in the same way."""
    return shlex.join(words)
