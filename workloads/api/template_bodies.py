"""Bodies of `/api/v1/workload-templates`: a submission without project and cluster, under `meta`
what all assets have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from console.errors import Invalid
from environments.api import bodies
from environments.rest import Problems, Rest
from projects.scopes import Scope
from workloads.api import reading
from workloads.api.from_template import merged
from workloads.forms import locks
from workloads.forms.filling import UNNAMED
from workloads.forms.from_template import form_of_spec
from workloads.manifests import as_rest
from workloads.specs import Architecture, Spec, problems

_SUBMITTED = ("spec", "masterSpecSameAsWorker", "masterSpec", "noMaster")
_SHOWN_ONLY = ("architecture", "distributedFramework")
"""What an answer has beside, so that an answer can be sent back as it is."""
_TOP = ("meta", *_SUBMITTED, "master", "locked", *_SHOWN_ONLY)
_META = Rest("workload-templates", ())
_NOWHERE = "0"
_IDS = {"project": "projectId", "department": "departmentId", "cluster": "clusterId"}
MOST_NAME, MOST_DESCRIPTION = 63, 250


@dataclass(frozen=True, slots=True)
class Asked:
    """What a body says, and None for what it does not."""

    name: str | None
    description: str | None
    scope: Scope | None
    version: int | None
    locked: list[str] | None
    spec: Spec | None

    def values(self) -> dict[str, Any]:
        """Of the row, as far as they are said."""
        said = {"name": self.name, "description": self.description, "locked": self.locked}
        found: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        if (spec := self.spec) is not None:
            found |= {"form": form_of_spec(spec), "architecture": spec.architecture.value}
            found["framework"] = spec.framework.value if spec.framework else ""
        return found

    def new(self) -> dict[str, Any]:
        """Of a new row. Raises Invalid where it has no name."""
        if self.name is None:
            raise Invalid(
                [
                    (
                        "meta.name",
                        f"meta.name must be given, and have at most {MOST_NAME} characters.",
                    )
                ]
            )
        return {"description": "", "locked": [], **self.values()}


def shown(spec: Spec) -> dict[str, Any]:
    """What a template makes, as a submission has it."""
    body = as_rest(spec, project_id=_NOWHERE, cluster_id=_NOWHERE)
    found = {
        key: value for key, value in body.items() if key not in ("name", "projectId", "clusterId")
    }
    return found | ({"master": {"spec": found["masterSpec"]}} if "masterSpec" in found else {})


def read(
    body: object, architecture: Architecture | None, base: Mapping[str, Any] | None = None
) -> Asked:
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
        if name not in _TOP
    ]
    meta, version = bodies.read(_META, {"meta": _meta(body.get("meta"), wrong)})
    name, description, place = (
        next(iter(meta.get(each) or ()), None) for each in ("name", "description", "scope")
    )
    if name is not None and not 0 < len(name) <= MOST_NAME:
        wrong.append(
            ("meta.name", f"meta.name must be given, and have at most {MOST_NAME} characters.")
        )
    if len(description or "") > MOST_DESCRIPTION:
        wrong.append(
            (
                "meta.description",
                f"meta.description must have at most {MOST_DESCRIPTION} characters.",
            )
        )
    locked = body.get("locked")
    if locked is not None and (
        not isinstance(locked, list)
        or not all(isinstance(each, str) and each in locks.LOCKS for each in locked)
    ):
        wrong.append(("locked", f"locked must be a list of some of {', '.join(locks.LOCKS)}."))
    submission = _submission(body, wrong)
    if wrong:
        raise Invalid(wrong)
    return Asked(
        name=name,
        description=description,
        scope=None if place is None else Scope.read(place),
        version=version,
        locked=None if locked is None else list(locks.known(locked)),
        spec=_spec(submission, architecture, base) if submission else None,
    )


def _meta(given: object, wrong: Problems) -> object:
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
    if level not in ("system", "tenant", *_IDS):
        wrong.append(
            (
                "meta.scopeType",
                "meta.scopeType must be one of tenant, cluster, department and project.",
            )
        )
        return meta
    return meta | {"scope": level} | ({_IDS[level]: key} if level in _IDS else {})


def _submission(body: Mapping[str, Any], wrong: Problems) -> dict[str, Any]:
    """What a body says of what is to be made; {} where it says nothing."""
    found = {name: body[name] for name in _SUBMITTED if body.get(name) is not None}
    master = body.get("master")
    if master is None:
        return found
    if not isinstance(master, Mapping) or any(
        value is not None for name, value in master.items() if name not in ("spec", "assets")
    ):
        wrong.append(("master", "master must be an object with spec."))
        return found
    if master.get("assets"):
        wrong.append(
            (
                "master.assets",
                "master.assets is not known here: give the values themselves in master.spec.",
            )
        )
    own = master.get("spec")
    if own is None:
        return found
    if found.get("masterSpec", own) != own:
        wrong.append(("master", "master and masterSpec say different things. Give one of them."))
    return found | {"masterSpec": own}


def _spec(
    said: Mapping[str, Any], architecture: Architecture | None, base: Mapping[str, Any] | None
) -> Spec:
    """The workload that the template is to make, judged as one. Raises Invalid."""
    submission = dict(said)
    if base is not None:
        own = said.get("spec")
        master = base if not any(name in said for name in _SUBMITTED[1:]) else said
        submission = {name: master[name] for name in _SUBMITTED[1:] if name in master}
        submission["spec"] = (
            merged(base["spec"], own)
            if isinstance(own, Mapping)
            else base["spec"]
            if own is None
            else own
        )
    if architecture is None:
        is_distributed = submission["spec"].get("distributedFramework") is not None
        architecture = Architecture.DISTRIBUTED if is_distributed else Architecture.STANDARD
    asked = reading.read(
        submission | {"name": UNNAMED, "projectId": _NOWHERE, "clusterId": _NOWHERE}, architecture
    )
    spec = replace(asked.spec, project="none", namespace="none", queue="none")
    if wrong := problems(spec):
        raise asked.in_words_of_the_body(
            Invalid([(problem.field, problem.text) for problem in wrong])
        )
    return spec
