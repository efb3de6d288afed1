"""From a Spec to Kubernetes objects, one module a framework; what a cluster refuses; the same as
YAML and as a REST call. Pure.
"""

from workloads.manifests.building import CannotBuild, build
from workloads.manifests.keys import ATTEMPT, MANAGED_BY, MUSTER, WORKLOAD, selector
from workloads.manifests.rest import as_rest, rest_path
from workloads.manifests.serving import TARGETS, Target, of_kind, refusals, target, unavailable
from workloads.manifests.volumes import Images
from workloads.manifests.yaml_text import as_yaml

__all__ = [
    "ATTEMPT",
    "MANAGED_BY",
    "MUSTER",
    "TARGETS",
    "WORKLOAD",
    "CannotBuild",
    "Images",
    "Target",
    "as_rest",
    "as_yaml",
    "build",
    "of_kind",
    "refusals",
    "rest_path",
    "selector",
    "target",
    "unavailable",
]
