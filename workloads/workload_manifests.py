"""The cluster objects of a submission, for the launch step and for the pages that show them."""

from dataclasses import replace

from django.conf import settings
from django.utils.crypto import salted_hmac

from clusters.models import Cluster
from environments import cluster_secrets
from projects.models import Project
from workloads import placement_rules
from workloads.kube_objects import Object
from workloads.manifests import HIDDEN_KEY, Images, build_objects
from workloads.manifests.placement import NodePools
from workloads.models import Workload
from workloads.specs import Spec, decode_spec

UNKNOWN_ID = "00000000-0000-0000-0000-000000000000"
"""Id in objects that are only shown: a workload has none before it is submitted."""


def build_for_launch(workload: Workload) -> list[Object]:
    """Build the objects of a workload's current attempt for its cluster, secrets included.

    Two queries. Raises UnreadableSpec and CannotBuild.
    """
    return build_for_workload(workload, _derive_delivery_key(workload))


def build_for_workload(workload: Workload, delivery_key: str = HIDDEN_KEY) -> list[Object]:
    """Build the objects of a workload's current attempt, the job last.

    Without the key of data delivery they are only to be shown. Two queries. Raises UnreadableSpec
    and CannotBuild.
    """
    pools = placement_rules.load_pools(workload.project)
    return _build(
        decode_spec(workload.spec),
        workload.project,
        workload.cluster,
        replace(pools, excluded_nodes=tuple(workload.excluded_nodes)),
        workload_id=str(workload.pk),
        attempt=workload.attempt,
        job_kind=workload.job_kind,
        delivery_key=delivery_key,
    )


def build_for_spec(spec: Spec, project: Project, pools: NodePools) -> list[Object]:
    """Build the objects that a valid spec would become in a project, the job last.

    `pools` are those of its cluster. One query. Raises CannotBuild.
    """
    return _build(spec, project, project.cluster, pools, workload_id=UNKNOWN_ID)


def _build(
    spec: Spec,
    project: Project,
    cluster: Cluster,
    pools: NodePools,
    *,
    workload_id: str,
    attempt: int = 1,
    job_kind: str = "",
    delivery_key: str = HIDDEN_KEY,
) -> list[Object]:
    return build_objects(
        spec,
        workload_id=workload_id,
        attempt=attempt,
        capabilities=cluster.can,
        images=Images(git=settings.OPTIONS.git_image, s3=settings.OPTIONS.s3_image),
        job_kind=job_kind,
        pull_secrets=cluster_secrets.list_pull_secret_names(project),
        pools=pools,
        delivery_key=delivery_key,
    )


def _derive_delivery_key(workload: Workload) -> str:
    """Return the secret of an attempt's ranks and data workers: 64 hex digits.

    Derived, so that it is stored nowhere, and each try of the launch builds the same objects.
    """
    value = f"{workload.pk}/{workload.attempt}"
    return salted_hmac("muster.data-delivery", value, algorithm="sha256").hexdigest()
