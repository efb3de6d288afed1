"""Bodies of `/api/v1/workload-templates`.

They are submissions without project and cluster, with the fields of all assets under `meta`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, field, structs

from console.errors import Invalid
from console.rest_bodies import (
    READ_ONLY,
    Problem,
    Reading,
    RestBody,
    describe_field,
    mark_unsupported,
    read_body,
)
from environments.api import bodies
from environments.models import Template
from projects.models import User
from projects.scopes import Scope
from workloads.api import cleared_fields
from workloads.api.from_template import REPLACING_FIELDS, merge_values
from workloads.forms import template_locks
from workloads.forms.draft_content import TEMPLATE_WORKLOAD_NAME
from workloads.forms.draft_templates import ASSET_NOUNS
from workloads.forms.from_template import build_form_from_spec, build_template_spec
from workloads.rest.reading import parse_submission
from workloads.rest.writing import build_rest_body
from workloads.specs import Architecture, Spec, find_problems

_NO_ID = "0"
MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH = 63, 250
_NAME_WORDS = f"must be given, and have at most {MAX_NAME_LENGTH} characters"
_DESCRIPTION_WORDS = f"must have at most {MAX_DESCRIPTION_LENGTH} characters"
LockKey: Any = Literal[tuple(template_locks.LOCKS)]
"""What a template can lock, as a body names it."""


class TemplateLevel(StrEnum):
    """The levels of a scope as Run:ai's templates name them."""

    SYSTEM = "system"
    TENANT = "tenant"
    CLUSTER = "cluster"
    DEPARTMENT = "department"
    PROJECT = "project"


class TemplateMetaBody(bodies.MetaBody, forbid_unknown_fields=True):
    """The meta data of a template; Run:ai's name the scope by scopeType and scopeId."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH)] | None,
        describe_field(problem=_NAME_WORDS),
    ] = None
    description: Annotated[
        Annotated[str, Meta(max_length=MAX_DESCRIPTION_LENGTH)] | None,
        describe_field(problem=_DESCRIPTION_WORDS),
    ] = None
    scope_type: Annotated[
        TemplateLevel | None,
        describe_field(
            "The same as scope.", problem="must be one of tenant, cluster, department and project"
        ),
    ] = None
    scope_id: Annotated[Any, describe_field("The id of that scope.")] = None
    workload_type: Annotated[Any, READ_ONLY] = None

    def name_scope(self) -> bodies.MetaBody:
        """Return the same with the scope as all assets have it."""
        if self.scope_type is None or self.scope is not None:
            return self
        ids = {f"{self.scope_type}_id": self.scope_id}
        has_id = self.scope_type not in (TemplateLevel.SYSTEM, TemplateLevel.TENANT)
        return structs.replace(self, scope=str(self.scope_type), **(ids if has_id else {}))


class MasterObject(RestBody, forbid_unknown_fields=True):
    """The master as Run:ai's templates have it."""

    spec: Any = None
    assets: Annotated[
        Any,
        mark_unsupported(
            False, reason="is not known here: give the values themselves in master.spec"
        ),
    ] = None


class TemplateRequest(RestBody, forbid_unknown_fields=True):
    """A body; its submission is read where it is complete. An answer can be sent back as it is."""

    meta: TemplateMetaBody = field(default_factory=TemplateMetaBody)
    spec: Any = None
    master_spec_same_as_worker: Any = None
    master_spec: Any = None
    no_master: Any = None
    master: MasterObject | None = None
    locked: Annotated[
        tuple[LockKey, ...] | None,
        describe_field(problem=f"must be a list of some of {', '.join(template_locks.LOCKS)}"),
    ] = None
    architecture: Annotated[Any, READ_ONLY] = None
    distributed_framework: Annotated[Any, READ_ONLY] = None


class TemplatePatch(TemplateRequest, forbid_unknown_fields=True):
    """A change of a template."""

    fields_to_clear: Annotated[
        Annotated[
            tuple[Annotated[str, Meta(max_length=cleared_fields.MAX_PATH_CHARS)], ...],
            Meta(max_length=cleared_fields.MAX_FIELDS),
        ]
        | None,
        describe_field(
            "Paths as spec.image, whose values are taken away before the rest is merged.",
            problem=f"must be a list of at most {cleared_fields.MAX_FIELDS} paths as spec.image",
        ),
    ] = None


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
        fields = {"name": self.name, "description": self.description, "locked": self.locked}
        values: dict[str, Any] = {
            name: value for name, value in fields.items() if value is not None
        }
        if (spec := self.spec) is not None:
            values |= {"form": build_form_from_spec(spec), "architecture": spec.architecture.value}
            values["framework"] = spec.framework.value if spec.framework else ""
        return values

    def build_new_values(self) -> dict[str, Any]:
        """Return the values of a new row. Raises Invalid where it has no name."""
        if self.name is None:
            raise Invalid([("meta.name", f"meta.name {_NAME_WORDS}.")])
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


def build_template_body(template: Template, user: User) -> dict[str, Any]:
    """Return the body that makes a template, without its meta data.

    What the user may not see of the assets that it names is left out.
    """
    submission = serialize_template_spec(build_template_spec(template, user))
    # `master` says masterSpec once more, for other clients.
    submission.pop("master", None)
    return submission | ({"locked": list(template.locked)} if template.locked else {})


def parse_template(
    body: object,
    architecture: Architecture | None,
    base: Mapping[str, Any] | None = None,
    left_out: Sequence[str] = (),
) -> TemplateBody:
    """Return the template that a body gives. Raises Invalid with everything that is wrong.

    `base` is what the template makes now; the body's spec is merged over it. `left_out` are the
    fields of assets that give nothing to it, as `find_left_out_choices` returns them. Where no
    `architecture` is given the spec has one: it is distributed with a distributedFramework.
    """
    is_without_spec = isinstance(body, Mapping) and not isinstance(body.get("spec"), Mapping)
    if base is None and is_without_spec:
        raise Invalid([("spec", "spec must be an object: that of a submission.")])
    reading: Reading[Any] = read_body(TemplateRequest if base is None else TemplatePatch, body)
    request: TemplateRequest = reading.value
    scope = bodies.read_scope(request.meta.name_scope(), reading)
    submission = _list_submission(request, reading)
    cleared = (isinstance(request, TemplatePatch) and request.fields_to_clear) or ()
    reading.problems += cleared_fields.find_problems(cleared)
    reading.require_valid()
    description, locked = request.meta.description, request.locked
    if cleared_fields.DESCRIPTION in cleared:
        description = description or ""
    if cleared_fields.LOCKED in cleared:
        locked = locked or ()
    changes_spec = bool(submission)
    if base is not None:
        cleared_base = cleared_fields.clear_fields(base, cleared)
        # Of what has no value nothing is taken away, and it stays made of its assets.
        changes_spec = changes_spec or cleared_base != base
        dropped = _list_dropped_fields(request.spec, cleared)
        lost = [each for each in left_out if REPLACING_FIELDS[each] not in dropped]
        changes_spec = changes_spec or len(lost) < len(left_out)
        if changes_spec and lost:
            raise Invalid([_describe_loss(each) for each in lost])
        base = cleared_base
    return TemplateBody(
        name=request.meta.name,
        description=description,
        scope=scope,
        version=request.meta.version,
        locked=None if locked is None else list(template_locks.filter_known_keys(locked)),
        spec=_parse_spec(submission, architecture, base) if changes_spec else None,
    )


def _list_dropped_fields(spec: object, cleared: Collection[str]) -> set[str]:
    """Return the fields of the spec that a change takes away: as null, or by their paths."""
    nulls = (
        {name for name, value in spec.items() if value is None}
        if isinstance(spec, Mapping)
        else set()
    )
    return nulls | {path.removeprefix("spec.") for path in cleared if path.startswith("spec.")}


def _describe_loss(choice: str) -> Problem:
    """Return the problem of a change that would lose what an asset gives, unseen by its author."""
    path, noun = f"spec.{REPLACING_FIELDS[choice]}", ASSET_NOUNS[choice]
    return path, (
        f"The template's {noun} is not there any more, or you may not see it. A change of the spec "
        f"would lose what it gives, so nothing was changed. Name {path} in fieldsToClear to go on "
        "without it; values of your own can stand beside that."
    )


def _list_submission(request: TemplateRequest, reading: Reading[Any]) -> dict[str, Any]:
    """Return the fields of a submission in the body; {} where it has none."""
    fields = {
        "spec": request.spec,
        "masterSpecSameAsWorker": request.master_spec_same_as_worker,
        "masterSpec": request.master_spec,
        "noMaster": request.no_master,
    }
    submission = {name: value for name, value in fields.items() if value is not None}
    master = request.master.spec if request.master else None
    if master is None:
        return submission
    if submission.get("masterSpec", master) != master:
        reading.problems.append(
            ("master", "master and masterSpec say different things. Give one of them.")
        )
    return submission | {"masterSpec": master}


def _parse_spec(
    given_fields: Mapping[str, Any],
    architecture: Architecture | None,
    base: Mapping[str, Any] | None,
) -> Spec:
    """Return the workload that the template is to make, validated. Raises Invalid."""
    submission = dict(given_fields)
    if base is not None:
        given_spec = given_fields.get("spec")
        master_fields = ("masterSpecSameAsWorker", "masterSpec", "noMaster")
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
