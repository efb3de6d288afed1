"""The kind of object that a spec becomes on a cluster, and what that cluster cannot do.

The answers come from the cluster's discovery.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusters.capabilities import Capabilities
from workloads.manifests import trainjob
from workloads.specs import Framework, Problem, Spec


@dataclass(frozen=True, slots=True)
class JobTarget:
    """A kind of the API that represents a workload.

    `operator` is what has to be installed for it, as its makers call it.
    """

    api_version: str
    kind: str
    plural: str
    operator: str

    @property
    def path(self) -> str:
        """The kind as `Capabilities.served` has it."""
        return f"{self.api_version}/{self.plural}"

    @property
    def job_kind(self) -> str:
        """The kind as a workload's row has it: "kubeflow.org/v1/PyTorchJob"."""
        return f"{self.api_version}/{self.kind}"


TRAINING_OPERATOR = "the Kubeflow training operator (v1)"
MPI_OPERATOR = "the MPI operator (v2beta1)"
TRAINER = "Kubeflow Trainer v2"

BATCH_JOB = JobTarget("batch/v1", "Job", "jobs", "Kubernetes")
TRAINJOB = JobTarget("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs", TRAINER)
TARGETS: Mapping[Framework, Sequence[JobTarget]] = {
    Framework.PYTORCH: (
        JobTarget("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", TRAINING_OPERATOR),
        TRAINJOB,
    ),
    Framework.TENSORFLOW: (JobTarget("kubeflow.org/v1", "TFJob", "tfjobs", TRAINING_OPERATOR),),
    Framework.MPI: (
        JobTarget("kubeflow.org/v2beta1", "MPIJob", "mpijobs", MPI_OPERATOR),
        JobTarget("kubeflow.org/v1", "MPIJob", "mpijobs", TRAINING_OPERATOR),
    ),
    Framework.XGBOOST: (
        JobTarget("kubeflow.org/v1", "XGBoostJob", "xgboostjobs", TRAINING_OPERATOR),
        TRAINJOB,
    ),
    Framework.JAX: (JobTarget("kubeflow.org/v1", "JAXJob", "jaxjobs", TRAINING_OPERATOR), TRAINJOB),
}
"""Best first: a TrainJob has fewer fields, so it is used only where nothing else is served.

MPI never uses it: its launcher is a replicated job of its own in the runtime, which may count as a
node or not, and whose pods would come without our labels.
"""

_BY_KIND = {
    each.job_kind: each
    for each in (BATCH_JOB, *(each for targets in TARGETS.values() for each in targets))
}


def choose_target(spec: Spec, capabilities: Capabilities) -> JobTarget:
    """Return the kind that this spec becomes on the cluster.

    Where the cluster serves none, the best one, which `find_refusals` then reports.
    """
    if not spec.is_distributed or spec.framework is None:
        return BATCH_JOB
    return find_available_target(spec.framework, capabilities) or TARGETS[spec.framework][0]


def find_available_target(framework: Framework, capabilities: Capabilities) -> JobTarget | None:
    """Return the kind that a framework's workloads become; None where they cannot run."""
    for each in TARGETS[framework]:
        if capabilities.serves(each.path) and (
            each is not TRAINJOB or trainjob.find_runtime(framework, capabilities) is not None
        ):
            return each
    return None


def describe_unavailable(framework: Framework, capabilities: Capabilities) -> str:
    """Describe why a framework cannot run there and what to do; "" where it can."""
    if find_available_target(framework, capabilities) is not None:
        return ""
    best_target = TARGETS[framework][0]
    if TRAINJOB in TARGETS[framework] and capabilities.serves(TRAINJOB.path):
        missing = f"a runtime for {framework.label}" + (
            " that names the KAI scheduler" if capabilities.has_kai else ""
        )
        return (
            f"The cluster has {TRAINER} without {missing}. Ask its administrator to make one, or "
            f"to install {best_target.operator}."
        )
    return (
        f"The cluster does not serve {best_target.kind} objects. Ask its administrator to install "
        f"{best_target.operator}."
    )


def get_target(job_kind: str) -> JobTarget:
    """Return the target that a workload's row names.

    Raises KeyError for one that this version does not know.
    """
    return _BY_KIND[job_kind]


def find_refusals(spec: Spec, capabilities: Capabilities) -> Sequence[Problem]:
    """Return what a cluster cannot do of a valid spec, each with what would work.

    Empty for a cluster whose discovery was never read.
    """
    return tuple(_iterate_refusals(spec, capabilities))


def _iterate_refusals(spec: Spec, capabilities: Capabilities) -> Iterator[Problem]:
    if (
        spec.is_distributed
        and spec.framework is not None
        and (why := describe_unavailable(spec.framework, capabilities))
    ):
        yield Problem("framework", why)
        return
    yield from _find_gpu_refusals(spec, capabilities)
    if choose_target(spec, capabilities) is TRAINJOB:
        yield from trainjob.find_refusals(spec, capabilities)


def _find_gpu_refusals(spec: Spec, capabilities: Capabilities) -> Iterator[Problem]:
    shared = [("setup", spec.setup)] + ([("master", spec.master_setup)] if spec.has_master else [])
    for prefix, setup in shared:
        gpus = setup.compute.gpus
        if not gpus.is_shared:
            continue
        if not capabilities.has_kai:
            why = "only the KAI scheduler shares devices, and the cluster does not have it"
        elif capabilities.gpu_sharing is False:
            why = "its KAI scheduler has GPU sharing switched off"
        else:
            continue
        field = f"{prefix}.compute.gpus.{'memory' if gpus.memory else 'portion'}"
        yield Problem(
            field,
            (
                f"Parts of a GPU cannot be had on this cluster: {why}. Ask for whole devices, or "
                "choose another cluster."
            ),
        )
        return
