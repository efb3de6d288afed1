"""What of a template can be locked: the fields of the wizard that say it, the master's, and the
values of a Spec that may not differ.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.typed import Typed, TypedForm
from workloads.forms.master import DIFFERS, differences_of
from workloads.forms.pods import GPUS, SECURITY
from workloads.forms.sources import CHOSEN, PATH
from workloads.specs import Setup, Spec

OWN_COMPUTE = (*GPUS, "cpu_request", "cpu_limit", "memory_request", "memory_limit")


@dataclass(frozen=True)
class Lock:
    """One thing that can be locked. `typed` are the fields of a step that say it, `prefixes` how
    the names of more of them begin.

    `setup` or `spec` give what may not differ; `rest` is where a body of the REST API says it.
    `master` are the master's names for it.
    """

    key: str
    title: str
    typed: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    rest: str = ""
    setup: Callable[[Setup], Any] | None = None
    spec: Callable[[Spec], Any] | None = None
    master: tuple[str, ...] = ()
    of_start: bool = False

    def holds(self, name: str) -> bool:
        """Whether a typed field says a part of it."""
        return name in self.typed or name.startswith(self.prefixes)

    def values(self, spec: Spec) -> Any:
        """What of a workload may not differ; None where only the page can say it."""
        if self.setup is not None:
            return (
                self.setup(spec.setup),
                self.setup(spec.master_setup) if spec.has_master else None,
            )
        return self.spec(spec) if self.spec is not None else None


def _environment(name: str, title: str, rest: str) -> Lock:
    return Lock(
        name,
        title,
        (name,),
        rest=f"spec.{rest}",
        setup=lambda it: getattr(it.environment, name),
        master=(name,),
    )


def _rows(name: str, title: str, rest: str, of: Callable[[Setup], Any]) -> Lock:
    return Lock(name, title, prefixes=(f"{name}-",), rest=f"spec.{rest}", setup=of, master=(name,))


def _field(name: str, title: str, rest: str, of: Callable[[Spec], Any], *more: str) -> Lock:
    return Lock(name, title, (name, *more), rest=f"spec.{rest}", spec=of)


SECTIONS: Mapping[str, tuple[str, tuple[Lock, ...]]] = {
    "environment": (
        "What runs",
        (
            Lock("environment_choice", "Environment", ("environment_choice",)),
            _environment("image", "Image", "image"),
            _environment("pull_policy", "Image pull policy", "imagePullPolicy"),
            _environment("command", "Command", "command"),
            _environment("args", "Arguments", "args"),
            _environment("working_dir", "Working directory", "workingDir"),
            _environment("pull_secrets", "Pull secrets", "imagePullSecrets"),
            _rows(
                "variables",
                "Environment variables",
                "environmentVariables",
                lambda it: it.environment.variables,
            ),
            Lock(
                "security",
                "Security",
                SECURITY,
                rest="spec.security",
                setup=lambda it: it.security,
                master=("security",),
            ),
        ),
    ),
    "compute": (
        "What it gets",
        (
            Lock(
                "compute_choice",
                "Compute resource",
                ("compute_choice", *OWN_COMPUTE),
                rest="spec.compute",
                setup=lambda it: (
                    it.compute.gpus,
                    *(getattr(it.compute, name) for name in OWN_COMPUTE[4:]),
                ),
                master=("gpus", *OWN_COMPUTE[4:]),
            ),
            Lock(
                "large_shm",
                "Increase shared memory",
                ("large_shm",),
                rest="spec.compute.largeShmRequest",
                setup=lambda it: it.compute.large_shm,
                master=("large_shm",),
            ),
            _rows(
                "extended",
                "Extended resources",
                "compute.extendedResources",
                lambda it: it.compute.extended,
            ),
            Lock(
                "node_type",
                "Node type",
                ("node_type",),
                rest="spec.nodeType",
                setup=lambda it: it.node_type,
                master=("node_type",),
            ),
            Lock(
                "node_pools",
                "Node pools",
                ("node_pools",),
                rest="spec.nodePools",
                setup=lambda it: it.node_pools,
                master=("node_pools",),
            ),
            Lock(
                "topology",
                "Topology",
                ("topology_key", "topology_required"),
                rest="spec.podAffinity",
                setup=lambda it: it.topology,
                master=("topology",),
            ),
            _rows("tolerations", "Tolerations", "tolerations", lambda it: it.tolerations),
        ),
    ),
    "numbers": (
        "How many",
        (
            Lock(
                "configuration",
                "Configuration",
                ("configuration",),
                rest="noMaster",
                spec=lambda it: it.configuration,
                of_start=True,
            ),
            _field("workers", "Number of workers", "numWorkers", lambda it: it.workers),
            _field(
                "min_workers",
                "Elastic workers",
                "minReplicas",
                lambda it: it.elastic,
                "max_workers",
                "max_restarts",
            ),
            _field(
                "parameter_servers",
                "Parameter servers",
                "parameterServers",
                lambda it: it.parameter_servers,
            ),
            _field(
                "slots",
                "Slots, launcher and SSH path",
                "slotsPerWorker",
                lambda it: it.mpi,
                "launcher",
                "ssh_path",
            ),
            _field(
                "runs", "Runs", "completions", lambda it: (it.runs, it.parallelism), "parallelism"
            ),
        ),
    ),
    "data": (
        "Data & storage",
        (
            Lock(
                "data_sources",
                "Data sources",
                (CHOSEN,),
                (PATH,),
                rest="spec.storage",
                setup=lambda it: it.volumes,
                master=("volumes",),
            ),
            _rows("volumes", "Volumes", "storage", lambda it: it.volumes),
        ),
    ),
    "general": (
        "General",
        (
            _field("priority", "Priority", "priorityClass", lambda it: it.lifecycle.priority),
            _field(
                "preemptibility", "Preemptibility", "preemptibility", lambda it: it.is_preemptible
            ),
            _field(
                "grace_seconds",
                "Grace period",
                "terminationGracePeriodSeconds",
                lambda it: it.lifecycle.grace_seconds,
            ),
            _field(
                "backoff_limit",
                "Backoff limit",
                "backoffLimit",
                lambda it: it.lifecycle.backoff_limit,
            ),
            _field(
                "auto_delete_seconds",
                "Auto-deletion after the end",
                "autoDeletionTimeAfterCompletionSeconds",
                lambda it: it.lifecycle.auto_delete_seconds,
            ),
            _field(
                "restart_policy",
                "Restart policy",
                "restartPolicy",
                lambda it: it.lifecycle.restart_policy,
            ),
            _field(
                "clean_pod_policy",
                "Pods to delete at the end",
                "cleanPodPolicy",
                lambda it: it.lifecycle.clean_pod_policy,
            ),
            _rows("annotations", "Annotations", "annotations", lambda it: it.annotations),
            _rows("labels", "Labels", "labels", lambda it: it.labels),
        ),
    ),
    "master": (
        "Master",
        (
            Lock(
                "master", "In what the master differs", rest="masterSpec", spec=lambda it: it.master
            ),
        ),
    ),
}
"""The locks by section, with the section's title."""
LOCKS: Mapping[str, Lock] = {lock.key: lock for _, locks in SECTIONS.values() for lock in locks}
_MASTER = "master"


def known(keys: Iterable[str]) -> tuple[str, ...]:
    """Those of the keys that there are, each once, in the order of the page; "section:data" stands
    for all of a section.
    """
    wanted = set(keys)
    for name, (_, locks) in SECTIONS.items():
        if f"section:{name}" in wanted:
            wanted.update(lock.key for lock in locks)
    return tuple(key for key in LOCKS if key in wanted)


def in_start(typed: Typed, template: Typed, keys: Collection[str]) -> Typed:
    """What was typed into the first step, with the template's values of what is locked."""
    return _overlaid(typed, template, [LOCKS[key] for key in keys if LOCKS[key].of_start])


def in_setup(typed: Typed, template: Typed, keys: Collection[str]) -> Typed:
    """What was typed into the setup, with the template's values of what is locked."""
    return _overlaid(typed, template, [LOCKS[key] for key in keys if not LOCKS[key].of_start])


def in_master(typed: Typed, template: Typed, keys: Collection[str]) -> Typed:
    """What was typed for the master: it differs in what is locked as the template's does, or not at
    all.
    """
    if _MASTER in keys:
        return dict(template)
    for name in dict.fromkeys(name for key in keys for name in LOCKS[key].master):
        own, prefix = differences_of(name)
        rest = {
            each: values
            for each, values in typed.items()
            if each not in own and not (prefix and each.startswith(prefix))
        }
        differs = [each for each in typed.get(DIFFERS, []) if each != name]
        if name in template.get(DIFFERS, []):
            differs.append(name)
            rest |= {
                each: values
                for each, values in template.items()
                if each in own or (prefix and each.startswith(prefix))
            }
        typed = rest | {DIFFERS: differs}
    return typed


def _overlaid(typed: Typed, template: Typed, locks: Sequence[Lock]) -> Typed:
    if not locks:
        return typed
    free = {
        name: values
        for name, values in typed.items()
        if not any(lock.holds(name) for lock in locks)
    }
    return free | {
        name: values for name, values in template.items() if any(lock.holds(name) for lock in locks)
    }


def mark(form: TypedForm, keys: Collection[str], note: str) -> None:
    """Show what is locked as such: its fields cannot be typed into, and `note` stands beside
    them.
    """
    rows = getattr(form, "rows", {})
    for key in keys:
        for name, field in form.fields.items():
            if LOCKS[key].holds(name):
                field.widget.attrs["disabled"] = True
                field.template_note = note  # type: ignore[attr-defined]
        if key in rows:
            rows[key].note = note


def of_master(keys: Collection[str]) -> Collection[str]:
    """The things in which the master cannot differ otherwise than the template says; all of them
    where the master itself is locked.
    """
    if _MASTER in keys:
        return frozenset(name for lock in LOCKS.values() for name in lock.master)
    return frozenset(name for key in keys for name in LOCKS[key].master)


def broken(spec: Spec, template: Spec, keys: Collection[str]) -> Sequence[Lock]:
    """The locks that a workload does not keep."""
    return [LOCKS[key] for key in keys if LOCKS[key].values(spec) != LOCKS[key].values(template)]
