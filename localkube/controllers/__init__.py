"""The controllers of the embedded cluster. Each watches some objects and reconciles others.

Controllers communicate through the store alone. Any of them may be killed at any moment; after the
next start it continues from what is stored.
"""

from collections.abc import Sequence

from localkube.controllers.claims import ClaimController
from localkube.controllers.expiry import EventExpiry, JobExpiry
from localkube.controllers.garbage import GarbageCollector
from localkube.controllers.jax import Jax
from localkube.controllers.jobs import JobController
from localkube.controllers.loop import Controller
from localkube.controllers.mpi import MpiJobController
from localkube.controllers.namespaces import NamespaceController
from localkube.controllers.paddle import Paddle
from localkube.controllers.ports import PortAllocator
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.tensorflow import TensorFlow
from localkube.controllers.training import TrainingController
from localkube.controllers.xgboost import XGBoost
from localkube.objects import Objects


def build_controllers(objects: Objects, root_ca: str = "") -> Sequence[Controller]:
    """Build every controller of the cluster.

    `root_ca` is the PEM text that each namespace gets as ConfigMap kube-root-ca.crt.
    """
    ports = PortAllocator(objects)
    return (
        NamespaceController(objects, root_ca),
        GarbageCollector(objects),
        EventExpiry(objects),
        JobExpiry(objects),
        JobController(objects),
        ClaimController(objects),
        *(
            TrainingController(objects, framework, ports)
            for framework in (PyTorch(), TensorFlow(), XGBoost(), Jax(), Paddle())
        ),
        MpiJobController(objects),
    )
