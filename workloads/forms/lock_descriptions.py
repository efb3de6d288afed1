"""Descriptions of the values in a draft that a template can lock.

The form that saves a template shows each beside its box.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workloads.forms import template_locks
from workloads.forms.setup_descriptions import (
    describe_compute,
    describe_configuration,
    describe_data_delivery,
    describe_value,
    describe_volume,
)
from workloads.forms.wizard_draft import WizardDraft
from workloads.specs import UNCHANGED, LauncherCreation
from workloads.specs.fields import get_value

OWN_VALUES = "own values"


def describe_locks(draft: WizardDraft) -> Mapping[str, str]:
    """Return a description of each lockable value, by the locks' keys.

    What the draft's kind of workload does not have is left out.
    """
    return dict(_iterate_descriptions(draft))


def _iterate_descriptions(draft: WizardDraft) -> Iterator[tuple[str, str]]:
    spec, form = draft.build_spec(), draft.setup
    for key, lock in template_locks.LOCKS.items():
        match key:
            case "environment_choice":
                asset = form.environments.get(form.read(key, ""))
                yield key, asset.name if asset else OWN_VALUES
            case "compute_choice":
                size = form.resources.get(form.read(key, ""))
                yield (
                    key,
                    f"{size.name if size else OWN_VALUES}: {describe_compute(spec.setup.compute)}",
                )
            case "data_sources":
                yield key, ", ".join(each.name for each in form.chosen_sources) or "none"
            case "volumes":
                volumes = (row.build_part() for row in form.rows[key].filled_rows)
                yield key, ", ".join(map(describe_volume, volumes)) or "none"
            case "configuration":
                if spec.framework is not None and len(spec.framework.configurations) > 1:
                    yield key, describe_configuration(spec.configuration, spec.framework)
            case "master":
                if draft.has_master:
                    yield (
                        key,
                        "as the workers" if spec.master == UNCHANGED else "as changed in its step",
                    )
            case "preemptibility":
                yield key, "preemptible" if spec.is_preemptible else "non-preemptible"
            case "data_delivery":
                if "data_workers" in form.fields:
                    delivery = spec.data_delivery
                    yield key, describe_data_delivery(delivery) if delivery else "none"
            case "security":
                yield key, describe_value(spec.setup.security)
            case _ if lock.master_keys or lock.names.fields[0] in form.fields:
                yield key, _describe_values(key, [get_value(spec, path) for path in lock.paths])


def _describe_values(key: str, values: Sequence[Any]) -> str:
    """Describe the values of the fields that a lock holds together."""
    match key, values:
        case "min_pods", [int() as least, most, _]:
            return f"{least} to {most}"
        case "slots", [slots, LauncherCreation() as launcher, path]:
            return f"{slots}, {launcher.description}, {path}"
        case "runs", [runs, parallelism]:
            return f"{runs}, {parallelism} at once"
        case _:
            return describe_value(values[0])
