"""The assets that every installation starts with, in the tenant's scope."""

from decimal import Decimal
from typing import Any

from environments.models import Asset, ComputeResource, Environment
from projects.scopes import TENANT

COMPUTE: dict[str, dict[str, Any]] = {
    "small-fraction": {
        "description": "A tenth of a GPU",
        "gpu_devices": 1,
        "gpu_portion": Decimal("0.1"),
    },
    "half-gpu": {"description": "Half of a GPU", "gpu_devices": 1, "gpu_portion": Decimal("0.5")},
    "one-gpu": {"description": "A whole GPU", "gpu_devices": 1},
    "two-gpus": {"description": "Two whole GPUs", "gpu_devices": 2},
    "cpu-only": {"description": "No GPU", "gpu_devices": 0},
}

DISTRIBUTED = {"architecture": "Distributed", "framework": "PyTorch"}
TENSORFLOW, XGBOOST, JAX, MPI = (
    {"architecture": "Distributed", "framework": framework}
    for framework in ("TF", "XGBoost", "JAX", "MPI")
)
STANDARD = {"architecture": "Standard"}

ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "allreduce": DISTRIBUTED
    | {"image": "muster/allreduce", "description": "Trains a small model over TCP, in seconds"},
    "pytorch-ddp": DISTRIBUTED
    | {"image": "muster/pytorch-ddp", "description": "A small classifier with PyTorch DDP"},
    "elastic": DISTRIBUTED
    | {
        "image": "muster/elastic",
        "description": "A small model whose pods may leave and come; needs no torch",
    },
    "slow-loader": DISTRIBUTED
    | {
        "image": "muster/delivery",
        "description": "A small model on data that is slow to load; needs no torch",
    },
    "slow-loader-pytorch": DISTRIBUTED
    | {
        "image": "muster/delivery-pytorch",
        "description": "Images that are slow to load, with PyTorch",
    },
    "pytorch-mnist": DISTRIBUTED
    | {
        "image": "kubeflow/pytorch-dist-mnist:latest",
        "description": "The tutorial's MNIST, about a minute",
    },
    "tensorflow-workers": TENSORFLOW
    | {
        "image": "muster/tensorflow",
        "description": "A small model with MultiWorkerMirroredStrategy",
    },
    "xgboost-collective": XGBOOST
    | {"image": "muster/xgboost", "description": "Trees that all ranks build together"},
    "jax-psum": JAX
    | {"image": "muster/jax", "description": "A small model whose processes average with psum"},
    "mpi-allreduce": MPI
    | {"image": "muster/mpi", "description": "A small model whose ranks average with mpi4py"},
    "allreduce-single": STANDARD
    | {"image": "muster/allreduce", "description": "Trains a small model in one pod, in seconds"},
    "mnist-single": STANDARD
    | {
        "image": "kubeflow/pytorch-dist-mnist:latest",
        "description": "The tutorial's MNIST in one pod",
    },
}


def ensure_builtin_assets() -> int:
    """Create the missing built-in assets and return how many; existing ones stay as they are."""
    return sum(
        _create_missing(ComputeResource, name, values) for name, values in COMPUTE.items()
    ) + sum(_create_missing(Environment, name, values) for name, values in ENVIRONMENTS.items())


def _create_missing(model: type[Asset], name: str, values: dict[str, Any]) -> bool:
    outcome: tuple[Asset, bool] = model.objects.get_or_create(
        # The whole scope: departments and clusters may have assets of the same names.
        name=name,
        **TENANT.columns,
        defaults=values | {"is_built_in": True},
    )
    return outcome[1]
