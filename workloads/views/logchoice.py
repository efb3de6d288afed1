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
from workloads.logbook.live_logs import Selection
from workloads.models import Log, Pod, Workload

COLOURS = 8
MOST_PARTS = 100
"""Parts of an attempt's logs that are offered."""


@dataclass(frozen=True, slots=True)
class LogChoice:
    """The logs to show, in the order of ranks.

    `log` is the chosen one; None means those of `attempt` from `first` on, merged. `count` is how
    many logs there are, which may be more than can be merged.
    """

    attempt: int
    log: Log | None
    logs: Sequence[Log]
    first: int = 0
    count: int = 0

    @property
    def query(self) -> str:
        if self.log:
            return f"log={self.log.pk}"
        return f"attempt={self.attempt}" + (f"&from={self.first}" if self.first else "")

    @property
    def selection(self) -> Selection:
        return Selection(self.log.pk, self.log.pod_id) if self.log else Selection(first=self.first)

    @property
    def parts(self) -> Sequence[tuple[int, int]]:
        """The parts in which the logs are merged, from and to, counted from 1; none for all."""
        if self.count <= windows.MOST_LOGS:
            return []
        return [
            (first + 1, min(first + windows.MOST_LOGS, self.count))
            for first in range(0, self.count, windows.MOST_LOGS)
        ][:MOST_PARTS]


def get_workload(user: User, pk: uuid.UUID) -> Workload:
    """Return the workload, if this person may see it. Raises Http404."""
    rows = Workload.objects.visible_to(user).only(*attempt_state.WORKLOAD_FIELDS)
    workload: Workload = get_object_or_404(rows, pk=pk)
    return workload


def load_choice(workload: Workload, query: QueryDict, *, with_logs: bool = True) -> LogChoice:
    """Load what the address asks for. Raises Http404 for a log of another workload.

    Without logs those of an attempt are only counted.
    """
    if (log_id := parse_number(query.get("log"))) is not None:
        rows = Log.objects.filter(pod__workload=workload).select_related("pod").defer("pod__data")
        log = get_object_or_404(rows, pk=log_id)
        return LogChoice(log.pod.attempt, log, [log])
    attempt = parse_number(query.get("attempt"))
    attempt = workload.attempt if attempt is None else attempt
    # At the beginning of a part, so that all who look at a part share what is read.
    first = (parse_number(query.get("from"), 6) or 0) // windows.MOST_LOGS * windows.MOST_LOGS
    logs = attempt_state.load_logs(workload.pk, attempt, first) if with_logs else []
    count = len(logs)
    if first or not with_logs or count >= windows.MOST_LOGS:
        count = Log.objects.filter(pod__workload=workload, pod__attempt=attempt).count()
    return LogChoice(attempt, None, logs, first, count)


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
    """List the first pods of the attempt with their logs.

    A chosen pod that is not among them comes first, where it is seen.
    """
    chosen_pod = choice.log.pod_id if choice.log else None
    pods = [*(pod for pod in current.others if pod.pk == chosen_pod), *current.pods]
    return [
        _build_tab(pod, current.logs.get(pod.pk, ()), choice.log if pod.pk == chosen_pod else None)
        for pod in pods
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

    The link names the pod or its row's id; `find` is what a person typed: a rank or a name of the
    attempt.
    """
    if typed := query.get("find", "").replace("\x00", "").strip():
        return _find_typed_log(workload, typed, parse_number(query.get("attempt")))
    wanted = query.get("pod", "").replace("\x00", "")
    number = parse_number(wanted)
    return _find_log(workload, Q(pod__pk=number) if number is not None else Q(pod__name=wanted))


def _find_typed_log(workload: Workload, typed: str, attempt: int | None) -> Log | None:
    of_attempt = Q(pod__attempt=workload.attempt if attempt is None else attempt)
    rank = parse_number(typed, 9)
    if rank is not None:
        return _find_log(workload, of_attempt & Q(pod__rank=rank))
    return _find_log(workload, of_attempt & Q(pod__name=typed)) or _find_log(
        workload, of_attempt & Q(pod__name__icontains=typed)
    )


def _find_log(workload: Workload, match: Q) -> Log | None:
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
