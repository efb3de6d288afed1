"""A copy of a workload: its Spec as a draft, with every step as if it had been typed."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

from console.typed_forms import TypedValues
from environments.models import Asset, ComputeResource, DataSource, Environment, Template
from projects.models import Project
from workloads import asset_rules
from workloads.forms import draft_templates
from workloads.forms import setup_form as setup_step
from workloads.forms import start_form as start_step
from workloads.forms.master_form import DIFFERS
from workloads.forms.pod_form import build_setup_values
from workloads.forms.setup_form import CUSTOM, ENVIRONMENT_FIELDS, OVERRIDABLE_FIELDS
from workloads.forms.source_fields import DATA_SOURCES_FIELD, match_sources
from workloads.forms.typed_fields import build_typed_values, list_form_names
from workloads.forms.workload_form import SETUP_FIELDS
from workloads.models import UsedAsset
from workloads.specs import UNCHANGED, Compute, Spec
from workloads.specs import Environment as SpecEnvironment
from workloads.specs.gpu_totals import undo_plan


@dataclass(frozen=True)
class AvailableAssets:
    """The assets that can be used where the copy is to be launched."""

    environments: Sequence[Environment] = ()
    resources: Sequence[ComputeResource] = ()
    sources: Sequence[DataSource] = ()
    templates: QuerySet[Template] | None = None


NO_ASSETS = AvailableAssets()


def build_copy_data(
    spec: Spec,
    *,
    project: Project | None,
    name: str,
    assets: AvailableAssets,
    used: Sequence[UsedAsset],
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return a Draft's data for a copy, and notes about it for the user.

    The workload's assets are chosen again where they still give the values that it was made of.
    """
    data = build_draft_data(
        spec, project=project, name=name, assets=assets, used={row.asset for row in used}
    )
    setup = data["setup"]
    chosen = {
        *setup["environment_choice"],
        *setup["compute_choice"],
        *setup.get(DATA_SOURCES_FIELD, []),
    }
    available = {
        str(each.pk): each for each in (*assets.environments, *assets.resources, *assets.sources)
    }
    notes = []
    for row in used:
        asset = available.get(str(row.asset))
        if row.kind in _ASSET_NOUNS and str(row.asset) not in chosen:
            reason = "has changed since" if asset else "is not for use here any more"
            notes.append(
                f"The {_ASSET_NOUNS[row.kind]} {row.name} {reason}: what it gave stands in the "
                "form as own values."
            )
    return data | _build_template_data(used, assets), notes


_ASSET_NOUNS = {
    "environment": "environment",
    "compute": "compute resource",
    "data-source": "data source",
}


def _build_template_data(used: Sequence[UsedAsset], assets: AvailableAssets) -> dict[str, Any]:
    """Return the draft data of the workload's template, while the template is unchanged.

    A newer version could lock a value that the workload has otherwise.
    """
    row = next((each for each in used if each.kind == "template"), None)
    if row is None or assets.templates is None:
        return {}
    template = assets.templates.filter(pk=row.asset, version=row.version).first()
    return (
        {}
        if template is None
        else {draft_templates.APPLIED_TEMPLATE: draft_templates.serialize_template(template)}
    )


def build_draft_data(
    spec: Spec,
    *,
    project: Project | None,
    name: str,
    assets: AvailableAssets = NO_ASSETS,
    used: Collection[uuid.UUID] = (),
) -> dict[str, Any]:
    """Return a Draft's data for a spec.

    `project` is where the copy is to be launched, and `name` what it is to be called there. An
    asset is chosen where it gives the spec's values, one of the `used` rather than another;
    otherwise the values stand in the form as own ones.
    """
    spec = undo_plan(spec)
    data: dict[str, Any] = {
        "start": _build_start_values(spec, project, name),
        "setup": _build_setup_values(spec, assets, used),
    }
    if spec.has_master and spec.master != UNCHANGED:
        changed = list(spec.master.changes)
        data["master"] = build_setup_values(spec.master_setup) | {DIFFERS: changed}
    return data


def _build_start_values(spec: Spec, project: Project | None, name: str) -> TypedValues:
    typed = start_step.build_start_defaults([project] if project else [], None)
    chosen = {
        "architecture": spec.architecture.value,
        "configuration": spec.configuration.value,
        "name": name,
    }
    chosen |= {"framework": spec.framework.value} if spec.framework else {}
    return typed | {key: [value] for key, value in chosen.items()}


def _build_setup_values(
    spec: Spec, assets: AvailableAssets, used: Collection[uuid.UUID]
) -> TypedValues:
    def sort_key(asset: Asset) -> tuple[bool, bool]:
        # What people made comes before what is built in: of two alike, theirs is the one they
        # chose.
        return asset.pk not in used, asset.is_built_in

    sources, volumes = match_sources(spec.setup.volumes, sorted(assets.sources, key=sort_key))
    setup = replace(spec.setup, volumes=volumes)
    typed = setup_step.build_setup_defaults() | build_setup_values(setup) | sources
    typed |= build_typed_values(spec, (each for each in SETUP_FIELDS if not each.is_of_pods))
    # The form cannot leave it to the priority.
    typed["preemptibility"] = [spec.effective_preemptibility.value]
    candidates = (
        (each, _find_own_values(spec, each, each.pk in used))
        for each in sorted(assets.environments, key=sort_key)
    )
    environment, own = next(
        ((each, own) for each, own in candidates if own is not None), (None, None)
    )
    if own is not None:
        names = list_form_names(ENVIRONMENT_FIELDS)
        typed = {name: value for name, value in typed.items() if name not in names}
        typed |= build_setup_values(replace(setup, environment=own), ENVIRONMENT_FIELDS)
    resource = next(
        (
            each
            for each in sorted(assets.resources, key=sort_key)
            if _gives_compute(each, setup.compute)
        ),
        None,
    )
    typed["environment_choice"] = [str(environment.pk) if environment else CUSTOM]
    typed["compute_choice"] = [str(resource.pk) if resource else CUSTOM]
    return typed


def _find_own_values(spec: Spec, asset: Environment, was_used: bool) -> SpecEnvironment | None:
    """Return what to type beside this environment to get the spec's environment.

    None where the spec's environment cannot be had this way, or where values would have to be typed
    beside an environment that was not used.
    """
    if asset.architecture != spec.architecture.value or asset.framework not in (
        "",
        spec.framework.value if spec.framework else "",
    ):
        return None
    wanted = spec.setup.environment
    chosen = asset_rules.build_environment(vars(asset))
    changed = {
        name: getattr(wanted, name)
        for name in OVERRIDABLE_FIELDS
        if getattr(wanted, name) != getattr(chosen, name)
    }
    own_variables = tuple(each for each in wanted.variables if each not in chosen.variables)
    if (changed or own_variables) and not was_used:
        return None
    own = SpecEnvironment(
        **({"image": ""} | changed), variables=own_variables, pull_secrets=wanted.pull_secrets
    )
    return own if setup_step.override_environment(chosen, own) == wanted else None


def _gives_compute(asset: ComputeResource, wanted: Compute) -> bool:
    """Tell whether a compute resource gives what is wanted, but for what is typed beside it."""
    chosen = asset_rules.build_compute(vars(asset))
    return setup_step.override_compute(chosen, wanted) == wanted
