"""From a Spec to Kubernetes objects: a module for each framework, YAML, and the REST body. Pure.

Also what a cluster cannot do of a spec (`job_targets`).
"""

from workloads.manifests.building import CannotBuild, build_objects
from workloads.manifests.job_targets import (
    TARGETS,
    JobTarget,
    choose_target,
    describe_unavailable,
    find_refusals,
    get_target,
)
from workloads.manifests.keys import ATTEMPT, MANAGED_BY, MUSTER, WORKLOAD, build_selector
from workloads.manifests.rest_body import build_rest_body, get_rest_path
from workloads.manifests.volumes import Images
from workloads.manifests.yaml_text import dump_yaml

__all__ = [
    "ATTEMPT",
    "MANAGED_BY",
    "MUSTER",
    "TARGETS",
    "WORKLOAD",
    "CannotBuild",
    "Images",
    "JobTarget",
    "build_objects",
    "build_rest_body",
    "build_selector",
    "choose_target",
    "describe_unavailable",
    "dump_yaml",
    "find_refusals",
    "get_rest_path",
    "get_target",
]
