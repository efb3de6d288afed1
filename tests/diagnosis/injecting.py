"""Puts the rows and objects of a cause into place, and asks for the sentence."""

from collections.abc import Sequence

from django.core.cache import cache

from clusters.models import Node
from projects.models import Project
from tests.cast import Cast, a_spec
from tests.diagnosis.injected import InjectedCause
from tests.workloads.cluster_objects import ClusterObjects
from tests.workloads.table_rows import a_workload
from workloads import journal, queries
from workloads.logbook import log_paths
from workloads.models import Log, Pod, RadarFinding, Workload
from workloads.queries import WorkloadDiagnosis


def create_cause(cast: Cast, cause: InjectedCause, name: str = "train1") -> ClusterObjects:
    """Create the workload of a cause, and the rows around it; nothing of it is in the cluster."""
    if cause.project:
        Project.objects.filter(pk=cast.team_a.pk).update(**cause.project)
        cast.team_a.refresh_from_db()
    for fields in cause.nodes:
        given = {"is_ready": True} | dict(fields)
        Node.objects.create(cluster=cast.cluster, **given)
    for number, each in enumerate(cause.holdings):
        project = cast.team_b if each.is_foreign else cast.team_a
        a_workload(
            project,
            f"{name}-holds-{number}",
            gpus_allocated=each.gpus,
            preemptible=each.preemptible,
        )
        holder = Workload.objects.get(project=project, name=f"{name}-holds-{number}")
        Pod.objects.create(
            workload=holder,
            attempt=1,
            uid=f"{holder.pk}",
            name="h",
            node="n1",
            gpus=each.gpus,
            phase="Running",
        )
    for number in range(cause.others_waiting):
        a_workload(cast.team_a, f"{name}-waits-{number}", status="Pending", gpus_requested=1)
    cache.clear()
    workload = journal.create_workload(
        a_spec(cast.team_a, name, workers=1), project=cast.team_a, user=cast.bob
    )
    return ClusterObjects(workload)


def write_logs(cause: InjectedCause, workload: Workload) -> None:
    """Keep the last lines of pods' logs, as the capture does."""
    for role, lines in cause.logs.items():
        pod = Pod.objects.get(workload=workload, role=role)
        content = "".join(f"2026-11-21T00:00:09.5Z {line}\n" for line in lines).encode()
        path = log_paths.build_log_path(workload.pk, pod.uid, "pytorch", 0)
        Log.objects.create(
            pod=pod, container="pytorch", path=path, size=len(content), state="complete"
        )
        local = log_paths.local_path(path)
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(content)
    if cause.fault:
        RadarFinding.objects.create(
            workload=workload,
            attempt=workload.attempt,
            kind="node",
            key="node n1",
            node="n1",
            rank=1,
            certainty="certain",
            sentence="Node n1 is faulty.",
            proofs=[{"text": cause.fault, "metric": "xid"}],
            began_at=workload.created_at,
        )


def find_diagnosis(cast: Cast, workload: Workload) -> WorkloadDiagnosis | None:
    """Return what a member of the project is told of a workload now."""
    row = Workload.objects.select_related("project", "cluster").get(pk=workload.pk)
    return queries.diagnose_workload(row, cast.bob)


def list_faults(cause: InjectedCause, found: WorkloadDiagnosis | None, name: str) -> Sequence[str]:
    """Return what is wrong with what was said of a cause; nothing where all of it is right."""
    if found is None:
        return ["nothing was said"]
    diagnosis = found.diagnosis
    pairs = (
        ("sentence", diagnosis.sentence, cause.sentence.replace("{name}", name)),
        ("cause", diagnosis.cause, cause.cause),
        ("rank", diagnosis.rank, cause.rank),
        ("confidence", diagnosis.confidence, cause.confidence or diagnosis.confidence),
    )
    faults = [
        f"{what}: {value!r}, not {wanted!r}" for what, value, wanted in pairs if value != wanted
    ]
    if cause.help not in diagnosis.help:
        faults.append(f"help: {diagnosis.help!r} lacks {cause.help!r}")
    return faults
