"""Workloads of every status, with their pods, events and logs, for a lively console."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from clusters.models import Cluster
from projects.models import Project, User
from tests.cast import a_spec
from tests.workloads import objects
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Attempt, Event, Log, Pod, Position, TrainingProgress, Workload
from workloads.specs import Compute, Gpus, Setup, encode_spec
from workloads.specs import Environment as Runs
from workloads.specs.spec_summary import summarize_spec
from workloads.training_progress.estimating import Pace, describe_pace, format_time

TRAINING = "loss {loss:.4f}  lr 3.0e-04  {speed} samples/s  step {step}"
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 212, in <module>',
    "    main(parse())",
    '  File "/workspace/train.py", line 148, in main',
    "    batch = next(loader)",
    (
        "FileNotFoundError: [Errno 2] No such file or directory: "
        "'/data/imagenet/train/shard-00412.tar'"
    ),
)


class WorkloadDay:
    """A day of two projects, by what ran in it."""

    def __init__(self) -> None:
        self.now = timezone.now()
        self.cluster = Cluster.objects.get()
        self.a, self.b = Project.objects.order_by("name")
        self.people = {user.username: user for user in User.objects.all()}

    def ago(self, minutes: float) -> datetime:
        return self.now - timedelta(minutes=minutes)

    def _workload(
        self,
        name: str,
        status: str,
        by: str,
        minutes: float,
        *,
        workers: int = 2,
        each: int = 1,
        **fields: Any,
    ) -> Workload:
        project = fields.pop("project", self.a)
        compute = Compute(gpus=Gpus(devices=each), cpu_request="12", memory_request="120G")
        setup = Setup(
            Runs(
                image="registry.example.com/research/llama-finetune:2.6-cuda12.8",
                command=("torchrun", "train.py"),
            ),
            compute,
        )
        pods = workers + 1
        spec = a_spec(project, name, workers=workers, setup=setup)
        given = {
            **summarize_spec(spec),
            "architecture": "Distributed",
            "framework": "PyTorch",
            "spec": encode_spec(spec),
            "created_at": self.ago(minutes),
            "status_at": self.ago(minutes * 0.9),
            "requested_pods": pods,
            "gpus_requested": Decimal(each * pods),
        } | fields
        made = Workload.objects.create(
            project=project,
            cluster=self.cluster,
            name=name,
            status=status,
            submitted_by=self.people[by],
            **given,
        )
        for number in range(1, made.attempt + 1):
            self._attempt(made, number)
        at, _ = Position.objects.get_or_create(pk=1)
        Position.objects.update(value=at.value + 1)
        Workload.objects.filter(pk=made.pk).update(changed=at.value + 1)
        self._event(
            made,
            minutes,
            "action",
            reason="Submitted",
            text="It was submitted.",
            by=made.submitted_by,
        )
        self._event(made, minutes, "status", old="Creating", new="Pending")
        return made

    def _attempt(self, workload: Workload, number: int) -> None:
        now = number == workload.attempt
        Attempt.objects.create(
            workload=workload,
            number=number,
            status=workload.status if now else "Failed",
            requested_by=workload.submitted_by,
            requested_at=workload.created_at + timedelta(minutes=30 * (number - 1)),
            started_at=workload.started_at,
            reason="" if now else "The node gpu-node-3 went away.",
            ended_at=None if now else self.ago(140),
            ended="" if now else "3 failed",
        )

    def _event(self, workload: Workload, minutes: float, kind: str, **fields: Any) -> None:
        Event.objects.create(
            workload=workload, attempt=workload.attempt, at=self.ago(minutes), kind=kind, **fields
        )

    def _pods(
        self, workload: Workload, status: str = "Running", node: str = "gpu-node-0", **fields: Any
    ) -> list[Pod]:
        """A master and its workers, all alike."""
        made = []
        for rank in range(workload.requested_pods):
            role, index = ("master", 0) if rank == 0 else ("worker", rank - 1)
            name = f"{workload.name}-{role}-{index}"
            given = {
                "attempt": workload.attempt,
                "uid": f"{workload.pk}-{rank}",
                "role": role,
                "index": index,
                "rank": rank,
                "node": node,
                "phase": "Succeeded" if status == "Completed" else status,
                "status": status,
                "is_ready": status == "Running",
                "gpus": workload.gpus_requested / workload.requested_pods,
                "started_at": workload.started_at,
                "image": "registry.example.com/research/llama-finetune:2.6-cuda12.8",
                "created_at": workload.created_at,
            } | fields
            made.append(Pod.objects.create(workload=workload, name=name, **given))
        return made

    def _log(self, pod: Pod, texts: Sequence[str], state: str = Log.State.COMPLETE) -> None:
        path = log_paths.build_log_path(pod.workload_id, pod.uid, "pytorch", 0)
        began = int(self.ago(12).timestamp()) * stamps.SECOND
        lines = [
            stamps.format_time(began + (3 * number + (pod.rank or 0)) * stamps.SECOND // 4).encode()
            + b" "
            + text.encode()
            for number, text in enumerate(texts)
        ]
        with LogWriter(log_paths.local_path(path)) as writer:
            writer.append(lines)
            size = writer.size
        Log.objects.create(pod=pod, container="pytorch", path=path, size=size, state=state)

    def create_running(self) -> Workload:
        workload = self._workload(
            "llama-sft-8b",
            "Running",
            "carla",
            154,
            workers=3,
            each=2,
            attempt=2,
            started_at=self.ago(133),
            running_pods=4,
            gpus_allocated=Decimal(8),
            ran_seconds=1260.0,
        )
        pods = self._pods(workload)
        for pod in pods:
            assert pod.rank is not None
            self._event(
                workload,
                134,
                "cluster",
                reason="Scheduled",
                text=f"Successfully assigned muster-team-a/{pod.name} to gpu-node-0",
                subject_kind="Pod",
                subject=pod.name,
                source="kai-scheduler",
            )
            steps = [
                TRAINING.format(
                    loss=2.4 / (1 + step / 90) + 0.01 * pod.rank,
                    speed=412 - 3 * pod.rank,
                    step=step,
                )
                for step in range(240)
            ]
            nccl = f"\x1b[36m[rank {pod.rank}]\x1b[0m NCCL 2.27 ring 0..3, \x1b[32mready\x1b[0m"
            self._log(pod, [nccl, *steps], Log.State.CAPTURING)
        self._progress(workload, 239, 410, 95)
        self._event(
            workload, 133.5, "status", old="Pending", new="Initializing", text="0 of 4 pods are up."
        )
        self._event(workload, 133, "status", old="Initializing", new="Running")
        return workload

    def _progress(self, workload: Workload, step: int, total: int, minutes_left: float) -> None:
        """How far a training is by its logs, and when it is over by its pace."""
        per_second = (total - step) / (minutes_left * 60)
        rest, pace = (
            format_time(minutes_left * 60),
            describe_pace(Pace(per_second, 600, 10), "step"),
        )
        TrainingProgress.objects.create(
            workload=workload,
            attempt=workload.attempt,
            rank=0,
            step=step,
            total=total,
            at=self.now,
            ends_at=self.now + timedelta(minutes=minutes_left),
            estimate=f"about {rest}, from {pace} over the last 10 min; total from the log",
            read_at=self.now,
        )

    def create_pending(self) -> Workload:
        job = {
            "kind": "PyTorchJob",
            "metadata": {"name": "vit-huge", "uid": "vit"},
            "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}},
        }
        workload = self._workload(
            "vit-huge",
            "Pending",
            "bob",
            21,
            workers=1,
            each=8,
            job=job,
            reason="0/4 nodes have 8 free GPUs.",
        )
        for pod in self._pods(workload, "Pending", node="", started_at=None):
            data = objects.queued_pod(
                str(pod.role),
                pod.index or 0,
                owner="vit",
                name=pod.name,
                resources={"requests": {"nvidia.com/gpu": "8"}},
            )
            Pod.objects.filter(pk=pod.pk).update(data=data)
        self._event(
            workload,
            20,
            "cluster",
            reason="Unschedulable",
            text="0/4 nodes are available: 3 Insufficient nvidia.com/gpu, 1 not ready.",
            is_warning=True,
            subject_kind="PodGroup",
            subject="pg-vit-huge",
            source="kai-scheduler",
            count=34,
            first_at=self.ago(20.5),
        )
        return workload

    def create_failed(self) -> Workload:
        job = {"kind": "PyTorchJob", "metadata": {"name": "resnet50-imagenet", "uid": "resnet"}}
        workload = self._workload(
            "resnet50-imagenet",
            "Failed",
            "deniz",
            47,
            started_at=self.ago(45),
            ended_at=self.ago(33),
            job=job,
            ended="1 failed, 2 stopped",
            reason="PyTorchJob resnet50-imagenet is failed because 1 Worker replica(s) failed.",
        )
        for pod in self._pods(workload, "Error", phase="Failed", ended_at=self.ago(33)):
            first = pod.rank == 2
            data = objects.ended_pod(
                str(pod.role),
                pod.index or 0,
                code=1 if first else 143,
                owner="resnet",
                name=pod.name,
            )
            Pod.objects.filter(pk=pod.pk).update(data=data)
            steps = [
                TRAINING.format(loss=6.9 - step / 40, speed=1980, step=step) for step in range(80)
            ]
            self._log(pod, [*steps, *TRACEBACK] if first else steps)
        self._event(workload, 45, "status", old="Pending", new="Running")
        self._event(
            workload,
            33,
            "cluster",
            reason="BackOff",
            text="Back-off restarting failed container pytorch",
            is_warning=True,
            subject_kind="Pod",
            subject="resnet50-imagenet-worker-1",
            source="kubelet",
            count=3,
        )
        self._event(
            workload,
            33,
            "status",
            old="Running",
            new="Failed",
            is_warning=True,
            text=workload.reason,
        )
        return workload

    def create_deleted(self) -> Workload:
        fields: dict[str, Any] = {
            "started_at": self.ago(4000),
            "ended_at": self.ago(3900),
            "released_at": self.ago(60 * 20),
            "ended": "3 succeeded",
        }
        self._workload("vit-warmup", "Deleting", "bob", 4300, **fields)
        workload = self._workload("llama-sft-8b-dry-run", "Deleting", "carla", 4100, **fields)
        self._pods(workload, "Completed", vanished_at=self.ago(3900))
        return workload

    def create_others(self) -> None:
        over: dict[str, Any] = {"started_at": self.ago(300), "ended_at": self.ago(120)}
        whole: dict[str, Any] = {
            "running_pods": 3,
            "gpus_allocated": Decimal(6),
            "started_at": self.ago(380),
        }
        whisper = self._workload(
            "whisper-large-v4", "Running", "mallory", 400, project=self.b, each=2, **whole
        )
        self._pods(whisper, node="gpu-node-1")
        self._progress(whisper, 2800, 3100, 40)
        whole = {"running_pods": 7, "gpus_allocated": Decimal(7), "started_at": self.ago(1500)}
        bert = self._workload(
            "bert-pretrain-de", "Running", "mallory", 1520, project=self.b, workers=6, **whole
        )
        self._pods(bert, node="gpu-node-2")
        self._progress(bert, 98400, 100000, 25)
        self._workload(
            "t5-summaries", "Initializing", "carla", 1, reason="1 of 3 pods are up.", running_pods=1
        )
        some: dict[str, Any] = {
            "started_at": self.ago(50),
            "running_pods": 2,
            "gpus_allocated": Decimal(2),
            "reason": "2 of 3 pods are up.",
        }
        self._workload("unet-segmentation", "Degraded", "bob", 55, **some)
        self._workload(
            "clip-embeddings",
            "Stopped",
            "deniz",
            700,
            ended_at=self.ago(500),
            started_at=self.ago(690),
            ran_seconds=11400.0,
        )
        single: dict[str, Any] = {
            "architecture": "Standard",
            "framework": "",
            "requested_pods": 1,
            "gpus_requested": Decimal("0.5"),
            "workers": 0,
        }
        self._workload("eval-mmlu", "Completed", "bob", 320, ended="1 succeeded", **single, **over)
        self._workload(
            "tokenize-corpus-2026-11",
            "Completed",
            "carla",
            1900,
            ended="1 succeeded",
            **single,
            **over,
        )
        for number in range(48):
            by, name = (("carla", "llama-lr"), ("bob", "vit-aug"), ("deniz", "resnet-wd"))[
                number % 3
            ]
            ended: dict[str, Any] = {
                "started_at": self.ago(2999 + 70 * number),
                "ended_at": self.ago(2960 + 61 * number),
            }
            status, how = (
                ("Failed", "1 failed, 2 stopped")
                if number % 11 == 4
                else ("Completed", "3 succeeded")
            )
            self._workload(
                f"{name}-sweep-{number:02}", status, by, 3000 + 70 * number, ended=how, **ended
            )
