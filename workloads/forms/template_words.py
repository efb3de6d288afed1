"""What a draft says of each thing that a template can lock, in words: the form that saves a
template shows it beside the box.
"""

from collections.abc import Iterator, Mapping

from workloads.forms import locks
from workloads.forms.filling import Filling
from workloads.forms.inwords import (
    compute_in_words,
    configuration_in_words,
    in_words,
    volume_in_words,
)
from workloads.specs import UNCHANGED, Elastic, Mpi

OWN_VALUES = "own values"


def words(filling: Filling) -> Mapping[str, str]:
    """By the locks' keys. What its kind of workload does not have is left out."""
    return dict(_words(filling))


def _words(filling: Filling) -> Iterator[tuple[str, str]]:
    spec, form = filling.spec(), filling.setup
    for key, lock in locks.LOCKS.items():
        match key:
            case "environment_choice":
                asset = form.environments.get(form.read(key, ""))
                yield key, asset.name if asset else OWN_VALUES
            case "compute_choice":
                size = form.resources.get(form.read(key, ""))
                yield (
                    key,
                    f"{size.name if size else OWN_VALUES}: {compute_in_words(spec.setup.compute)}",
                )
            case "data_sources":
                yield key, ", ".join(each.name for each in form.chosen_sources) or "none"
            case "volumes":
                yield key, ", ".join(map(volume_in_words, form.listed("volumes"))) or "none"
            case "configuration":
                if spec.framework is not None and len(spec.framework.configurations) > 1:
                    yield key, configuration_in_words(spec.configuration, spec.framework)
            case "master":
                if filling.has_master:
                    yield (
                        key,
                        "as the workers" if spec.master == UNCHANGED else "as changed in its step",
                    )
            case "preemptibility":
                yield key, "preemptible" if spec.is_preemptible else "non-preemptible"
            case _ if lock.setup is not None:
                yield key, in_words(lock.setup(spec.setup))
            case _ if lock.spec is not None and lock.typed[0] in form.fields:
                yield key, _number(lock.spec(spec))


def _number(value: object) -> str:
    match value:
        case Elastic():
            return f"{value.min_workers} to {value.max_workers}"
        case Mpi():
            return f"{value.slots}, {value.launcher.label.lower()}, {value.ssh_path}"
        case (int() as runs, int() as parallelism):
            return f"{runs}, {parallelism} at once"
        case None:
            return "none, or the default"
        case _:
            return in_words(value)
