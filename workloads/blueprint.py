"""The objects that a submission is to be in its cluster: one way for the step that makes them and
for the pages that show them.
"""

from django.conf import settings

from clusters.models import Cluster
from environments import cluster_secrets
from projects.models import Project
from workloads import placing
from workloads.manifests import Images, build
from workloads.models import Workload
from workloads.observed import Object
from workloads.specs import Spec, from_json

UNKNOWN_ID = "00000000-0000-0000-0000-000000000000"
"""Stands in objects that are only shown: a workload has no id before it is submitted."""


def of_workload(workload: Workload) -> list[Object]:
    """The objects of a workload's current attempt, the job last. Two queries. Raises BadSpec and
    CannotBuild.
    """
    return _of(
        from_json(workload.spec),
        workload.project,
        workload.cluster,
        workload_id=str(workload.pk),
        attempt=workload.attempt,
        job_kind=workload.job_kind,
    )


def of_spec(spec: Spec, project: Project) -> list[Object]:
    """The objects that a spec without problems would become in a project, the job last. Two
    queries. Raises CannotBuild.
    """
    return _of(spec, project, project.cluster, workload_id=UNKNOWN_ID)


def _of(
    spec: Spec,
    project: Project,
    cluster: Cluster,
    *,
    workload_id: str,
    attempt: int = 1,
    job_kind: str = "",
) -> list[Object]:
    return build(
        spec,
        workload_id=workload_id,
        attempt=attempt,
        capabilities=cluster.can,
        images=Images(git=settings.OPTIONS.git_image, s3=settings.OPTIONS.s3_image),
        job_kind=job_kind,
        pull_secrets=cluster_secrets.pull_names(project),
        pools=placing.pools_of(project),
    )
