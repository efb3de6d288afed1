"""A console in the middle of its day: several people and projects, workloads of every status with
their pods, events and logs.

For pictures of the pages and for tests that look at all of them. It makes rows; nothing of it is in
a cluster. Needs Django set up.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone

from clusters.models import Cluster, Node, NodePool
from environments import actions, builtin_assets
from environments.models import (
    ComputeResource,
    Credential,
    DataSource,
    Environment,
    Policy,
    Template,
)
from projects import custom_roles, granting, personal_keys
from projects.actions import create_service_account
from projects.models import AccessRule, AuditEntry, CustomRole, Project, User
from projects.permissions import L1, VIEWER
from projects.scopes import TENANT, department_scope, project_scope
from tests.cast import a_spec
from tests.credentials import a_registry
from tests.lively_clusters import clusters
from tests.workloads import objects
from workloads.forms import workload_copies
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Attempt, Draft, Event, Log, Pod, Position, Sample, Workload
from workloads.specs import Compute, Gpus, Setup, encode_spec
from workloads.specs import Environment as Runs
from workloads.tasks.sampling import round_to_sample_time

GIB = 1 << 30
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


def lively() -> dict[str, str]:
    """Fill a database that has the cast in it; the ids of what tests and pictures look at, by
    name.
    """
    return _Day().all()


class _Day:
    def __init__(self) -> None:
        self.now = timezone.now()
        self.cluster = Cluster.objects.get()
        self.a, self.b = Project.objects.order_by("name")
        self.people = {user.username: user for user in User.objects.all()}

    def all(self) -> dict[str, str]:
        self._ground()
        running, pending, failed, deleted = (
            self._running(),
            self._pending(),
            self._failed(),
            self._deleted(),
        )
        self._others()
        self._samples()
        create_service_account(self.a, "nightly-ci", by=self.people["alice"])
        resting = self._projects()
        assets = (
            Environment.objects.get(name="llama-finetune"),
            ComputeResource.objects.get(name="four-gpus"),
        )
        ids = {
            "environment": assets[0].pk,
            "compute": assets[1].pk,
            **self._assets(assets),
            "role": self._access().pk,
            "keyed": self.people["alice"].pk,
            "keyless": self.people["carla"].pk,
            "audit": AuditEntry.objects.latest("pk").pk,
            "project": self.a.pk,
            "resting": resting.pk,
            "cluster": self.cluster.pk,
            "department": self.a.department_id,
            "pool": NodePool.objects.create(
                cluster=self.cluster,
                name="h200",
                label_key="kai.scheduler/node-pool",
                label_value="h200",
                created_by=self.people["alice"],
            ).pk,
            **clusters(self.cluster, self.now),
        }
        ids |= {
            "running": running.pk,
            "pending": pending.pk,
            "failed": failed.pk,
            "deleted": deleted.pk,
            "draft": self._draft().pk,
        }
        return {name: str(key) for name, key in ids.items()}

    def _assets(self, made: Sequence[Any]) -> dict[str, Any]:
        """A data source with its credential, which it cannot be deleted under, a template of both
        of `made`, and a policy.
        """
        here = {"project": self.a, "created_by": self.people["alice"]}
        key = Credential.objects.create(
            name="bucket-robot",
            kind="access-key",
            public={"access_key_id": "AKIAROBOT"},
            secret='{"secret_key": "x"}',
            **here,
        )
        origin = {"url": "https://s3.example.com", "bucket": "imagenet", "below": "train"}
        source = DataSource.objects.create(
            name="imagenet", kind="s3", origin=origin, path="/data", credential=key, **here
        )
        start = {
            "architecture": ["Distributed"],
            "framework": ["PyTorch"],
            "configuration": ["workers-and-master"],
        }
        form = {
            "start": start,
            "setup": {"environment_choice": [str(made[0].pk)], "compute_choice": [str(made[1].pk)]},
        }
        about = {
            "name": "vit-base",
            "description": "ViT on ImageNet, eight GPUs",
            "framework": "PyTorch",
            "locked": ["environment_choice"],
        }
        template = actions.create(
            Template, about | {"form": form}, scope=project_scope(self.a), user=self.people["alice"]
        )
        rules = {
            "workers": {"max": 8},
            "gpus.devices": {"max": 8},
            "image": {"options": ["registry.example.com/*", "muster/*"]},
        }
        policy = Policy.objects.create(
            name="no-more-than-eight",
            description="Nobody takes more than a node",
            rules=rules,
            **here,
        )
        return {
            "source": source.pk,
            "credential": key.pk,
            "template": template.pk,
            "policy": policy.pk,
        }

    def _access(self) -> CustomRole:
        """A group with a role, a key of Alice's, an account whose time is over; and a custom role
        that somebody has.
        """
        alice = self.people["alice"]
        role = custom_roles.create(
            "Data curator",
            "Looks after what is read",
            ["data-sources:edit", "credentials:view"],
            by=alice,
        )
        granting.grant_role(
            VIEWER,
            to=Group.objects.create(name="ml-team"),
            scope=department_scope(self.a.department_id),
            by=alice,
        )
        granting.grant_role(
            f"custom:{role.pk}", to=self.people["carla"], scope=project_scope(self.b), by=alice
        )
        create_service_account(
            TENANT, "old-export", by=alice, role=VIEWER, expires_at=self._ago(60)
        )
        personal_keys.create_key("notebook", owner=alice)
        return role

    def _ago(self, minutes: float) -> datetime:
        return self.now - timedelta(minutes=minutes)

    def _ground(self) -> None:
        Cluster.objects.update(name="gpu-cluster", version="v1.32.4", last_seen_at=self.now)
        Project.objects.update(gpu_quota=Decimal(16), synced_at=self._ago(60 * 26))
        builtin_assets.ensure_builtin_assets()
        Node.objects.all().delete()
        for number in range(4):
            self._node(f"gpu-node-{number}", gpus=8, used=(8, 8, 7, 0)[number])
        self._node("cpu-node-0", gpus=0, used=0)
        Node.objects.filter(name="gpu-node-3").update(
            is_ready=False, trouble="Kubelet stopped posting node status."
        )
        for name in ("carla", "deniz"):
            self.people[name] = User.objects.create(username=name, last_login=self._ago(200))
            AccessRule.objects.create(user=self.people[name], project=self.a, role=L1)
        image = "registry.example.com/research/llama-finetune:2.6-cuda12.8"
        mine = {"project": self.a, "created_by": self.people["carla"], "image": image}
        Environment.objects.create(
            name="llama-finetune",
            description="Fine-tuning with FSDP",
            command="torchrun train.py",
            architecture="Distributed",
            framework="PyTorch",
            **mine,
        )
        ComputeResource.objects.create(
            name="four-gpus",
            description="Half a node",
            gpu_devices=4,
            cpu_request="48",
            memory_request="480G",
        )

    def _node(self, name: str, gpus: int, used: int) -> None:
        size = {"cpu": 192 if gpus else 64, "memory": (2048 if gpus else 256) * GIB}
        taken = {"used_gpus": 0, "used_cpu": 6, "used_memory": 20 * GIB}
        kind = "NVIDIA H200" if gpus else ""
        Node.objects.create(
            cluster=self.cluster,
            name=name,
            is_ready=True,
            gpus=gpus,
            gpu_type=kind,
            seen_at=self.now,
            **size,
            **taken,
        )

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
        given = {
            "architecture": "Distributed",
            "framework": "PyTorch",
            "spec": encode_spec(a_spec(project, name, workers=workers, setup=setup)),
            "created_at": self._ago(minutes),
            "status_at": self._ago(minutes * 0.9),
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
            ended_at=None if now else self._ago(140),
            ended="" if now else "3 failed",
        )

    def _event(self, workload: Workload, minutes: float, kind: str, **fields: Any) -> None:
        Event.objects.create(
            workload=workload, attempt=workload.attempt, at=self._ago(minutes), kind=kind, **fields
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
        began = int(self._ago(12).timestamp()) * stamps.SECOND
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

    def _running(self) -> Workload:
        workload = self._workload(
            "llama-sft-8b",
            "Running",
            "carla",
            154,
            workers=3,
            each=2,
            attempt=2,
            started_at=self._ago(133),
            running_pods=4,
            gpus_allocated=Decimal(8),
            ran_seconds=1260.0,
        )
        pods = self._pods(workload)
        for pod in pods:
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
        self._event(
            workload, 133.5, "status", old="Pending", new="Initializing", text="0 of 4 pods are up."
        )
        self._event(workload, 133, "status", old="Initializing", new="Running")
        return workload

    def _pending(self) -> Workload:
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
            first_at=self._ago(20.5),
        )
        return workload

    def _failed(self) -> Workload:
        job = {"kind": "PyTorchJob", "metadata": {"name": "resnet50-imagenet", "uid": "resnet"}}
        workload = self._workload(
            "resnet50-imagenet",
            "Failed",
            "deniz",
            47,
            started_at=self._ago(45),
            ended_at=self._ago(33),
            job=job,
            ended="1 failed, 2 stopped",
            reason="PyTorchJob resnet50-imagenet is failed because 1 Worker replica(s) failed.",
        )
        for pod in self._pods(workload, "Error", phase="Failed", ended_at=self._ago(33)):
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

    def _deleted(self) -> Workload:
        gone = {
            "started_at": self._ago(4000),
            "ended_at": self._ago(3900),
            "released_at": self._ago(60 * 20),
            "ended": "3 succeeded",
        }
        self._workload("vit-warmup", "Deleting", "bob", 4300, **gone)
        workload = self._workload("llama-sft-8b-dry-run", "Deleting", "carla", 4100, **gone)
        self._pods(workload, "Completed", vanished_at=self._ago(3900))
        return workload

    def _others(self) -> None:
        over = {"started_at": self._ago(300), "ended_at": self._ago(120)}
        whole = {"running_pods": 3, "gpus_allocated": Decimal(6), "started_at": self._ago(380)}
        self._pods(
            self._workload(
                "whisper-large-v4", "Running", "mallory", 400, project=self.b, each=2, **whole
            ),
            node="gpu-node-1",
        )
        whole = {"running_pods": 7, "gpus_allocated": Decimal(7), "started_at": self._ago(1500)}
        self._pods(
            self._workload(
                "bert-pretrain-de", "Running", "mallory", 1520, project=self.b, workers=6, **whole
            ),
            node="gpu-node-2",
        )
        self._workload(
            "t5-summaries", "Initializing", "carla", 1, reason="1 of 3 pods are up.", running_pods=1
        )
        some = {
            "started_at": self._ago(50),
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
            ended_at=self._ago(500),
            started_at=self._ago(690),
            ran_seconds=11400.0,
        )
        single = {
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
            ended = {
                "started_at": self._ago(2999 + 70 * number),
                "ended_at": self._ago(2960 + 61 * number),
            }
            status, how = (
                ("Failed", "1 failed, 2 stopped")
                if number % 11 == 4
                else ("Completed", "3 succeeded")
            )
            self._workload(
                f"{name}-sweep-{number:02}", status, by, 3000 + 70 * number, ended=how, **ended
            )

    def _samples(self) -> None:
        """A day of what the two projects held: quiet at night."""
        last = round_to_sample_time(self.now, 600)
        Sample.objects.bulk_create(
            Sample(
                project=project,
                at=last - timedelta(minutes=10 * number),
                gpus_quota=16,
                gpus_idle=number // 20 % 3,
                gpus_allocated=round(base + 4 * math.sin(number / 23)),
                running=2,
                waiting=number // 30 % 2,
            )
            for project, base in ((self.a, 9), (self.b, 6))
            for number in range(145)
        )

    def _projects(self) -> Project:
        """A registry, what projects hold, and one that is being removed; given back is one in which
        nothing runs.
        """
        a_registry(
            self.a, address="registry.example.com:5000", username="robot-research", password="x"
        )
        Project.objects.filter(pk=self.a.pk).update(
            allocated={"gpu": "10", "cpu": "48", "memory": str(480 * GIB)},
            gpu_limit=Decimal(24),
            cpu_quota=Decimal(256),
            cpu_limit=Decimal(512),
            memory_quota=900 * GIB,
        )
        Project.objects.filter(pk=self.b.pk).update(
            allocated={"gpu": "13", "cpu": "120", "memory": str(960 * GIB)}
        )
        made = {
            "department": self.a.department,
            "cluster": self.cluster,
            "synced_at": self._ago(4000),
        }
        gone = Project.objects.create(
            name="speech-2024", namespace="muster-speech-2024", queue="speech-2024", **made
        )
        told = "2 of its workloads are still being deleted."
        Project.objects.filter(pk=gone.pk).update(
            deleted_at=self._ago(3), deleted_by=self.people["alice"], sync_error=told
        )
        kai = (
            "The cluster does not serve Queues (scheduling.run.ai/v2): the KAI scheduler is not "
            "installed there, or in another version."
        )
        return Project.objects.create(
            name="archive",
            namespace="shared-archive",
            queue="archive",
            is_namespace_adopted=True,
            sync_note=kai,
            **made,
        )

    def _draft(self) -> Draft:
        half = Compute(
            gpus=Gpus(devices=1, portion=Decimal("0.5")), cpu_request="0.1", memory_request="100M"
        )
        setup = Setup(Runs(image="muster/pytorch-ddp"), half)
        spec = a_spec(self.a, "vit-base", setup=setup, workers=3)
        chosen = workload_copies.AvailableAssets(
            list(Environment.objects.all()), list(ComputeResource.objects.all())
        )
        data = workload_copies.build_draft_data(
            spec, project=self.a, name="vit-base-2", assets=chosen
        )
        return Draft.objects.create(user=self.people["alice"], data=data)
