"""Random histories of a workload's objects, and what its rows should be after each of them.

The journal keeps counts and reads only what changed; here everything is derived from all pods.
"""

import random
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from clusters.job_kinds import RANK_0_ROLES
from tests.cast import Cast, a_spec
from tests.workloads import objects
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.data_workers import DataKube
from tests.workloads.objects import Object, condition
from workloads import journal
from workloads.journal import Observation
from workloads.journal.status_derivation import find_status_before
from workloads.journal.workload_updates import WorkloadUpdate
from workloads.kube_objects import DATA_WORKER, is_data_worker, is_own_pod, nested_dict
from workloads.models import Pod, Workload
from workloads.pod_counts import PodCounts, count_pods, find_standing
from workloads.pod_views import build_pod_view, compute_rank
from workloads.specs import DataDelivery
from workloads.states import (
    RESTING,
    Status,
    can_move,
)
from workloads.status_rules import (
    derive_status,
)

LONG_AFTER = datetime(2100, 1, 1, tzinfo=UTC)
PREEMPTED = condition("DisruptionTarget", reason="PreemptionByScheduler")
SUSPENDED = [condition("Suspended")]
CONDITIONS = [
    [condition("Created")],
    [condition("Created"), condition("Running")],
    [condition("Created"), condition("Restarting")],
    SUSPENDED,
    [condition("Succeeded")],
    [condition("Failed", message="it broke")],
]
CONDITION_WEIGHTS = [30, 30, 5, 1, 1, 1]
WORKERS = 4
DATA_WORKERS = 2
DATA_POD_SORTS = (objects.pod, objects.ended_pod, objects.queued_pod, objects.starting_pod)


class PodHistory:
    """One workload whose objects change at random; `step` makes the next batch and checks it."""

    def __init__(self, cast: Cast, chance: random.Random) -> None:
        self.chance = chance
        self.cast = cast
        name = f"w{uuid.UUID(int=chance.getrandbits(128)).hex[:12]}"
        self.has_data = chance.random() < 0.4
        more = {"data_delivery": DataDelivery(DATA_WORKERS, 10)} if self.has_data else {}
        self.pk = journal.create_workload(
            a_spec(cast.team_a, name, **more), project=cast.team_a, user=None
        ).pk
        self.is_led = chance.random() < 0.7
        self.pods: dict[str, Object] = {}
        """The latest object of each pod that exists, by uid."""
        self.job: Object | None = None
        self.frames: list[Observation] = []
        """All that was ever seen: some of it is seen again."""
        self.tries = 0

    @property
    def row(self) -> Workload:
        return Workload.objects.get(pk=self.pk)

    def step(self) -> None:
        """Make one batch of changes, or a request or a listing, and check what became of it."""
        action = self.chance.choices(
            ["batch", "listing", "reconcile", "stop", "run"], [30, 3, 1, 1, 2]
        )[0]
        row = self.row
        if action == "stop" and Status(row.status) not in (*RESTING, Status.STOPPING):
            journal.request_stop(self.pk, None)
        elif action == "run" and Status(row.status) in RESTING:
            journal.request_run(self.pk, None)
            self.job = None
        elif action == "listing":
            journal.record_listing(row.cluster_id, "pod", self._list_everywhere(), LONG_AFTER)
        elif action == "reconcile":
            known = journal.list_known_objects(
                row.cluster_id, "job", "pod", "podgroup", workload=self.pk
            )
            own = list(self.pods.values())
            journal.reconcile_workload(self.pk, self.job, own, None, known_before=known)
        else:
            self._record_batch()
        self.check_counts()

    def _list_everywhere(self) -> list[Object]:
        """Return this workload's pods and those of all others, as the cluster would list them."""
        others = Pod.objects.filter(vanished_at=None).exclude(workload=self.pk)
        return [*self.pods.values(), *others.values_list("data", flat=True)]

    def _record_batch(self) -> None:
        size = self.chance.choice([1, 1, 2, 3, 8])
        frames = [each for _ in range(size) for each in self._change()]
        self.frames += frames
        if self.frames and self.chance.random() < 0.3:
            frames += self.chance.choices(self.frames, k=2)
        if self.chance.random() < 0.3:
            self.chance.shuffle(frames)
        before, inputs = self.row, self._read_inputs()
        journal.record_observations(before.cluster_id, frames)
        after = self._read_inputs()
        if after != inputs:
            self._check_status(before, *after)

    def _change(self) -> list[Observation]:
        made = DataKube(self.row)
        what = self.chance.choices(["job", "pod", "gone", "group", "job gone"], [3, 24, 5, 2, 1])[0]
        if what == "job" or (self.job is None and what != "pod"):
            conditions = self.chance.choices(CONDITIONS, CONDITION_WEIGHTS)[0]
            is_held = self.has_data and self.chance.random() < 0.5
            make = made.held_job if is_held else made.job
            self.job = make(*conditions, workers=WORKERS - self.is_led, master=self.is_led)
            if self.chance.random() < 0.5 and conditions == SUSPENDED:
                self.job["spec"]["runPolicy"] = {"suspend": True}
            return jobs(self.job)
        if what == "pod" and self.has_data and self.chance.random() < 0.3:
            return self._change_data_pod(made)
        if what == "pod":
            return self._change_pod(made)
        if what == "gone" and self.pods:
            uid = self.chance.choice(sorted(self.pods))
            return observe_gone("pod", self.pods.pop(uid))
        if what == "group":
            full = self.chance.random() < 0.5
            return [Observation("podgroup", made.group("OverLimit" if full else "", "no room"))]
        if what == "job gone" and self.job is not None:
            job, self.job = self.job, None
            return observe_gone("job", job)
        return []

    def _change_pod(self, made: ClusterObjects) -> list[Observation]:
        index = self.chance.randrange(WORKERS)
        role = "master" if index == 0 and self.is_led else "worker"
        name = f"{made.workload.name}-{role}-{index}"
        known = [uid for uid, pod in self.pods.items() if pod["metadata"]["name"] == name]
        self.tries += not known
        changed = self._build_pod(made, role, index)
        metadata = changed["metadata"]
        if known and self.chance.random() < 0.9:
            labels = self.pods[known[0]]["metadata"]
            metadata |= {each: labels[each] for each in ("uid", "ownerReferences", "labels")}
        elif self.chance.random() < 0.1:
            # Of an earlier job of the same name, or of somebody else.
            metadata["ownerReferences"][0]["uid"] = "another"
        self.pods[metadata["uid"]] = changed
        return pods(changed)

    def _change_data_pod(self, made: DataKube) -> list[Observation]:
        number, tries = self.chance.randrange(DATA_WORKERS), self.chance.randrange(2)
        make = self.chance.choice(DATA_POD_SORTS)
        data_pod = made.data_pod(number, make, tries)
        if self.chance.random() < 0.1:
            data_pod["metadata"]["ownerReferences"][0]["name"] = "another-data"
        self.pods[data_pod["metadata"]["uid"]] = data_pod
        return pods(data_pod)

    def _build_pod(self, made: ClusterObjects, role: str, index: int) -> Object:
        more: dict[str, Any] = {"tries": self.tries}
        if self.chance.random() < 0.6:
            gpus = self.chance.choice([1, 2, 8])
            more["resources"] = {
                "requests": {"nvidia.com/gpu": str(gpus), "cpu": f"{gpus * 1500}m"},
                "limits": {"memory": f"{gpus}Gi"},
            }
        if self.chance.random() < 0.15:
            more["terminating"] = True
        if self.chance.random() < 0.1:
            more["conditions"] = [PREEMPTED]
        match self.chance.choices(
            ["up", "queued", "starting", "blocked", "ended"], [6, 3, 3, 1, 1]
        )[0]:
            case "up":
                return made.pod(role, index, **more)
            case "queued":
                message = self.chance.choice(["", f"no node for {index}", "quota"])
                return made.queued(role, index, message=message, **more)
            case "starting":
                return made.starting(role, index, **more)
            case "blocked":
                return made.starting(
                    role, index, reason="ImagePullBackOff", message=f"no image {index}", **more
                )
        return made.ended(role, index, code=self.chance.choice([0, 0, 1, 137]), **more)

    def _read_inputs(self) -> tuple[Object | None, list[Object], Object | None]:
        row = self.row
        rows = Pod.objects.filter(workload=self.pk, attempt=row.attempt, vanished_at=None)
        objects = list(rows.order_by("uid").values_list("data", flat=True))
        return row.job, objects, row.pod_group

    def _check_status(
        self, before: Workload, job: Object | None, objects: list[Object], group: Object | None
    ) -> None:
        after, old = self.row, Status(before.status)
        update = WorkloadUpdate(before, "")
        update.new_values |= {"job": job, "job_uid": after.job_uid}
        derived = derive_status(job, objects, group, before=find_status_before(update, old))
        moves = derived.status is not old and can_move(old, derived.status)
        assert after.status == (derived.status if moves else old)
        stays = derived.status is old and old not in RESTING
        if moves or (stays and old is not Status.STOPPING):
            assert after.reason == derived.reason
        elif stays:
            # A change that no count shows leaves the reason that the stop began with.
            assert after.reason in (before.reason, derived.reason)
        if job is not None:
            assert after.requested_pods == derived.requested

    def check_counts(self) -> None:
        """Compare the kept counts, and what follows from them, with all pods."""
        row = self.row
        existing = list(Pod.objects.filter(workload=self.pk, vanished_at=None))
        live = [each for each in existing if each.attempt == row.attempt]
        if row.pod_counts is None:
            return
        kept = decode_counts(row)
        assert kept.existing == len(existing)
        if kept.attempt != row.attempt:
            assert (row.running_pods, row.gpus_allocated) == (0, 0)
            assert (row.cpu_allocated, row.memory_allocated) == (0, 0)
            return
        all_data = [each for each in live if each.role == DATA_WORKER]
        # Without a job any pod is its own.
        data = [each for each in all_data if row.job is None or is_data_worker(each.data, row.name)]
        assert {key: count for key, count in kept.data.items() if key != "foreign"} == (
            count_pods([build_pod_view(each.data) for each in data]).data
        )
        assert all(each.rank is None for each in data)
        live = [each for each in live if each not in all_data]
        own = [each for each in live if row.job is None or is_own_pod(row.job, each.data)]
        views = [build_pod_view(each.data) for each in own]
        counted = count_pods(views)
        assert {key: count for key, count in kept.standings.items() if key != "foreign"} == (
            counted.standings
        )
        assert kept.standings.get("foreign", 0) == len(live) - len(own)  # type: ignore[call-overload]
        assert (kept.preempted, kept.masters) == (counted.preempted, counted.masters)
        assert row.running_pods == sum(view.ready for view in views)
        placed = [view.gpus or 0 for view in views if view.node and not view.finished]
        assert row.gpus_allocated == sum(placed, Decimal(0))
        assert row.cpu_allocated == sum(placed, Decimal(0)) * Decimal("1.5")
        assert row.memory_allocated == sum(placed, Decimal(0)) * (1 << 30)
        assert self.is_led or not kept.is_led
        # Once the job is gone, ranks stay.
        has_master = (
            any(view.role in RANK_0_ROLES for view in views)
            or "Master" in nested_dict(row.job, "spec", "pytorchReplicaSpecs")
            or (row.job is None and kept.is_led)
        )
        for pod, view in zip(own, views, strict=True):
            assert pod.rank == compute_rank(view.role, view.index, has_master=has_master)
            assert pod.standing == find_standing(view)


def decode_counts(row: Workload) -> PodCounts:
    """Return the counts that a workload's row keeps."""
    return msgspec.convert(row.pod_counts, PodCounts)
