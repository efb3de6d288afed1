"""A workload with an eventful past, as its rows keep it: for tests and pictures of timelines."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from projects.models import Project, User
from tests.cast import a_spec
from tests.workloads import objects
from tests.workloads.radar_rows import build_finding
from tests.workloads.table_rows import a_workload
from workloads.models import (
    Attempt,
    Event,
    Log,
    Pod,
    RadarFinding,
    RankProgress,
    TrainingProgress,
    Workload,
)
from workloads.radar import Finding, Kind
from workloads.specs import Compute, ElasticSettings, Environment, Gpus, Setup, encode_spec
from workloads.training_progress import RankState

RANKS = 6
MINUTES = 150


class EventfulWorkload:
    """Two attempts: the first failed; the second lost two pods to another project and grew back.

    `others` is the project that got them.
    """

    def __init__(self, project: Project, others: Project, by: User, name: str = "llama") -> None:
        self.now = timezone.now()
        self.begin = self.now - timedelta(minutes=MINUTES)
        self.others, self.by = others, by
        setup = Setup(
            environment=Environment(image="muster/elastic"), compute=Compute(gpus=Gpus(devices=1))
        )
        spec = a_spec(project, name, setup=setup, workers=5, elastic=ElasticSettings(4, 6))
        self.workload = a_workload(
            project,
            name,
            by=by,
            spec=encode_spec(spec),
            min_pods=4,
            max_pods=6,
            requested_pods=RANKS,
            running_pods=RANKS,
            attempt=2,
            created_at=self.begin,
            status_at=self.get_moment(112),
            started_at=self.get_moment(46),
        )
        self._add_statuses()
        self._add_first_attempt()
        self._add_second_attempt()
        self._add_findings()
        self._add_progress()

    def get_moment(self, minutes: float) -> datetime:
        """Return the moment so many minutes after the submission."""
        return self.begin + timedelta(minutes=minutes)

    def _add_statuses(self) -> None:
        status = ""
        for minutes, new, attempt, text in (
            (0, "Creating", 1, "It was submitted."),
            (0.4, "Pending", 1, ""),
            (6, "Initializing", 1, "0 of 6 pods are up."),
            (8, "Running", 1, ""),
            (34, "Failed", 1, "PyTorchJob llama is failed because 1 Worker replica(s) failed."),
            (41, "Resuming", 2, "It was run again."),
            (41.5, "Pending", 2, ""),
            (44, "Initializing", 2, ""),
            (46, "Running", 2, ""),
            (82, "Degraded", 2, "4 of 6 pods are up."),
            (84, "Running", 2, "4 of 6 pods are up; it runs with 4 or more."),
            (110, "Degraded", 2, "5 of 6 pods are up."),
            (112, "Running", 2, ""),
        ):
            by = self.by if new in ("Creating", "Resuming") else None
            self._add_event(minutes, attempt, old=status, new=new, text=text, by=by)
            status = new

    def _add_event(self, minutes: float, attempt: int, **fields: Any) -> None:
        given = {"kind": "status", "attempt": attempt, "at": self.get_moment(minutes)}
        Event.objects.create(workload=self.workload, **(given | fields))

    def _add_first_attempt(self) -> None:
        Attempt.objects.filter(workload=self.workload).delete()
        Attempt.objects.create(
            workload=self.workload,
            number=1,
            status="Failed",
            reason="PyTorchJob llama is failed because 1 Worker replica(s) failed.",
            requested_by=self.by,
            requested_at=self.begin,
            started_at=self.get_moment(8),
            ended_at=self.get_moment(34),
        )
        Attempt.objects.create(
            workload=self.workload,
            number=2,
            status="Running",
            requested_by=self.by,
            requested_at=self.get_moment(41),
            started_at=self.get_moment(46),
        )
        for rank in range(RANKS):
            data = objects.ended_pod("worker", rank, code=1 if rank == 3 else 143)
            self.add_pod(
                rank,
                1,
                (0.5, 6 + rank / 6, 7 + rank / 5, 33.6 if rank == 3 else 34.2),
                data=data,
                phase="Failed" if rank == 3 else "Running",
                status="Error" if rank == 3 else "Running",
                reason="exit code 1" if rank == 3 else "",
                standing="failed" if rank == 3 else "ending",
            )

    def add_pod(
        self, rank: int, attempt: int, minutes: tuple[float, ...], data: Any = None, **fields: Any
    ) -> Pod:
        """Create a pod: when it was made, had a node and began, and perhaps when it ended."""
        made, node, ran, *end = map(self.get_moment, minutes)
        data = data or objects.pod("worker", rank)
        for each in data["status"]["containerStatuses"]:
            state = each["state"].get("terminated", each["state"].setdefault("running", {}))
            state["startedAt"] = ran.isoformat()
        role, index = ("master", 0) if rank == 0 else ("worker", rank - 1)
        given = {
            "name": f"{self.workload.name}-{role}-{index}",
            "uid": f"{self.workload.pk}-{attempt}-{rank}-{minutes[0]}",
            "role": role,
            "index": index,
            "rank": rank,
            "attempt": attempt,
            "phase": "Running",
            "status": "Running",
            "standing": "ready",
            "node": f"gpu-node-{rank // 2}",
            "created_at": made,
            "started_at": node,
            "ready_at": None if end else ran,
            "vanished_at": end[0] if end else None,
            "data": data,
        }
        return Pod.objects.create(workload=self.workload, **(given | fields))

    def _add_second_attempt(self) -> None:
        taken = {"standing": "ending", "is_preempted": True}
        for rank in range(RANKS):
            if rank < 4:
                self._add_lasting_pod(rank)
            else:
                self.add_pod(rank, 2, (41.6, 44, 45, 81.5 + rank / 10), **taken)
        self.add_pod(4, 2, (95, 109, 110.4))
        self.add_pod(5, 2, (95, 110, 111.6))
        cause = {
            "action": "reclaim",
            "pods": 2,
            "gpus": "2",
            "namespace": self.others.namespace,
            "pods_before": 6,
            "is_open": False,
            "pods_after": 4,
            "resumed_step": 410,
            "lost_steps": 3,
            "lost_seconds": 6.2,
        }
        self._add_event(82, 2, kind="scale", reason="Reclaimed", is_warning=True, cause=cause)
        self._add_event(
            109,
            2,
            kind="scale",
            reason="ScaledUp",
            text="It grows from 4 to 6 pods: there is room.",
        )

    def _add_lasting_pod(self, rank: int) -> None:
        is_restarted = rank == 2
        data = objects.pod("worker", rank, restarts=2 if is_restarted else 0)
        pod = self.add_pod(rank, 2, (41.6, 44, 45), data, restarts=2 if is_restarted else 0)
        if not is_restarted:
            return
        data["status"]["containerStatuses"][0]["lastState"] = {
            "terminated": {
                "exitCode": 137,
                "reason": "OOMKilled",
                "finishedAt": self.get_moment(71).isoformat(),
            }
        }
        Pod.objects.filter(pk=pod.pk).update(data=data)
        Log.objects.create(
            pod=pod, container="pytorch", run=1, state="complete", first_at=self.get_moment(58)
        )

    def _add_findings(self) -> None:
        for kind, rank, begin, end, sentence in (
            (Kind.STRAGGLER, 5, 55, 70, "Rank 5 needs 1.8 times as long for a step as the others."),
            (Kind.STRAGGLER, 1, 62, 76, "Rank 1 needs 1.4 times as long for a step as the others."),
            (Kind.HANG, 3, 131, None, "Rank 3 has said nothing for 19 min; the 5 others wait."),
        ):
            self._add_finding(
                build_finding(kind, sentence=sentence, rank=rank),
                self.get_moment(begin),
                None if end is None else self.get_moment(end),
            )

    def _add_finding(self, finding: Finding, began_at: datetime, ended_at: datetime | None) -> None:
        RadarFinding.objects.create(
            workload=self.workload,
            attempt=2,
            kind=finding.kind.value,
            key=f"{finding.key}{finding.rank}",
            rank=finding.rank,
            certainty=finding.certainty.value,
            sentence=finding.sentence,
            help=finding.help,
            began_at=began_at,
            found_at=began_at + timedelta(minutes=1),
            seen_at=ended_at or self.now,
            ended_at=ended_at,
        )

    def _add_progress(self) -> None:
        state = RankState(step=1290, total=5000, at=self.get_moment(131).timestamp())
        state.checkpoints, state.checkpoint_gaps = 9, [600.0, 600.0, 610.0, 605.0, 600.0]
        state.checkpoint_at = self.get_moment(128).timestamp()
        values = {"attempt": 2, "at": self.get_moment(131), "state": encode_state(state)}
        TrainingProgress.objects.create(
            workload=self.workload, rank=0, step=1290, total=5000, **values
        )
        state = RankState(step=1285, total=5000, at=self.get_moment(130).timestamp())
        values = {"attempt": 2, "at": self.get_moment(130), "state": encode_state(state)}
        RankProgress.objects.create(workload=self.workload, rank=3, pod="llama-worker-2", **values)


def encode_state(state: RankState) -> dict[str, Any]:
    """Return the state of a rank as its row keeps it."""
    names = ("step", "total", "at", "checkpoints", "checkpoint_at", "checkpoint_gaps")
    return {name: getattr(state, name) for name in names}


def get_workload(workload: Workload) -> Workload:
    """Return the workload as the page of it loads it."""
    related = Workload.objects.select_related("project", "cluster", "progress")
    loaded: Workload = related.get(pk=workload.pk)
    return loaded
