"""The choice of logs: one run of a container, or all of an attempt."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q
from django.http import Http404, QueryDict
from django.shortcuts import get_object_or_404

from console.texts import parse_number
from projects.models import User
from workloads.logbook import attempt_state, windows
from workloads.logbook.attempt_state import AttemptState
from workloads.models import Log, Pod, Workload

COLOURS = 8


@dataclass(frozen=True, slots=True)
class LogChoice:
    """The logs to show, in the order of ranks.

    `log` is the chosen one; None means all of `attempt`, merged. `is_cut` says that there are more
    than can be merged.
    """

    attempt: int
    log: Log | None
    logs: Sequence[Log]
    is_cut: bool = False

    @property
    def query(self) -> str:
        return f"log={self.log.pk}" if self.log else f"attempt={self.attempt}"


def get_workload(user: User, pk: uuid.UUID) -> Workload:
    """Return the workload, if this person may see it. Raises Http404."""
    rows = Workload.objects.visible_to(user).only(*attempt_state.WORKLOAD_FIELDS)
    workload: Workload = get_object_or_404(rows, pk=pk)
    return workload


def load_logs(workload: Workload, attempt: int) -> "list[Log]":
    """Load the logs of an attempt, by rank; at most one more than can be merged."""
    rows = (
        Log.objects.filter(pod__workload=workload, pod__attempt=attempt)
        .select_related("pod")
        .defer("pod__data")
    )
    return list(
        rows.order_by("pod__rank", "pod_id", "-is_init", "container", "run")[
            : windows.MOST_LOGS + 1
        ]
    )


def load_choice(workload: Workload, query: QueryDict) -> LogChoice:
    """Load what the address asks for. Raises Http404 for a log of another workload."""
    if (log_id := parse_number(query.get("log"))) is not None:
        rows = Log.objects.filter(pod__workload=workload).select_related("pod").defer("pod__data")
        log = get_object_or_404(rows, pk=log_id)
        return LogChoice(log.pod.attempt, log, [log])
    attempt = parse_number(query.get("attempt"))
    attempt = workload.attempt if attempt is None else attempt
    logs = load_logs(workload, attempt)
    return LogChoice(attempt, None, logs[: windows.MOST_LOGS], len(logs) > windows.MOST_LOGS)


def choose_default_log(logs: Sequence[Log]) -> Log | None:
    """Return a pod's first log to show: the newest run of its first main container."""
    mains = [log for log in logs if not log.is_init] or list(logs)
    first = min((log.container for log in mains), default="")
    return max(
        (log for log in mains if log.container == first), key=lambda log: log.run, default=None
    )


@dataclass(frozen=True, slots=True)
class PodTab:
    """One pod among the tabs; further pods have links in the pods dialog."""

    pod: Pod
    logs: Sequence[Log]
    log: Log | None
    is_here: bool
    has_ended: bool
    colour: int

    @property
    def appearance(self) -> tuple[object, ...]:
        """Everything that is visible of the tab."""
        return self.pod.name, self.log and self.log.pk, self.is_here, self.has_ended, self.colour


def list_tabs(current: AttemptState, choice: LogChoice) -> list[PodTab]:
    """List the pods of the attempt with their logs."""
    chosen_pod = choice.log.pod_id if choice.log else None
    return [
        _build_tab(pod, current.logs.get(pod.pk, ()), choice.log if pod.pk == chosen_pod else None)
        for pod in current.pods
    ]


def _build_tab(pod: Pod, logs: Sequence[Log], chosen_log: Log | None) -> PodTab:
    ended = pod.phase in ("Succeeded", "Failed") or pod.vanished_at is not None
    return PodTab(
        pod,
        logs,
        chosen_log or choose_default_log(logs),
        chosen_log is not None,
        ended,
        choose_colour(pod),
    )


def choose_colour(pod: Pod) -> int:
    """Return the colour of a pod's lines, by its rank."""
    return (pod.rank if pod.rank is not None else pod.pk) % COLOURS


def find_pod_log(workload: Workload, query: QueryDict) -> Log | None:
    """Return the log that a link to a pod means, if any.

    The link names the pod or its row's id.
    """
    wanted = query.get("pod", "").replace("\x00", "")
    number = parse_number(wanted)
    match = Q(pod__pk=number) if number is not None else Q(pod__name=wanted)
    logs = (
        Log.objects.filter(match, pod__workload=workload)
        .select_related("pod")
        .defer("pod__data")
        .order_by("-pod_id")[:64]
    )
    newest = [log for log in logs if log.pod_id == logs[0].pod_id]
    return choose_default_log(newest)


def get_choice(user: User, pk: uuid.UUID, query: QueryDict) -> tuple[Workload, LogChoice]:
    """Return the workload and its chosen logs. Raises Http404."""
    workload = get_workload(user, pk)
    choice = load_choice(workload, query)
    if query.get("log") and choice.log is None:
        raise Http404("There is no such log.")
    return workload, choice
