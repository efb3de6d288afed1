"""From a Spec to plain Kubernetes objects, one module a framework; and the same as YAML and as a REST call. Pure: touches nothing."""

from workloads.manifests.building import FRAMEWORKS, CannotBuild, build
from workloads.manifests.keys import ATTEMPT, MANAGED_BY, MUSTER, WORKLOAD, selector
from workloads.manifests.rest import as_rest, rest_path
from workloads.manifests.yaml_text import as_yaml

__all__ = [
    "ATTEMPT",
    "FRAMEWORKS",
    "MANAGED_BY",
    "MUSTER",
    "WORKLOAD",
    "CannotBuild",
    "as_rest",
    "as_yaml",
    "build",
    "rest_path",
    "selector",
]
