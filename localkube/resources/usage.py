"""metrics.k8s.io: measured usage of pods and of the node.

Nothing of it is stored; the API builds the objects when asked.
"""

from localkube.resources.resource import Column, Resource
from localkube.resources.table_cells import AGE, NAME

GROUP = "metrics.k8s.io"
VERBS = ("get", "list")

_WINDOW = Column("Window", lambda obj: obj.get("window", ""))

POD_METRICS = Resource(
    GROUP,
    "v1beta1",
    "pods",
    "PodMetrics",
    columns=(NAME, _WINDOW, AGE),
    verbs=VERBS,
    generation=False,
)
NODE_METRICS = Resource(
    GROUP,
    "v1beta1",
    "nodes",
    "NodeMetrics",
    columns=(NAME, _WINDOW, AGE),
    namespaced=False,
    verbs=VERBS,
    generation=False,
)
