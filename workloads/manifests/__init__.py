"""From a Spec to Kubernetes objects: a module for each shape, YAML, and the REST body. Pure.

Also what a cluster cannot do of a spec (`job_targets`).
"""

from workloads.manifests.building import CannotBuild, build_objects
from workloads.manifests.job_targets import (
    choose_target,
    describe_unavailable,
    find_refusals,
)
from workloads.manifests.keys import ATTEMPT, MANAGED_BY, MUSTER, WORKLOAD, build_selector
from workloads.manifests.pod_templates import HIDDEN_KEY
from workloads.manifests.volumes import Images
from workloads.manifests.yaml_text import dump_yaml

__all__ = [
    "ATTEMPT",
    "HIDDEN_KEY",
    "MANAGED_BY",
    "MUSTER",
    "WORKLOAD",
    "CannotBuild",
    "Images",
    "build_objects",
    "build_selector",
    "choose_target",
    "describe_unavailable",
    "dump_yaml",
    "find_refusals",
]
