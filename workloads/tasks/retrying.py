"""How a step handles an uncooperative cluster: record it, retry with growing delays."""

import logging
import random
import re
from collections.abc import Callable

from clusters import connections
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Rejected, Unauthorized, Unavailable
from clusters.tasks import heartbeat
from clusters.thread_shares import count_silent_threads
from console.celery import Step
from workloads import journal
from workloads.models import Workload

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 60.0
"""Seconds until a step is tried again: after its first failure, and at most."""
MAX_CAUSES = 5
"""Causes of a refusal that are shown at most."""
_FAILED_WEBHOOK = re.compile(
    r'(?:failed calling|admission) webhook "(?P<name>[a-zA-Z0-9.-]{1,253})"'
)


class RetryLater(Exception):
    """The cluster works, but it is not yet time; the text says what is awaited.

    `seconds` until the next try; None for the delay after a failure.
    """

    def __init__(self, text: str, seconds: float | None = None) -> None:
        super().__init__(text)
        self.seconds = seconds


def find_workload(workload_id: str, tries: int | None = None) -> Workload | None:
    """Return the current row, with its project and cluster; None if it is gone.

    With `tries`, return it only if it has failed exactly so often: of a step's messages only one
    goes on, however many the sweep has added meanwhile.
    """
    workload = (
        Workload.objects.select_related("project__department", "cluster")
        .filter(pk=workload_id)
        .first()
    )
    return workload if workload is not None and tries in (None, workload.tries) else None


def run_step(step: Step, workload: Workload, work: Callable[[Client], None]) -> None:
    """Do a step's work in the workload's cluster. On failure record the trouble and request a
    retry.

    A cluster that is known to be silent is not asked: its heartbeat finds out when it is back, and
    then the sweep requests the step. Raises Rejected, whose meaning the step decides.
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
        client = connections.get_client(cluster)
        if client.pending.is_crowded(count_silent_threads()):
            raise RetryLater(f"The cluster {cluster.name} is silent, and others wait for it.")
        work(client)
    except RetryLater as wait:
        _retry_step(step, workload, str(wait), wait.seconds)
    except Rejected:
        raise
    except KubeError as error:
        retry_after = error.retry_after if isinstance(error, Unavailable) else None
        _retry_step(
            step,
            workload,
            describe_failure(error),
            retry_after and min(retry_after, MAX_RETRY_SECONDS),
        )
        # The heartbeat finds out whether the cluster is away for all, and when it is back.
        if isinstance(error, Unavailable | Unauthorized):
            heartbeat.enqueue(str(cluster.pk))


def compute_backoff(tries: int) -> float:
    """Return the seconds to wait after so many failures.

    They are random, so that steps that failed together do not return together.
    """
    delay = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(tries, 16))
    return delay * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def find_failed_webhook(error: KubeError) -> str:
    """Return the name of the webhook that a failure comes of; "" where it comes of none."""
    match = _FAILED_WEBHOOK.search(error.detail)
    return match["name"] if match else ""


def describe_failure(error: KubeError) -> str:
    """Describe a failure for a person, with the webhook that it comes of, if that is one.

    The server's other words may have addresses inside the cluster: they are for the log alone.
    """
    words = f"{error.message[:1].upper()}{error.message[1:]}."
    if error.detail:
        log.info("the cluster failed: %s: %s", error.message, error.detail)
    webhook = find_failed_webhook(error)
    return f"{words} Its webhook {webhook} failed." if webhook else words


def describe_refusal(error: Rejected) -> str:
    """Describe for a person why the cluster refused an object."""
    causes = [
        f"{field}: {text}" for field, text in error.causes[:MAX_CAUSES] if text not in error.message
    ]
    return " ".join(["The cluster refused it:", error.message, *causes])


def _retry_step(step: Step, workload: Workload, reason: str, seconds: float | None) -> None:
    wait = compute_backoff(workload.tries) if seconds is None else seconds
    step.enqueue_after(wait, str(workload.pk), journal.record_delay(workload.pk, reason, wait))
