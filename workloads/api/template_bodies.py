"""Bodies of `/api/v1/workload-templates`: a submission without project and cluster, under `meta`
what all assets have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from console.errors import Invalid
from environments.api import bodies
from environments.rest_mapping import Problems, RestMapping
from projects.scopes import Scope
from workloads.api import submission_bodies
from workloads.api.from_template import merge_values
from workloads.forms import template_locks
from workloads.forms.from_template import build_form_from_spec
from workloads.forms.wizard_draft import TEMPLATE_WORKLOAD_NAME
from workloads.manifests import build_rest_body
from workloads.specs import Architecture, Spec, find_problems

_SUBMISSION_FIELDS = ("spec", "masterSpecSameAsWorker", "masterSpec", "noMaster")
_READ_ONLY_FIELDS = ("architecture", "distributedFramework")
"""What an answer has beside, so that an answer can be sent back as it is."""
_TOP_LEVEL_FIELDS = ("meta", *_SUBMISSION_FIELDS, "master", "locked", *_READ_ONLY_FIELDS)
_META = RestMapping("workload-templates", ())
_NO_ID = "0"
_ID_FIELDS = {"project": "projectId", "department": "departmentId", "cluster": "clusterId"}
MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH = 63, 250


@dataclass(frozen=True, slots=True)
class TemplateBody:
    """What a body says, and None for what it does not."""

    name: str | None
    description: str | None
    scope: Scope | None
    version: int | None
    locked: list[str] | None
    spec: Spec | None

    def build_values(self) -> dict[str, Any]:
        """Of the row, as far as they are said."""
        said = {"name": self.name, "description": self.description, "locked": self.locked}
        found: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        if (spec := self.spec) is not None:
            found |= {"form": build_form_from_spec(spec), "architecture": spec.architecture.value}
            found["framework"] = spec.framework.value if spec.framework else ""
        return found

    def build_new_values(self) -> dict[str, Any]:
        """Of a new row. Raises Invalid where it has no name."""
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
    """What a template makes, as a submission has it."""
    body = build_rest_body(spec, project_id=_NO_ID, cluster_id=_NO_ID)
    found = {
        key: value for key, value in body.items() if key not in ("name", "projectId", "clusterId")
    }
    return found | ({"master": {"spec": found["masterSpec"]}} if "masterSpec" in found else {})


def parse_template(
    body: object, architecture: Architecture | None, base: Mapping[str, Any] | None = None
) -> TemplateBody:
    """What a body says; over `base`, what the template makes now, where that is given. Raises
    Invalid with everything that is wrong.

    Where no architecture is said the spec has one: it is distributed with a distributedFramework.
    """
    if not isinstance(body, Mapping):
        raise Invalid([("body", "The body must be an object with the objects meta and spec.")])
    if base is None and not isinstance(body.get("spec"), Mapping):
        raise Invalid([("spec", "spec must be an object: that of a submission.")])
    wrong: Problems = [
        (str(name)[:60], f"{str(name)[:60]} is not a field that this version knows.")
        for name in body
        if name not in _TOP_LEVEL_FIELDS
    ]
    meta, version = bodies.parse_asset(_META, {"meta": _parse_meta(body.get("meta"), wrong)})
    name, description, place = (
        next(iter(meta.get(each) or ()), None) for each in ("name", "description", "scope")
    )
    if name is not None and not 0 < len(name) <= MAX_NAME_LENGTH:
        wrong.append(
            (
                "meta.name",
                f"meta.name must be given, and have at most {MAX_NAME_LENGTH} characters.",
            )
        )
    if len(description or "") > MAX_DESCRIPTION_LENGTH:
        wrong.append(
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
        wrong.append(
            ("locked", f"locked must be a list of some of {', '.join(template_locks.LOCKS)}.")
        )
    submission = _parse_submission(body, wrong)
    if wrong:
        raise Invalid(wrong)
    return TemplateBody(
        name=name,
        description=description,
        scope=None if place is None else Scope.parse(place),
        version=version,
        locked=None if locked is None else list(template_locks.filter_known_keys(locked)),
        spec=_parse_spec(submission, architecture, base) if submission else None,
    )


def _parse_meta(given: object, problems: Problems) -> object:
    """The meta data with the scope as all assets have it: Run:ai's templates name it by scopeType
    and scopeId.
    """
    if not isinstance(given, Mapping):
        return given
    meta = {
        name: value
        for name, value in given.items()
        if name not in ("scopeType", "scopeId", "workloadType")
    }
    level, key = given.get("scopeType"), given.get("scopeId")
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
    """What a body says of what is to be made; {} where it says nothing."""
    found = {name: body[name] for name in _SUBMISSION_FIELDS if body.get(name) is not None}
    master = body.get("master")
    if master is None:
        return found
    if not isinstance(master, Mapping) or any(
        value is not None for name, value in master.items() if name not in ("spec", "assets")
    ):
        problems.append(("master", "master must be an object with spec."))
        return found
    if master.get("assets"):
        problems.append(
            (
                "master.assets",
                "master.assets is not known here: give the values themselves in master.spec.",
            )
        )
    own = master.get("spec")
    if own is None:
        return found
    if found.get("masterSpec", own) != own:
        problems.append(("master", "master and masterSpec say different things. Give one of them."))
    return found | {"masterSpec": own}


def _parse_spec(
    given_fields: Mapping[str, Any],
    architecture: Architecture | None,
    base: Mapping[str, Any] | None,
) -> Spec:
    """The workload that the template is to make, judged as one. Raises Invalid."""
    submission = dict(given_fields)
    if base is not None:
        own = given_fields.get("spec")
        master = (
            base
            if not any(name in given_fields for name in _SUBMISSION_FIELDS[1:])
            else given_fields
        )
        submission = {name: master[name] for name in _SUBMISSION_FIELDS[1:] if name in master}
        submission["spec"] = (
            merge_values(base["spec"], own)
            if isinstance(own, Mapping)
            else base["spec"]
            if own is None
            else own
        )
    if architecture is None:
        is_distributed = submission["spec"].get("distributedFramework") is not None
        architecture = Architecture.DISTRIBUTED if is_distributed else Architecture.STANDARD
    asked = submission_bodies.parse_submission(
        submission | {"name": TEMPLATE_WORKLOAD_NAME, "projectId": _NO_ID, "clusterId": _NO_ID},
        architecture,
    )
    spec = replace(asked.spec, project="none", namespace="none", queue="none")
    if wrong := find_problems(spec):
        raise asked.translate_problems(
            Invalid([(problem.field, problem.text) for problem in wrong])
        )
    return spec
