"""What a template can lock.

Each lock names the wizard's fields that it covers, what it locks of the master, and the values of a
Spec that may not differ.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.typed_forms import TypedForm, TypedValues
from workloads.forms.master_form import DIFFERS, get_master_fields
from workloads.forms.pod_form import GPU_FIELDS, SECURITY_FIELDS
from workloads.forms.source_fields import DATA_SOURCES_FIELD, PATH_PREFIX
from workloads.specs import Setup, Spec

OWN_COMPUTE_FIELDS = (*GPU_FIELDS, "cpu_request", "cpu_limit", "memory_request", "memory_limit")


@dataclass(frozen=True)
class Lock:
    """Something that a template can lock.

    `fields` are the form fields of a step that it covers; `field_prefixes` are how the names of
    further ones begin. `get_setup_value` or `get_spec_value` return the value that may not differ.
    `rest_path` is where a body of the REST API gives it, and `master_keys` are the master's names
    for it.
    """

    key: str
    title: str
    fields: tuple[str, ...] = ()
    field_prefixes: tuple[str, ...] = ()
    rest_path: str = ""
    get_setup_value: Callable[[Setup], Any] | None = None
    get_spec_value: Callable[[Spec], Any] | None = None
    master_keys: tuple[str, ...] = ()
    is_in_start: bool = False

    def covers_field(self, name: str) -> bool:
        """Tell whether a form field belongs to this lock."""
        return name in self.fields or name.startswith(self.field_prefixes)

    def get_values(self, spec: Spec) -> Any:
        """Return the values of a spec that may not differ.

        None where only the page knows them.
        """
        if self.get_setup_value is not None:
            return (
                self.get_setup_value(spec.setup),
                self.get_setup_value(spec.master_setup) if spec.has_master else None,
            )
        return self.get_spec_value(spec) if self.get_spec_value is not None else None


def _build_environment_lock(name: str, title: str, rest: str) -> Lock:
    return Lock(
        name,
        title,
        (name,),
        rest_path=f"spec.{rest}",
        get_setup_value=lambda setup: getattr(setup.environment, name),
        master_keys=(name,),
    )


def _build_rows_lock(name: str, title: str, rest: str, get_value: Callable[[Setup], Any]) -> Lock:
    return Lock(
        name,
        title,
        field_prefixes=(f"{name}-",),
        rest_path=f"spec.{rest}",
        get_setup_value=get_value,
        master_keys=(name,),
    )


def _build_field_lock(
    name: str, title: str, rest: str, get_value: Callable[[Spec], Any], *other_fields: str
) -> Lock:
    return Lock(
        name, title, (name, *other_fields), rest_path=f"spec.{rest}", get_spec_value=get_value
    )


SECTIONS: Mapping[str, tuple[str, tuple[Lock, ...]]] = {
    "environment": (
        "What runs",
        (
            Lock("environment_choice", "Environment", ("environment_choice",)),
            _build_environment_lock("image", "Image", "image"),
            _build_environment_lock("pull_policy", "Image pull policy", "imagePullPolicy"),
            _build_environment_lock("command", "Command", "command"),
            _build_environment_lock("args", "Arguments", "args"),
            _build_environment_lock("working_dir", "Working directory", "workingDir"),
            _build_environment_lock("pull_secrets", "Pull secrets", "imagePullSecrets"),
            _build_rows_lock(
                "variables",
                "Environment variables",
                "environmentVariables",
                lambda setup: setup.environment.variables,
            ),
            Lock(
                "security",
                "Security",
                SECURITY_FIELDS,
                rest_path="spec.security",
                get_setup_value=lambda setup: setup.security,
                master_keys=("security",),
            ),
        ),
    ),
    "compute": (
        "What it gets",
        (
            Lock(
                "compute_choice",
                "Compute resource",
                ("compute_choice", *OWN_COMPUTE_FIELDS),
                rest_path="spec.compute",
                get_setup_value=lambda setup: (
                    setup.compute.gpus,
                    *(getattr(setup.compute, name) for name in OWN_COMPUTE_FIELDS[4:]),
                ),
                master_keys=("gpus", *OWN_COMPUTE_FIELDS[4:]),
            ),
            Lock(
                "large_shm",
                "Increase shared memory",
                ("large_shm",),
                rest_path="spec.compute.largeShmRequest",
                get_setup_value=lambda setup: setup.compute.large_shm,
                master_keys=("large_shm",),
            ),
            _build_rows_lock(
                "extended",
                "Extended resources",
                "compute.extendedResources",
                lambda setup: setup.compute.extended,
            ),
            Lock(
                "node_type",
                "Node type",
                ("node_type",),
                rest_path="spec.nodeType",
                get_setup_value=lambda setup: setup.node_type,
                master_keys=("node_type",),
            ),
            Lock(
                "node_pools",
                "Node pools",
                ("node_pools",),
                rest_path="spec.nodePools",
                get_setup_value=lambda setup: setup.node_pools,
                master_keys=("node_pools",),
            ),
            Lock(
                "topology",
                "Topology",
                ("topology_key", "topology_required"),
                rest_path="spec.podAffinity",
                get_setup_value=lambda setup: setup.topology,
                master_keys=("topology",),
            ),
            _build_rows_lock(
                "tolerations", "Tolerations", "tolerations", lambda setup: setup.tolerations
            ),
        ),
    ),
    "numbers": (
        "How many",
        (
            Lock(
                "configuration",
                "Configuration",
                ("configuration",),
                rest_path="noMaster",
                get_spec_value=lambda spec: spec.configuration,
                is_in_start=True,
            ),
            _build_field_lock(
                "workers", "Number of workers", "numWorkers", lambda spec: spec.workers
            ),
            _build_field_lock(
                "min_workers",
                "Elastic workers",
                "minReplicas",
                lambda spec: spec.elastic,
                "max_workers",
                "max_restarts",
            ),
            _build_field_lock(
                "parameter_servers",
                "Parameter servers",
                "parameterServers",
                lambda spec: spec.parameter_servers,
            ),
            _build_field_lock(
                "slots",
                "Slots, launcher and SSH path",
                "slotsPerWorker",
                lambda spec: spec.mpi,
                "launcher",
                "ssh_path",
            ),
            _build_field_lock(
                "runs",
                "Runs",
                "completions",
                lambda spec: (spec.runs, spec.parallelism),
                "parallelism",
            ),
        ),
    ),
    "data": (
        "Data & storage",
        (
            Lock(
                "data_sources",
                "Data sources",
                (DATA_SOURCES_FIELD,),
                (PATH_PREFIX,),
                rest_path="spec.storage",
                get_setup_value=lambda setup: setup.volumes,
                master_keys=("volumes",),
            ),
            _build_rows_lock("volumes", "Volumes", "storage", lambda setup: setup.volumes),
        ),
    ),
    "general": (
        "General",
        (
            _build_field_lock(
                "priority", "Priority", "priorityClass", lambda spec: spec.lifecycle.priority
            ),
            _build_field_lock(
                "preemptibility",
                "Preemptibility",
                "preemptibility",
                lambda spec: spec.is_preemptible,
            ),
            _build_field_lock(
                "grace_seconds",
                "Grace period",
                "terminationGracePeriodSeconds",
                lambda spec: spec.lifecycle.grace_seconds,
            ),
            _build_field_lock(
                "backoff_limit",
                "Backoff limit",
                "backoffLimit",
                lambda spec: spec.lifecycle.backoff_limit,
            ),
            _build_field_lock(
                "auto_delete_seconds",
                "Auto-deletion after the end",
                "autoDeletionTimeAfterCompletionSeconds",
                lambda spec: spec.lifecycle.auto_delete_seconds,
            ),
            _build_field_lock(
                "restart_policy",
                "Restart policy",
                "restartPolicy",
                lambda spec: spec.lifecycle.restart_policy,
            ),
            _build_field_lock(
                "clean_pod_policy",
                "Pods to delete at the end",
                "cleanPodPolicy",
                lambda spec: spec.lifecycle.clean_pod_policy,
            ),
            _build_rows_lock(
                "annotations", "Annotations", "annotations", lambda setup: setup.annotations
            ),
            _build_rows_lock("labels", "Labels", "labels", lambda setup: setup.labels),
        ),
    ),
    "master": (
        "Master",
        (
            Lock(
                "master",
                "In what the master differs",
                rest_path="masterSpec",
                get_spec_value=lambda spec: spec.master,
            ),
        ),
    ),
}
"""The locks by section, each with the section's title."""
LOCKS: Mapping[str, Lock] = {lock.key: lock for _, locks in SECTIONS.values() for lock in locks}
_MASTER_KEY = "master"


def filter_known_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that exist, each once, in the order of the page.

    "section:data" stands for all keys of a section.
    """
    wanted = set(keys)
    for name, (_, locks) in SECTIONS.items():
        if f"section:{name}" in wanted:
            wanted.update(lock.key for lock in locks)
    return tuple(key for key in LOCKS if key in wanted)


def lock_start_values(
    step_values: TypedValues, template_values: TypedValues, keys: Collection[str]
) -> TypedValues:
    """Return the values of the first step, with the template's values of what is locked."""
    return _overlay_template(
        step_values, template_values, [LOCKS[key] for key in keys if LOCKS[key].is_in_start]
    )


def lock_setup_values(
    step_values: TypedValues, template_values: TypedValues, keys: Collection[str]
) -> TypedValues:
    """Return the values of the setup step, with the template's values of what is locked."""
    return _overlay_template(
        step_values, template_values, [LOCKS[key] for key in keys if not LOCKS[key].is_in_start]
    )


def lock_master_values(
    step_values: TypedValues, template_values: TypedValues, keys: Collection[str]
) -> TypedValues:
    """Return the values of the master step, with what is locked as the template has it.

    There the master differs as the template's master does, or not at all.
    """
    if _MASTER_KEY in keys:
        return dict(template_values)
    for name in dict.fromkeys(name for key in keys for name in LOCKS[key].master_keys):
        fields, prefix = get_master_fields(name)
        kept = {
            each: values
            for each, values in step_values.items()
            if each not in fields and not (prefix and each.startswith(prefix))
        }
        differs = [each for each in step_values.get(DIFFERS, []) if each != name]
        if name in template_values.get(DIFFERS, []):
            differs.append(name)
            kept |= {
                each: values
                for each, values in template_values.items()
                if each in fields or (prefix and each.startswith(prefix))
            }
        step_values = kept | {DIFFERS: differs}
    return step_values


def _overlay_template(
    step_values: TypedValues, template_values: TypedValues, locks: Sequence[Lock]
) -> TypedValues:
    if not locks:
        return step_values
    free = {
        name: values
        for name, values in step_values.items()
        if not any(lock.covers_field(name) for lock in locks)
    }
    return free | {
        name: values
        for name, values in template_values.items()
        if any(lock.covers_field(name) for lock in locks)
    }


def mark_locked_fields(form: TypedForm, keys: Collection[str], note: str) -> None:
    """Disable the locked fields of a form, and add `note` to them."""
    rows = getattr(form, "rows", {})
    for key in keys:
        for name, field in form.fields.items():
            if LOCKS[key].covers_field(name):
                field.widget.attrs["disabled"] = True
                field.template_note = note  # type: ignore[attr-defined]
        if key in rows:
            rows[key].note = note


def list_locked_master_keys(keys: Collection[str]) -> Collection[str]:
    """Return in what the master may not differ from the template.

    That is everything where the master itself is locked.
    """
    if _MASTER_KEY in keys:
        return frozenset(name for lock in LOCKS.values() for name in lock.master_keys)
    return frozenset(name for key in keys for name in LOCKS[key].master_keys)


def find_broken_locks(spec: Spec, template: Spec, keys: Collection[str]) -> Sequence[Lock]:
    """Return the locks that a workload breaks."""
    return [
        LOCKS[key] for key in keys if LOCKS[key].get_values(spec) != LOCKS[key].get_values(template)
    ]
