"""The controllers: each follows some objects and brings others in line with them, level by level,
through the store alone.

Any of them may be killed at any moment and goes on after the next start from what is stored.
"""

from collections.abc import Sequence

from localkube.controllers.claims import Claims
from localkube.controllers.expiry import EventExpiry, JobExpiry
from localkube.controllers.garbage import Garbage
from localkube.controllers.jax import Jax
from localkube.controllers.jobs import Jobs
from localkube.controllers.loop import Controller
from localkube.controllers.mpi import MpiJobs
from localkube.controllers.namespaces import Namespaces
from localkube.controllers.ports import Ports
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.tensorflow import TensorFlow
from localkube.controllers.training import Training
from localkube.controllers.xgboost import XGBoost
from localkube.objects import Objects


def all_controllers(objects: Objects, root_ca: str = "") -> Sequence[Controller]:
    """Every controller of the cluster. `root_ca` is the PEM text that each namespace gets as
    ConfigMap kube-root-ca.crt.
    """
    ports = Ports(objects)
    return (
        Namespaces(objects, root_ca),
        Garbage(objects),
        EventExpiry(objects),
        JobExpiry(objects),
        Jobs(objects),
        Claims(objects),
        *(
            Training(objects, framework, ports)
            for framework in (PyTorch(), TensorFlow(), XGBoost(), Jax())
        ),
        MpiJobs(objects),
    )
