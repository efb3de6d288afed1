"""A distributed workload as a TrainJob of Kubeflow Trainer v2 (2.2 and later).

For clusters that serve nothing else. A TrainJob changes a runtime that the cluster's administrator
made: what it has no field for is refused, with what would work.
"""

from collections.abc import Iterator
from typing import Any

from clusters.capabilities import Capabilities, TrainingRuntime
from clusters.job_kinds import JobKind
from workloads.kube_objects import Object
from workloads.manifests import keys, placement, pod_templates, volumes
from workloads.manifests.delivery_variables import DeliveryRole, build_variables
from workloads.manifests.pod_templates import Identity
from workloads.specs import S3, Framework, Git, Problem, Setup, Spec
from workloads.specs.choices import VolumeAccess
from workloads.specs.spec import UNCHANGED, Lifecycle

PATCHES = "runtimePatches"
MANAGER = "muster.dev/manager"
LONGEST_NAME = 48
"""Characters of a name, for up to ten nodes: JobSet appends "-node-0-N-abcde", and each further
digit of N costs one.
"""


def find_runtime(framework: Framework, capabilities: Capabilities) -> TrainingRuntime | None:
    """Return the runtime for a framework's workloads; None where none serves.

    On a cluster with the KAI scheduler only one that names it, elsewhere one that names none.
    """
    label = framework.adapter.runtime
    scheduler = keys.KAI if capabilities.has_kai else ""
    return next(
        (
            each
            for each in capabilities.runtimes
            if label and (each.framework, each.scheduler) == (label, scheduler)
        ),
        None,
    )


def build_job(
    spec: Spec, identity: Identity, kind: JobKind, runtime: TrainingRuntime
) -> list[Object]:
    """Build a TrainJob; a master that is set up as the workers are is its first node."""
    trainer: Object = {"image": spec.setup.environment.image_reference, "numNodes": spec.pod_count}
    for field, value in (
        ("command", spec.setup.environment.command),
        ("args", spec.setup.environment.args),
    ):
        if value:
            trainer[field] = list(value)
    if variables := pod_templates.build_environment(
        spec.setup, fixed=build_variables(spec, identity.attempt, DeliveryRole.RANK)
    ):
        trainer["env"] = variables
    if resources := pod_templates.build_resources(spec.setup.compute):
        trainer["resourcesPerNode"] = resources
    body: Object = {
        "runtimeRef": {
            "apiGroup": kind.group,
            "kind": "ClusterTrainingRuntime",
            "name": runtime.name,
        },
        "trainer": trainer,
        PATCHES: [
            {
                "manager": MANAGER,
                "trainingRuntimeSpec": {
                    "template": {"spec": {"replicatedJobs": [_build_patch(spec, identity, kind)]}}
                },
            }
        ],
    }
    job = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": pod_templates.build_metadata(spec, identity),
        "spec": body,
    }
    return [job]


def _build_patch(spec: Spec, identity: Identity, kind: JobKind) -> Object:
    """Build everything about the pods that is no field of the trainer."""
    setup = spec.setup
    container: Object = {"name": kind.container}
    if mounted := volumes.build_mounts(setup, rank_0=True):
        container["volumeMounts"] = mounted
    if security := pod_templates.build_container_security(setup.security):
        container["securityContext"] = security
    pod: Object = {
        "containers": [container],
        **placement.build_placement(
            setup,
            identity.workload_id,
            identity.pools,
            has_data_workers=spec.data_delivery is not None,
        ),
    }
    pod |= pod_templates.build_pod_security(setup.security)
    if pod_volumes := volumes.build_pod_volumes(spec, setup):
        pod["volumes"] = pod_volumes
    if secrets := pod_templates.build_pull_secrets(setup, identity):
        pod["imagePullSecrets"] = secrets
    if spec.lifecycle.grace_seconds is not None:
        pod["terminationGracePeriodSeconds"] = spec.lifecycle.grace_seconds
    template = {
        "metadata": pod_templates.build_template_metadata(spec, setup, identity),
        "spec": pod,
    }
    return {"name": kind.container, "template": {"spec": {"template": template}}}


def find_refusals(
    spec: Spec, capabilities: Capabilities, *, is_stored: bool = False
) -> Iterator[Problem]:
    """Yield what a TrainJob cannot express of a spec."""
    if PATCHES not in capabilities.trainjob_fields:
        yield Problem(
            "framework",
            (
                f"The cluster's Kubeflow Trainer is too old: its TrainJob has no {PATCHES}. "
                f"{_describe_remedy('Trainer 2.2')}"
            ),
        )
        return
    if spec.elastic is not None:
        yield Problem(
            "elastic",
            (
                "A number of pods that changes cannot be had as a TrainJob, which is what this "
                "cluster serves: Kubeflow Trainer v2 does not let numNodes change once a job is "
                "made, and its torch is not elastic. Leave out minimum and maximum, or ask the "
                "cluster's administrator to install the training operator (v1)."
            ),
        )
    for field, words in _find_unsupported(spec):
        yield Problem(
            field,
            (
                f"{words} cannot be said of a TrainJob, which is what this cluster serves. "
                f"{_describe_remedy('the training operator (v1)')}"
            ),
        )
    if not is_stored:
        # Trainer overwrites them without a word, and what ran with them runs again.
        yield from _find_reserved_variables(spec)
    longest = LONGEST_NAME - len(str(spec.pod_count - 1)) + 1
    if len(spec.name) > longest:
        yield Problem(
            "name",
            (
                f"The name must have at most {longest} characters on this cluster; it has "
                f"{len(spec.name)}."
            ),
        )


def _find_reserved_variables(spec: Spec) -> Iterator[Problem]:
    """Yield the person's environment variables that Trainer overwrites."""
    reserved = spec.framework.adapter.runtime_variables if spec.framework else frozenset()
    for index, variable in enumerate(spec.setup.environment.variables):
        if variable.name in reserved:
            yield Problem(
                f"setup.environment.variables.{index}.name",
                f"The environment variable {variable.name} is set by Kubeflow Trainer, which this "
                "cluster runs TrainJobs with, and cannot be chosen. Leave it out.",
            )


def _describe_remedy(component: str) -> str:
    return f"Leave it out, or ask the cluster's administrator to install {component}."


def _find_unsupported(spec: Spec) -> Iterator[tuple[str, str]]:
    if spec.has_master and spec.master != UNCHANGED:
        yield "master", "Another setup of the master"
    yield from _find_unsupported_lifecycle(spec.lifecycle)
    yield from _find_unsupported_setup(spec.setup)


def _find_unsupported_lifecycle(lifecycle: Lifecycle) -> Iterator[tuple[str, str]]:
    optional_fields: tuple[tuple[str, str, Any], ...] = (
        ("restart_policy", "A restart policy", lifecycle.restart_policy),
        ("clean_pod_policy", "Which pods are deleted at the end", lifecycle.clean_pod_policy),
    )
    yield from (
        (f"lifecycle.{field}", words)
        for field, words, value in optional_fields
        if value is not None
    )
    if lifecycle.backoff_limit != Lifecycle().backoff_limit:
        yield "lifecycle.backoff_limit", "A backoff limit"


def _find_unsupported_setup(setup: Setup) -> Iterator[tuple[str, str]]:
    if setup.environment.pull_policy is not None:
        yield "setup.environment.pull_policy", "An image pull policy"
    if setup.environment.working_dir:
        yield "setup.environment.working_dir", "A working directory"
    for field in ("host_ipc", "host_network"):
        if getattr(setup.security, field):
            yield f"setup.security.{field}", "The use of the host's IPC or network"
    for index, volume in enumerate(setup.volumes):
        if isinstance(volume, Git | S3):
            yield f"setup.volumes.{index}.path", f"A {volume.noun}"
        elif volume.access is VolumeAccess.RANK_0_WRITES:
            yield f"setup.volumes.{index}.access", "A volume that rank 0 alone may write to"
