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
from localkube.controllers.node_lifecycle import NodeLifecycleController
from localkube.controllers.node_pods import NodePods
from localkube.controllers.owned_objects import AHEAD_FACTOR
from localkube.controllers.paddle import Paddle
from localkube.controllers.pod_collection import PodCollector
from localkube.controllers.ports import PortAllocator
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.taint_eviction import TaintEvictionController
from localkube.controllers.tensorflow import TensorFlow
from localkube.controllers.training import TrainingController
from localkube.controllers.xgboost import XGBoost
from localkube.objects import Objects
from localkube.options import DEFAULT_MAX_PODS, DEFAULT_MONITOR_GRACE


def build_controllers(
    objects: Objects,
    root_ca: str = "",
    max_pods: int = DEFAULT_MAX_PODS,
    node_monitor_grace: float = DEFAULT_MONITOR_GRACE,
) -> Sequence[Controller]:
    """Build every controller of the cluster.

    `root_ca` is the PEM text that each namespace gets as ConfigMap kube-root-ca.crt. `max_pods` is
    how many pods all nodes take together; of one job a few times as many are made. A node that
    is silent for `node_monitor_grace` seconds counts as lost.
    """
    pods_ahead = AHEAD_FACTOR * max_pods
    ports = PortAllocator(objects)
    node_pods = NodePods(objects)
    return (
        NamespaceController(objects, root_ca),
        GarbageCollector(objects),
        NodeLifecycleController(objects, node_pods, node_monitor_grace),
        TaintEvictionController(objects, node_pods),
        PodCollector(objects, node_pods),
        EventExpiry(objects),
        JobExpiry(objects),
        JobController(objects, pods_ahead),
        ClaimController(objects),
        *(
            TrainingController(objects, framework, ports, pods_ahead)
            for framework in (PyTorch(), TensorFlow(), XGBoost(), Jax(), Paddle())
        ),
        MpiJobController(objects, pods_ahead),
    )
