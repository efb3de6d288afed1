"""The environment variables by which ranks and data workers of a workload find each other."""

from collections.abc import Mapping
from enum import StrEnum

from workloads.kube_objects import Object
from workloads.manifests import keys
from workloads.specs import Spec
from workloads.specs.delivery_problems import SPILL_PATH

PORT = 7077
KEY_NAME = "key"
"""The name of the key in the Secret, and of nothing else."""
PREFIX = "MUSTER_DELIVERY_"


class DeliveryRole(StrEnum):
    """What a pod is to the delivery of data."""

    RANK = "rank"
    WORKER = "worker"


def build_variables(spec: Spec, attempt: int, role: DeliveryRole) -> list[Object]:
    """Build the variables of a container with this role; [] for a workload without data workers.

    They take the place of the person's own of the same names: with others nobody would find the
    data workers, or believe them.
    """
    delivery = spec.data_delivery
    if delivery is None:
        return []
    name = keys.data_workers_name(spec.name)
    plain = {
        "ROLE": role.value,
        "WORKERS": ",".join(f"{name}-{each}.{name}:{PORT}" for each in range(delivery.workers)),
        "UNITS": str(delivery.units),
        "WORLD": str(spec.training_processes),
        "ATTEMPT": str(attempt),
    }
    if role is DeliveryRole.WORKER:
        plain["SPILL"] = SPILL_PATH
    return [
        *({"name": f"{PREFIX}{key}", "value": value} for key, value in plain.items()),
        {
            "name": f"{PREFIX}KEY",
            "valueFrom": {"secretKeyRef": {"name": name, "key": KEY_NAME}},
        },
    ]


def build_launcher_variables(spec: Spec, attempt: int) -> Mapping[str, str]:
    """Build the variable by which Open MPI hands these variables on to the ranks.

    The ranks are started over SSH, where they see none of their container's variables. The other
    implementations of MPI hand all of the launcher's on.
    """
    names = [each["name"] for each in build_variables(spec, attempt, DeliveryRole.RANK)]
    return {"OMPI_MCA_mca_base_env_list": ";".join(names)} if names else {}
