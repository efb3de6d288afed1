"""The objects of one workload's attempt as a cluster would have them, for tests of the journal.

They have labels, uids and versions.
"""

import itertools
import uuid
from typing import Any

from tests.workloads import objects
from tests.workloads.objects import Object
from workloads.journal import Observation
from workloads.models import Workload

CREATED = "2026-11-21T00:00:00Z"


class ClusterObjects:
    """Makes the objects of one attempt; each has a newer version than those before it."""

    def __init__(self, workload: Workload, attempt: int | None = None) -> None:
        self.workload = workload
        self.attempt = attempt or workload.attempt
        self.namespace = workload.project.namespace
        self.uid = str(uuid.uuid5(workload.pk, f"job {self.attempt}"))

    def job(self, *conditions: Object, **more: Any) -> Object:
        return self._signed(objects.pytorch_job(*conditions, **more), self.workload.name, self.uid)

    def batch(self, *conditions: Object, **more: Any) -> Object:
        return self._signed(objects.batch_job(*conditions, **more), self.workload.name, self.uid)

    def pod(
        self, role: str, index: int = 0, make: Any = objects.pod, tries: int = 0, **more: Any
    ) -> Object:
        made: Object = make(role, index, owner=self.uid, **more)
        return self._signed(
            made, f"{self.workload.name}-{role}-{index}", f"{self.uid[:20]}-{role}{index}-{tries}"
        )

    def queued(self, role: str, index: int = 0, **more: Any) -> Object:
        return self.pod(role, index, objects.queued_pod, **more)

    def starting(self, role: str, index: int = 0, **more: Any) -> Object:
        return self.pod(role, index, objects.starting_pod, **more)

    def ended(self, role: str, index: int = 0, **more: Any) -> Object:
        return self.pod(role, index, objects.ended_pod, **more)

    def group(self, reason: str = "", message: str = "") -> Object:
        made = objects.pod_group(reason, message)
        made["metadata"] = {
            "name": f"pg-{self.workload.name}-{self.uid}",
            "uid": f"pg{self.uid[:30]}",
        }
        return self._stamped(made)

    def event(
        self,
        subject: Object,
        reason: str,
        message: str,
        *,
        uid: str = "e1",
        kind: str = "Pod",
        **more: Any,
    ) -> Object:
        metadata = subject["metadata"]
        about = {
            "kind": kind,
            "name": metadata["name"],
            "namespace": self.namespace,
            "uid": metadata["uid"],
        }
        fields = {
            "reason": reason,
            "message": message,
            "type": "Normal",
            "reportingComponent": "kubelet",
            "lastTimestamp": "2099-01-01T00:00:00Z",
        }
        return {
            "metadata": {"uid": uid, "name": uid, "namespace": self.namespace},
            "involvedObject": about,
            **fields,
            **more,
        }

    def _signed(self, made: Object, name: str, uid: str) -> Object:
        labels = {
            "muster.dev/workload": str(self.workload.pk),
            "muster.dev/attempt": str(self.attempt),
        }
        made["metadata"] |= {
            "name": name,
            "uid": uid,
            "labels": made["metadata"].get("labels", {}) | labels,
        }
        return self._stamped(made)

    def _stamped(self, made: Object) -> Object:
        made["metadata"] |= {
            "namespace": self.namespace,
            "resourceVersion": str(next(_versions)),
            "creationTimestamp": CREATED,
        }
        return made


_versions = itertools.count(1)


def jobs(*objects: Object) -> list[Observation]:
    return [Observation("job", each) for each in objects]


def pods(*objects: Object) -> list[Observation]:
    return [Observation("pod", each) for each in objects]


def observe_gone(kind: Any, *objects: Object) -> list[Observation]:
    return [Observation(kind, each, is_gone=True) for each in objects]
