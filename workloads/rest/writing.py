"""A submission as the body of a REST call, as Run:ai's clients send it."""

from collections.abc import Iterable, Iterator
from typing import Any

from workloads.rest.structs import CODECS, POD_FIELDS, list_spec_fields
from workloads.specs import UNCHANGED, Architecture, Framework, Setup, Spec, list_options
from workloads.specs.fields import Field, get_value
from workloads.specs.gpu_totals import undo_plan

Body = dict[str, Any]

DISTRIBUTED_PATH = "/api/v1/workloads/distributed"
STANDARD_PATH = "/api/v1/workloads/trainings"
ALL_OPTIONS = frozenset(name for framework in Framework for name in framework.options)
"""The fields that only some frameworks have."""


def get_rest_path(spec: Spec) -> str:
    """Return the path to which `build_rest_body` is posted."""
    return DISTRIBUTED_PATH if spec.is_distributed else STANDARD_PATH


def build_rest_body(spec: Spec, *, project_id: str, cluster_id: str) -> Body:
    """Build the body that submits this spec; what was worked out of a total of GPUs is left out.

    Our extensions, for what the API has no field for: `noMaster`, `parameterServers`,
    `maxRestarts`, `dataDelivery`, `radar` and the names that begin so, `writableByRank0Only`, a
    bucket's `prefix`, `readOnly` of an empty directory and a Git repository, and the restart policy
    ExitCode.
    """
    spec = undo_plan(spec)
    body: Body = {"name": spec.name, "projectId": project_id, "clusterId": cluster_id}
    body["spec"] = _write_fields(spec, spec.setup, _list_written_fields(spec))
    if not spec.is_distributed:
        return body
    if not spec.has_master:
        return body | {"noMaster": True}
    if spec.master == UNCHANGED:
        return body | {"masterSpecSameAsWorker": True}
    master = _write_fields(spec, spec.master_setup, POD_FIELDS)
    return body | {"masterSpecSameAsWorker": False, "masterSpec": master}


def _list_written_fields(spec: Spec) -> Iterator[Field]:
    """Yield the fields that this kind of workload has."""
    options = list_options(spec.framework)
    for field in list_spec_fields(spec.architecture):
        is_option = field.option_key in ALL_OPTIONS and field.option_key not in options
        is_single_run = field.architecture is Architecture.STANDARD and spec.runs == 1
        is_worked_out = field.path == "workers" and spec.total_gpus is not None
        if not (is_option or is_single_run or is_worked_out):
            yield field


def _write_fields(spec: Spec, setup: Setup, fields: Iterable[Field]) -> Body:
    """Return the fields that have a value, those of pods from this setup."""
    body: Body = {}
    for field in fields:
        path = field.rest_value or field.path
        source, path = (setup, path.removeprefix("setup.")) if field.is_of_pods else (spec, path)
        written = CODECS[field.path].write(get_value(source, path))
        if written is not None:
            *above, leaf = field.rest.split(".")
            part = body
            for name in above:
                part = part.setdefault(name, {})
            part[leaf] = written
    gpus, security = setup.compute.gpus, setup.security
    if gpus.memory or gpus.portion is not None:
        body["compute"]["gpuRequestType"] = "memory" if gpus.memory else "portion"
    if security.uid is not None or security.gid is not None or security.supplemental_groups:
        body["security"]["uidGidSource"] = "custom"
    return body
