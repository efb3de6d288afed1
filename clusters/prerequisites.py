"""The prerequisites of a cluster: what everything that Muster offers needs there, whether it is
there, and the command that installs it. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from clusters.capabilities import Capabilities
from clusters.findings import Findings
from clusters.job_kinds import ADAPTERS, TRAINJOBS
from clusters.job_kinds.adapter import TRAINING_OPERATOR
from clusters.job_kinds.mpi import MPIJOBS, MPIJOBS_V2
from clusters.kube.resources import (
    CLUSTERTRAININGRUNTIMES,
    NODE_METRICS,
    PODGROUPS,
    QUEUES,
    Resource,
)
from clusters.project_manifests import PRIORITY_CLASSES
from console.texts import join_words

KAI = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"
INSTALL_KAI = (
    f"helm upgrade -i kai-scheduler {KAI} -n kai-scheduler --create-namespace --version v0.17.0 "
    "--set global.gpuSharing=true"
)
# An upgrade only switches sharing on: the version stays the installed one.
SHARE_GPUS = (
    "helm list -n kai-scheduler\n"
    f"helm upgrade kai-scheduler {KAI} -n kai-scheduler --version VERSION --reuse-values --set "
    "global.gpuSharing=true"
)
INSTALL_OPERATOR = (
    "kubectl apply --server-side -k "
    '"github.com/kubeflow/trainer.git/manifests/overlays/standalone?ref=v1.9.4"'
)
INSTALL_MPI = (
    "kubectl apply --server-side -f "
    "https://raw.githubusercontent.com/kubeflow/mpi-operator/v0.8.0/deploy/v2beta1/mpi-operator.yaml"
)
INSTALL_TRAINER = (
    "kubectl apply --server-side -k "
    '"github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0"'
)
INSTALL_RUNTIMES = (
    "kubectl apply --server-side -k "
    '"github.com/kubeflow/trainer.git/manifests/overlays/runtimes?ref=v2.3.0"'
)
INSTALL_METRICS = (
    "kubectl apply -f "
    "https://github.com/kubernetes-sigs/metrics-server/releases/latest/download/components.yaml"
)
INSTALL_GPUS = (
    "helm upgrade -i gpu-operator gpu-operator --repo https://helm.ngc.nvidia.com/nvidia -n "
    "gpu-operator --create-namespace"
)
OPERATOR_KINDS = {
    best.kind: best
    for best in (each.kinds[0] for each in ADAPTERS.values())
    if best.operator == TRAINING_OPERATOR
}
"""The kinds for which nothing is better than the training operator."""


class PrerequisiteState(StrEnum):
    """Whether a prerequisite is fulfilled."""

    HERE = "here"
    MISSING = "missing"
    UNNEEDED = "unneeded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """One prerequisite: a sentence on what is there or missing, and the command that installs it,
    "" where none does.
    """

    title: str
    state: PrerequisiteState
    text: str
    command: str = ""
    is_required: bool = False
    """Whether nothing works without it; the others make more possible."""


def is_served(can: Capabilities, resource: Resource) -> bool:
    """Return whether the cluster serves this kind; True while nothing is known."""
    return can.serves(resource.key)


def is_missing_required(can: Capabilities) -> bool:
    """Return whether the cluster is known to lack a required prerequisite."""
    return can.known and any(
        each.is_required and each.state is PrerequisiteState.MISSING
        for each in (_check_kai(can), _check_operators(can))
    )


def list_prerequisites(
    can: Capabilities, findings: Findings, gpus: Sequence[bool] = ()
) -> list[Prerequisite]:
    """Return all prerequisites, the required first; nothing for a cluster that was never probed.

    `gpus` says of each node whether it offers devices.
    """
    if not can.known:
        return []
    listed = [
        _check_kai(can),
        _check_operators(can),
        _check_mpi(can),
        _check_trainer(can),
        _check_gpu_sharing(can, findings),
        _check_priority_classes(can, findings),
    ]
    return [
        *listed,
        *_check_gpu_devices(gpus),
        _check_metrics(can),
        _check_storage_classes(findings),
    ]


def _check_kai(can: Capabilities) -> Prerequisite:
    title = "KAI scheduler: queues, gangs, parts of GPUs"
    missing = [
        f"{each.plural}.{each.group} ({each.version})"
        for each in (QUEUES, PODGROUPS)
        if not is_served(can, each)
    ]
    if not missing:
        return _check_scheduler(can, title)
    text = (
        f"Not served: {' and '.join(missing)}. Without it there are no queues and quotas, and "
        "workloads start pod by pod."
    )
    return Prerequisite(title, PrerequisiteState.MISSING, text, INSTALL_KAI, is_required=True)


def _check_scheduler(can: Capabilities, title: str) -> Prerequisite:
    """Return whether KAI itself is at work where its kinds are served."""
    if can.has_scheduler:
        text = "Queues and pod groups are served, and the scheduler is at work."
        return Prerequisite(title, PrerequisiteState.HERE, text, is_required=True)
    if can.has_scheduler is None:
        text = (
            "Queues and pod groups are served. Whether the scheduler itself runs is not known: "
            "pods may not be listed. It shows when pods wait for it."
        )
        return Prerequisite(title, PrerequisiteState.UNKNOWN, text, is_required=True)
    text = (
        "Queues and pod groups are served, but nobody schedules: no pod of the scheduler runs, its "
        "webhook does not answer, and it has bound no pod or leaves those that name it unnoticed. "
        "Workloads would wait for ever."
    )
    return Prerequisite(title, PrerequisiteState.MISSING, text, INSTALL_KAI, is_required=True)


def _check_operators(can: Capabilities) -> Prerequisite:
    """Return the state of the training operator.

    It is required unless another operator runs distributed workloads; the text names the kinds that
    are missing.
    """
    title = "Training operator"
    missing = [
        f"{kind} ({each.api_version})"
        for kind, each in OPERATOR_KINDS.items()
        if not is_served(can, each)
    ]
    if not missing:
        return Prerequisite(
            title,
            PrerequisiteState.HERE,
            f"{join_words(list(OPERATOR_KINDS))} are served.",
            is_required=True,
        )
    if len(missing) < len(OPERATOR_KINDS):
        return Prerequisite(
            title,
            PrerequisiteState.MISSING,
            f"Not served: {join_words(missing)}. Newer releases bring them.",
            INSTALL_OPERATOR,
        )
    others = any(is_served(can, kind) for each in ADAPTERS.values() for kind in each.kinds)
    instead = (
        "Distributed workloads use what else is there."
        if others
        else "Without one no distributed workload can run."
    )
    if is_served(can, MPIJOBS_V2):
        instead += (
            " Leave out its MPIJob (v1), which cannot be beside the MPI operator's, and name the "
            "other kinds with --enable-scheme."
        )
    return Prerequisite(
        title,
        PrerequisiteState.MISSING,
        f"Not served: {join_words(missing)}. {instead}",
        INSTALL_OPERATOR,
        is_required=not others,
    )


def _check_mpi(can: Capabilities) -> Prerequisite:
    title = "MPI operator"
    if is_served(can, MPIJOBS_V2):
        return Prerequisite(title, PrerequisiteState.HERE, "MPIJob is served as v2beta1.")
    if is_served(can, MPIJOBS):
        return Prerequisite(
            title,
            PrerequisiteState.HERE,
            (
                "MPIJob is served as v1, by the training operator. A cluster has either this one "
                "or v2beta1."
            ),
        )
    return Prerequisite(
        title, PrerequisiteState.MISSING, "Not served: MPIJob (kubeflow.org/v2beta1).", INSTALL_MPI
    )


def _check_trainer(can: Capabilities) -> Prerequisite:
    title = "Kubeflow Trainer v2"
    operators = any(is_served(can, each) for each in OPERATOR_KINDS.values())
    if not is_served(can, TRAINJOBS) or not is_served(can, CLUSTERTRAININGRUNTIMES):
        text = "Not served: TrainJob (trainer.kubeflow.org/v1alpha1)."
        if operators:
            return Prerequisite(
                title,
                PrerequisiteState.UNNEEDED,
                f"{text} It is not needed beside the training operator.",
            )
        return Prerequisite(
            title,
            PrerequisiteState.MISSING,
            f"{text} It can stand in for the training operator.",
            INSTALL_TRAINER,
        )
    if not can.runtimes:
        return Prerequisite(
            title,
            PrerequisiteState.MISSING,
            "TrainJob is served, but there is no ClusterTrainingRuntime.",
            INSTALL_RUNTIMES,
        )
    names = [f"{each.name} ({each.framework or 'no framework'})" for each in can.runtimes]
    return Prerequisite(
        title,
        PrerequisiteState.HERE,
        f"TrainJob is served, with the runtimes {join_words(names)}.",
    )


def _check_gpu_sharing(can: Capabilities, findings: Findings) -> Prerequisite:
    title = "GPU sharing"
    if not can.has_kai or can.has_scheduler is False:
        return Prerequisite(
            title,
            PrerequisiteState.MISSING,
            "Only the KAI scheduler shares devices, and it is not there.",
            INSTALL_KAI,
        )
    if can.gpu_sharing:
        return Prerequisite(
            title, PrerequisiteState.HERE, "A pod that asks for a part of a GPU is accepted."
        )
    if can.gpu_sharing is None:
        why = findings.unanswered.get("gpu_sharing", "no pod could be tried")
        return Prerequisite(
            title, PrerequisiteState.UNKNOWN, f"It could not be found out: {why}.", SHARE_GPUS
        )
    return Prerequisite(
        title,
        PrerequisiteState.MISSING,
        "KAI refuses pods that ask for a part of a GPU: sharing is off. VERSION is the one listed.",
        SHARE_GPUS,
    )


def _check_priority_classes(can: Capabilities, findings: Findings) -> Prerequisite:
    title = "Priority classes"
    if why := findings.unanswered.get("priority_classes"):
        return Prerequisite(title, PrerequisiteState.UNKNOWN, f"They could not be listed: {why}.")
    missing = [name for name in PRIORITY_CLASSES if name not in can.priority_classes]
    if not missing:
        return Prerequisite(
            title, PrerequisiteState.HERE, f"{join_words(list(PRIORITY_CLASSES))} are there."
        )
    commands = "\n".join(
        f"kubectl create priorityclass {name} --value={PRIORITY_CLASSES[name]}" for name in missing
    )
    text = (
        f"Missing: {join_words(missing)}. Muster makes them with a project's namespace, where it "
        "may."
    )
    return Prerequisite(title, PrerequisiteState.MISSING, text, commands)


def _check_gpu_devices(gpus: Sequence[bool]) -> Iterator[Prerequisite]:
    title = "GPU devices"
    if not gpus:
        return
    offering = sum(gpus)
    nodes = f"{len(gpus)} node" if len(gpus) == 1 else f"{len(gpus)} nodes"
    if offering:
        verb = "offers" if offering == 1 else "offer"
        yield Prerequisite(
            title, PrerequisiteState.HERE, f"{offering} of {nodes} {verb} nvidia.com/gpu."
        )
    else:
        yield Prerequisite(
            title,
            PrerequisiteState.MISSING,
            f"None of {nodes} offers nvidia.com/gpu: only CPU work can run.",
            INSTALL_GPUS,
        )


def _check_metrics(can: Capabilities) -> Prerequisite:
    title = "Metrics API"
    if is_served(can, NODE_METRICS):
        return Prerequisite(
            title,
            PrerequisiteState.HERE,
            "CPU and memory in use are served (metrics.k8s.io/v1beta1).",
        )
    return Prerequisite(
        title,
        PrerequisiteState.MISSING,
        "Not served: metrics.k8s.io/v1beta1. CPU and memory in use are not known.",
        INSTALL_METRICS,
    )


def _check_storage_classes(findings: Findings) -> Prerequisite:
    title = "Storage classes"
    if why := findings.unanswered.get("storage_classes"):
        return Prerequisite(title, PrerequisiteState.UNKNOWN, f"They could not be listed: {why}.")
    if not findings.storage_classes:
        return Prerequisite(
            title,
            PrerequisiteState.MISSING,
            "There is none: new volumes cannot be made. Existing ones and other sources work.",
        )
    names = [
        f"{each.name} (the default)" if each.is_default else each.name
        for each in findings.storage_classes
    ]
    return Prerequisite(title, PrerequisiteState.HERE, f"{join_words(names)}.")
