"""A console in the middle of its day: several people and projects, workloads of every status with
their pods, events and logs.

For pictures of the pages and for tests that look at all of them. It makes rows; nothing of it is in
a cluster. Needs Django set up.
"""

import math
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group

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
from tests.lively_forecasts import create_forecasts
from tests.lively_ledger import create_ledger
from tests.lively_trials import create_open_trial, create_trial
from tests.lively_workloads import WorkloadDay
from workloads.forms import workload_copies
from workloads.models import Draft, Sample, SavedView
from workloads.specs import Compute, Gpus, Setup
from workloads.specs import Environment as Runs
from workloads.tasks.sampling import round_to_sample_time

GIB = 1 << 30


def lively() -> dict[str, str]:
    """Fill a database that has the cast in it; the ids of what tests and pictures look at, by
    name.
    """
    return _Day().all()


class _Day(WorkloadDay):
    def all(self) -> dict[str, str]:
        self._ground()
        running, pending, failed, deleted = (
            self.create_running(),
            self.create_pending(),
            self.create_failed(),
            self.create_deleted(),
        )
        self.create_others()
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
                gpu_hour_price=Decimal("2.4"),
                currency="EUR",
                gpu_watts=700,
                created_by=self.people["alice"],
            ).pk,
            **clusters(self.cluster, self.now),
        }
        create_ledger((self.a, self.b), NodePool.objects.get(pk=ids["pool"]), self.now)
        create_forecasts((self.a, self.b), pending, running, self.now)
        ids |= {
            "trial": create_trial((self.a, self.b), self.people["alice"], self.now),
            "open_trial": create_open_trial(self.b, self.people["alice"], self.now),
            "running": running.pk,
            "pending": pending.pk,
            "failed": failed.pk,
            "deleted": deleted.pk,
            "draft": self._draft().pk,
            "view": SavedView.objects.create(
                user=self.people["alice"],
                name="Vision, by image",
                query="status=Running&sort=name&column=name,status,cluster,image,cpu_request",
            ).pk,
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
        create_service_account(TENANT, "old-export", by=alice, role=VIEWER, expires_at=self.ago(60))
        personal_keys.create_key("notebook", owner=alice)
        return role

    def _ground(self) -> None:
        Cluster.objects.update(
            name="gpu-cluster",
            version="v1.32.4",
            last_seen_at=self.now,
            captured_until=self.now + timedelta(days=1),
        )
        Project.objects.update(gpu_quota=Decimal(16), synced_at=self.ago(60 * 26))
        builtin_assets.ensure_builtin_assets()
        Node.objects.all().delete()
        for number in range(4):
            self._node(f"gpu-node-{number}", gpus=8, used=(8, 8, 7, 0)[number])
        self._node("cpu-node-0", gpus=0, used=0)
        Node.objects.filter(name="gpu-node-3").update(
            is_ready=False, trouble="Kubelet stopped posting node status."
        )
        for name in ("carla", "deniz"):
            self.people[name] = User.objects.create(username=name, last_login=self.ago(200))
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
            "synced_at": self.ago(4000),
        }
        removed_project = Project.objects.create(
            name="speech-2024", namespace="muster-speech-2024", queue="speech-2024", **made
        )
        sync_error = "2 of its workloads are still being deleted."
        Project.objects.filter(pk=removed_project.pk).update(
            deleted_at=self.ago(3), deleted_by=self.people["alice"], sync_error=sync_error
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
