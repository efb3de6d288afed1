"""Bodies of `/api/v1/workload-templates`.

They are submissions without project and cluster, with the fields of all assets under `meta`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from console.errors import Invalid
from environments.api import bodies
from environments.rest_mapping import Problems, RestMapping
from projects.scopes import Scope
from workloads.api.from_template import merge_values
from workloads.forms import template_locks
from workloads.forms.from_template import build_form_from_spec
from workloads.forms.wizard_draft import TEMPLATE_WORKLOAD_NAME
from workloads.rest.reading import parse_submission
from workloads.rest.writing import build_rest_body
from workloads.specs import Architecture, Spec, find_problems

_SUBMISSION_FIELDS = ("spec", "masterSpecSameAsWorker", "masterSpec", "noMaster")
_READ_ONLY_FIELDS = ("architecture", "distributedFramework")
"""Fields of an answer that a body may have too.

An answer can so be sent back unchanged.
"""
_TOP_LEVEL_FIELDS = ("meta", *_SUBMISSION_FIELDS, "master", "locked", *_READ_ONLY_FIELDS)
_META = RestMapping("workload-templates", ())
_NO_ID = "0"
_ID_FIELDS = {"project": "projectId", "department": "departmentId", "cluster": "clusterId"}
MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH = 63, 250


@dataclass(frozen=True, slots=True)
class TemplateBody:
    """What a body gives, and None for what it does not."""

    name: str | None
    description: str | None
    scope: Scope | None
    version: int | None
    locked: list[str] | None
    spec: Spec | None

    def build_values(self) -> dict[str, Any]:
        """Return the row's values, as far as they are given."""
        given = {"name": self.name, "description": self.description, "locked": self.locked}
        values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if (spec := self.spec) is not None:
            values |= {"form": build_form_from_spec(spec), "architecture": spec.architecture.value}
            values["framework"] = spec.framework.value if spec.framework else ""
        return values

    def build_new_values(self) -> dict[str, Any]:
        """Return the values of a new row. Raises Invalid where it has no name."""
        if self.name is None:
            raise Invalid(
                [
                    (
                        "meta.name",
                        f"meta.name must be given, and have at most {MAX_NAME_LENGTH} characters.",
                    )
                ]
            )
        return {"description": "", "locked": [], **self.build_values()}


def serialize_template_spec(spec: Spec) -> dict[str, Any]:
    """Return what a template makes, as a submission has it."""
    body = build_rest_body(spec, project_id=_NO_ID, cluster_id=_NO_ID)
    submission = {
        key: value for key, value in body.items() if key not in ("name", "projectId", "clusterId")
    }
    return submission | (
        {"master": {"spec": submission["masterSpec"]}} if "masterSpec" in submission else {}
    )


def parse_template(
    body: object, architecture: Architecture | None, base: Mapping[str, Any] | None = None
) -> TemplateBody:
    """Return the template that a body gives. Raises Invalid with everything that is wrong.

    `base` is what the template makes now; the body's spec is merged over it. Where no
    `architecture` is given the spec has one: it is distributed with a distributedFramework.
    """
    if not isinstance(body, Mapping):
        raise Invalid([("body", "The body must be an object with the objects meta and spec.")])
    if base is None and not isinstance(body.get("spec"), Mapping):
        raise Invalid([("spec", "spec must be an object: that of a submission.")])
    problems: Problems = [
        (str(name)[:60], f"{str(name)[:60]} is not a field that this version knows.")
        for name in body
        if name not in _TOP_LEVEL_FIELDS
    ]
    meta, version = bodies.parse_asset(_META, {"meta": _parse_meta(body.get("meta"), problems)})
    name, description, scope = (
        next(iter(meta.get(each) or ()), None) for each in ("name", "description", "scope")
    )
    if name is not None and not 0 < len(name) <= MAX_NAME_LENGTH:
        problems.append(
            (
                "meta.name",
                f"meta.name must be given, and have at most {MAX_NAME_LENGTH} characters.",
            )
        )
    if len(description or "") > MAX_DESCRIPTION_LENGTH:
        problems.append(
            (
                "meta.description",
                f"meta.description must have at most {MAX_DESCRIPTION_LENGTH} characters.",
            )
        )
    locked = body.get("locked")
    if locked is not None and (
        not isinstance(locked, list)
        or not all(isinstance(each, str) and each in template_locks.LOCKS for each in locked)
    ):
        problems.append(
            ("locked", f"locked must be a list of some of {', '.join(template_locks.LOCKS)}.")
        )
    submission = _parse_submission(body, problems)
    if problems:
        raise Invalid(problems)
    return TemplateBody(
        name=name,
        description=description,
        scope=None if scope is None else Scope.parse(scope),
        version=version,
        locked=None if locked is None else list(template_locks.filter_known_keys(locked)),
        spec=_parse_spec(submission, architecture, base) if submission else None,
    )


def _parse_meta(body_meta: object, problems: Problems) -> object:
    """Return the meta data with the scope as all assets have it.

    Run:ai's templates name the scope by scopeType and scopeId.
    """
    if not isinstance(body_meta, Mapping):
        return body_meta
    meta = {
        name: value
        for name, value in body_meta.items()
        if name not in ("scopeType", "scopeId", "workloadType")
    }
    level, key = body_meta.get("scopeType"), body_meta.get("scopeId")
    if level is None or meta.get("scope") is not None:
        return meta
    if level not in ("system", "tenant", *_ID_FIELDS):
        problems.append(
            (
                "meta.scopeType",
                "meta.scopeType must be one of tenant, cluster, department and project.",
            )
        )
        return meta
    return meta | {"scope": level} | ({_ID_FIELDS[level]: key} if level in _ID_FIELDS else {})


def _parse_submission(body: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return the fields of a submission in the body; {} where it has none."""
    submission = {name: body[name] for name in _SUBMISSION_FIELDS if body.get(name) is not None}
    master = body.get("master")
    if master is None:
        return submission
    if not isinstance(master, Mapping) or any(
        value is not None for name, value in master.items() if name not in ("spec", "assets")
    ):
        problems.append(("master", "master must be an object with spec."))
        return submission
    if master.get("assets"):
        problems.append(
            (
                "master.assets",
                "master.assets is not known here: give the values themselves in master.spec.",
            )
        )
    master_spec = master.get("spec")
    if master_spec is None:
        return submission
    if submission.get("masterSpec", master_spec) != master_spec:
        problems.append(("master", "master and masterSpec say different things. Give one of them."))
    return submission | {"masterSpec": master_spec}


def _parse_spec(
    given_fields: Mapping[str, Any],
    architecture: Architecture | None,
    base: Mapping[str, Any] | None,
) -> Spec:
    """Return the workload that the template is to make, validated. Raises Invalid."""
    submission = dict(given_fields)
    if base is not None:
        given_spec = given_fields.get("spec")
        master_fields = _SUBMISSION_FIELDS[1:]
        # The master is not merged: its fields exclude each other, so they come from one side.
        gives_master = any(name in given_fields for name in master_fields)
        master = given_fields if gives_master else base
        submission = {name: master[name] for name in master_fields if name in master}
        if isinstance(given_spec, Mapping):
            submission["spec"] = merge_values(base["spec"], given_spec)
        else:
            submission["spec"] = base["spec"] if given_spec is None else given_spec
    if architecture is None:
        is_distributed = submission["spec"].get("distributedFramework") is not None
        architecture = Architecture.DISTRIBUTED if is_distributed else Architecture.STANDARD
    parsed = parse_submission(
        submission | {"name": TEMPLATE_WORKLOAD_NAME, "projectId": _NO_ID, "clusterId": _NO_ID},
        architecture,
    )
    spec = replace(parsed.spec, project="none", namespace="none", queue="none")
    if spec_problems := find_problems(spec):
        raise parsed.translate_problems(
            Invalid([(problem.field, problem.text) for problem in spec_problems])
        )
    return spec
