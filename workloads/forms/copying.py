"""A workload's Spec as a draft: every step as if it had been typed."""

from dataclasses import fields, replace
from typing import Any

from console.typed import Typed
from environments.models import ComputeResource, Environment
from projects.models import Project
from workloads import asset_rules
from workloads.forms import setup as setup_step
from workloads.forms import start as start_step
from workloads.forms.master import DIFFERS
from workloads.forms.pods import typed_setup
from workloads.forms.setup import CUSTOM
from workloads.specs import INHERITED, UNCHANGED, Preemptibility, Spec


def draft_of(
    spec: Spec, *, project: Project | None, name: str, environments: list[Environment], resources: list[ComputeResource]
) -> dict[str, Any]:
    """A Draft's data. `project` is where the copy is to be launched, and `name` what it is to be called there.

    An asset is chosen where its values are the spec's; else the values stand in the form as own ones.
    """
    data: dict[str, Any] = {"start": _start(spec, project, name), "setup": _setup(spec, environments, resources)}
    if spec.has_master and spec.master != UNCHANGED:
        changed = [field.name for field in fields(spec.master) if getattr(spec.master, field.name) is not INHERITED]
        data["master"] = typed_setup(spec.master_setup) | {DIFFERS: changed}
    return data


def _start(spec: Spec, project: Project | None, name: str) -> Typed:
    typed = start_step.defaults([project] if project else [], None)
    chosen = {"architecture": spec.architecture.value, "configuration": spec.configuration.value, "name": name}
    chosen |= {"framework": spec.framework.value} if spec.framework else {}
    return typed | {key: [value] for key, value in chosen.items()}


def _setup(spec: Spec, environments: list[Environment], resources: list[ComputeResource]) -> Typed:
    setup = spec.setup
    typed = setup_step.defaults() | typed_setup(setup)
    # What people made comes before what is built in: of two alike, theirs is the one they chose.
    same = next((each for each in sorted(environments, key=lambda each: each.is_built_in) if _fits(spec, each)), None)
    if same is not None:
        own = ("image", "pull_policy", "command", "args", "working_dir")
        typed = {key: value for key, value in typed.items() if key not in own and not key.startswith("variables-")}
    bare = replace(setup.compute, extended=())
    size = next((each for each in resources if asset_rules.compute_of(vars(each)) == bare), None)
    typed["environment_choice"] = [str(same.pk) if same else CUSTOM]
    typed["compute_choice"] = [str(size.pk) if size else CUSTOM]
    numbers: dict[str, Any] = {"workers": spec.workers, "runs": spec.runs, "parallelism": spec.parallelism}
    if spec.elastic is not None:
        numbers |= {"min_workers": spec.elastic.min_workers, "max_workers": spec.elastic.max_workers}
    return typed | _lifecycle(spec) | {key: [str(value)] for key, value in numbers.items()}


def _fits(spec: Spec, asset: Environment) -> bool:
    if asset.architecture != spec.architecture.value:
        return False
    wanted = spec.setup.environment
    chosen = asset_rules.environment_of(vars(asset))
    return all(
        getattr(chosen, name) == getattr(wanted, name) for name in ("image", "pull_policy", "command", "args", "variables", "working_dir")
    )


def _lifecycle(spec: Spec) -> Typed:
    lifecycle = spec.lifecycle
    chosen = {
        "priority": lifecycle.priority,
        "preemptibility": Preemptibility.PREEMPTIBLE if spec.is_preemptible else Preemptibility.NON_PREEMPTIBLE,
        "restart_policy": lifecycle.restart_policy,
        "clean_pod_policy": lifecycle.clean_pod_policy,
        "grace_seconds": lifecycle.grace_seconds,
        "auto_delete_seconds": lifecycle.auto_delete_seconds,
        "backoff_limit": lifecycle.backoff_limit,
    }
    return {name: [str(getattr(value, "value", value))] for name, value in chosen.items() if value is not None}
