"""How a step deals with a cluster that does not do what it is asked: recorded, and tried again,
later and later.
"""

import random
from collections.abc import Callable

from clusters import connections
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Rejected, Unauthorized, Unavailable
from clusters.tasks import heartbeat
from console.celery import Step
from workloads import journal
from workloads.models import Workload

FIRST_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 60.0
"""Seconds until a step is tried again: after its first failure, and at most."""
MAX_CAUSES = 5
"""Causes of a refusal that are told."""


class RetryLater(Exception):
    """The cluster is well, and it is not yet time; the text says what is waited for.

    `seconds` until the next look; None for as long as after a failure.
    """

    def __init__(self, text: str, seconds: float | None = None) -> None:
        super().__init__(text)
        self.seconds = seconds


def find_workload(workload_id: str, tries: int | None = None) -> Workload | None:
    """The row as it is now, with its project and cluster; None when there is none any more.

    With `tries` only if it has failed just so often: of a step's messages one goes on, however many
    the sweep has added meanwhile.
    """
    row = (
        Workload.objects.select_related("project__department", "cluster")
        .filter(pk=workload_id)
        .first()
    )
    return row if row is not None and tries in (None, row.tries) else None


def run_step(step: Step, workload: Workload, work: Callable[[Client], None]) -> None:
    """Do a step's work in the workload's cluster. Where it cannot be done now, its trouble is
    recorded and the step asked for again.

    A cluster that is known to be silent is not asked: its heartbeat finds out when it is back, and
    then the sweep asks for the step. Raises Rejected: what that means is the step's to say.
    """
    cluster = workload.cluster
    if not cluster.is_enabled:
        journal.record_delay(
            workload.pk,
            f"The cluster {cluster.name} is disabled: nothing is asked of it.",
            compute_backoff(workload.tries),
        )
        return
    if cluster.unreachable_since is not None:
        journal.record_delay(
            workload.pk,
            f"The cluster {cluster.name} cannot be reached: {cluster.trouble}.",
            compute_backoff(workload.tries),
        )
        return
    try:
        work(connections.get_client(cluster))
    except RetryLater as wait:
        _retry_step(step, workload, str(wait), wait.seconds)
    except Rejected:
        raise
    except KubeError as error:
        asked = error.retry_after if isinstance(error, Unavailable) else None
        _retry_step(
            step,
            workload,
            f"{error.message[:1].upper()}{error.message[1:]}.",
            asked and min(asked, MAX_RETRY_SECONDS),
        )
        if isinstance(error, Unavailable | Unauthorized):
            heartbeat.enqueue(str(cluster.pk))


def compute_backoff(tries: int) -> float:
    """Seconds to wait after so many failures, with chance in it, so that those who failed together
    do not come back together.
    """
    delay = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(tries, 16))
    return delay * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def describe_refusal(error: Rejected) -> str:
    """What the cluster said against an object, for the person."""
    causes = [
        f"{field}: {text}" for field, text in error.causes[:MAX_CAUSES] if text not in error.message
    ]
    return " ".join(["The cluster refused it:", error.message, *causes])


def _retry_step(step: Step, workload: Workload, reason: str, seconds: float | None) -> None:
    wait = compute_backoff(workload.tries) if seconds is None else seconds
    step.enqueue_after(wait, str(workload.pk), journal.record_delay(workload.pk, reason, wait))
