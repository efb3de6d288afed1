"""One reconciliation of one batch/v1 Job: counts ended pods, starts or removes pods, writes the
status.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice

from localkube import clock
from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.index_failures import IndexFailures
from localkube.controllers.job_indexes import PodIndexes
from localkube.controllers.job_memory import JobMemory
from localkube.controllers.job_outcomes import (
    END_CONDITIONS,
    Outcome,
    find_announced_outcome,
    find_index_failure,
)
from localkube.controllers.job_pods import build_job_pod, index_of, release_pod, sort_for_removal
from localkube.controllers.job_rules import (
    FailureAction,
    JobSpec,
    completion_index,
    exceeds_restart_limit,
    find_success_rule,
    format_indexes,
    match_failure_policy,
    parse_indexes,
    seconds_until_retry,
    set_job_condition,
)
from localkube.controllers.operator_reconciler import (
    LARGE_JOB,
    LIMITED,
    STATUS_PAUSE_SECONDS,
    find_earliest,
)
from localkube.controllers.owned_objects import AHEAD_FACTOR, PODS_PER_RECONCILE
from localkube.controllers.pod_state import finish_time, phase_of, was_shut_down
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, deep_copy, is_terminating, name_of, namespace_of
from localkube.objects import Objects
from localkube.resources import JOBS, PODS
from localkube.resources.job_index_rules import MAX_INDEXED
from localkube.store import Record
from localkube.tallies import Tally

COUNTED_FIELDS = ("succeeded", "failed", "completedIndexes", "failedIndexes")
"""The fields of the status that are nowhere else: the pods that they count are released."""

MAX_DELAYED = 4096
"""How many indexes that wait after a failure are passed over for others, at most."""

LATEST_PODS = 32
"""How many ended pods are read for the delay before another one, which ten already make longest."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """What the controller of Jobs works with; the same for all of them."""

    objects: Objects
    children: Children
    recorder: EventRecorder
    pods_ahead: int
    """How many unfinished pods one Job may have."""


class JobReconciler:
    """The state of one reconciliation. The status is changed in a copy and written once, at the
    end.

    The pods are counted by the store; only those that are dealt with are read, a batch at a time.
    """

    def __init__(self, context: JobContext, job: Object, memory: JobMemory) -> None:
        self._context = context
        self._objects = context.objects
        self._children = context.children
        self._recorder = context.recorder
        self._memory = memory
        self._job = job
        self._spec = JobSpec.from_job(job)
        self._status: Object = deep_copy(job.get("status") or {})
        self._conditions: list[Object] = self._status.setdefault("conditions", [])
        completions, status = self._spec.completions or 0, self._status
        self._completed_indexes = parse_indexes(status.get("completedIndexes") or "", completions)
        self._failed_indexes: set[int] = set()
        if self._spec.limit_per_index is not None:
            self._failed_indexes = parse_indexes(status.get("failedIndexes") or "", completions)
        self._failed_count = int(self._status.get("failed") or 0)
        self._succeeded_count = (
            len(self._completed_indexes)
            if self._spec.indexed
            else int(self._status.get("succeeded") or 0)
        )
        self._policy_failure = ""
        if self._spec.indexed and memory.pod_indexes is None:
            # Before anything is written: what this reconciliation writes may be taken back.
            memory.pod_indexes = PodIndexes(self._iterate_pods(lambda tally: True))

    def reconcile(self) -> float | None:
        """Do everything that is due; return the seconds until the next reconciliation, if any."""
        if not self._spec.suspended:
            self._start_or_resume()
        has_more_ended = self._count_ended_pods()
        outcome = (
            find_announced_outcome(self._conditions)
            or self._find_failure()
            or self._find_policy_success()
        )
        delay: float | None = 0 if has_more_ended else None
        if outcome is not None:
            delay = find_earliest(delay, self._delete_active_pods())
        elif not is_terminating(self._job) and not has_more_ended:
            # Not before all ended pods are counted: one that is not looks as if it were missing.
            delay = self._scale_pods()
            outcome = self._find_success()
            if outcome is None:
                self._report_suspension()
        if outcome is not None:
            self._set_end_conditions(outcome)
        deadline = None if outcome is not None else self._seconds_until_deadline()
        return find_earliest(delay, self._write_status(), deadline)

    def _start_or_resume(self) -> None:
        """Set the start time of a Job that is not suspended, anew when it was.

        It must come before the deadline is looked at: the time before a resumption does not count
        against activeDeadlineSeconds.
        """
        self._status.setdefault("startTime", clock.format_time())
        if set_job_condition(self._conditions, "Suspended", False, "JobResumed", "Job resumed"):
            self._recorder.record_event(self._job, "Normal", "Resumed", "Job resumed")
            self._status["startTime"] = clock.format_time()

    def _tallies(self) -> Mapping[Tally, int]:
        """Return the counts of the Job's pods as they are now."""
        return self._objects.store.count_controlled(PODS.key, self._job["metadata"]["uid"])

    def _iterate_pods(self, wanted: Callable[[Tally], bool]) -> Iterator[Record]:
        return self._objects.store.iterate_controlled(
            PODS.key, self._job["metadata"]["uid"], wanted
        )

    def _read_pods(self, wanted: Callable[[Tally], bool]) -> Sequence[Object]:
        """Return a batch of the pods with a wanted tally."""
        records = list(islice(self._iterate_pods(wanted), PODS_PER_RECONCILE))
        return [self._objects.decode_record(PODS, record) for record in records]

    def _read_latest_pods(self, wanted: Callable[[Tally], bool]) -> Sequence[Object]:
        """Return those of the pods with a wanted tally that got it last, LATEST_PODS of them."""
        records = deque(self._iterate_pods(wanted), maxlen=LATEST_PODS)
        return [self._objects.decode_record(PODS, record) for record in records]

    def _count_active_pods(self) -> int:
        return sum(count for tally, count in self._tallies().items() if tally.is_active)

    def _count_ended_pods(self) -> bool:
        """Count each ended pod of a batch once; its finalizer is removed together with the count.

        Returns whether there are more.
        """
        pods = self._read_pods(self._is_uncounted)
        for pod in pods:
            if phase_of(pod) == "Succeeded":
                self._count_success(pod)
            else:
                self._count_failure(pod)
            release_pod(self._objects, pod)
        return any(self._is_uncounted(tally) for tally in self._tallies())

    def _is_uncounted(self, tally: Tally) -> bool:
        if not tally.tracked:
            return False
        if tally.is_finished:
            return True
        # Without a grace period the kubelet has confirmed the deletion: only the finalizer is left.
        return tally.terminating and (
            self._spec.replace_terminating or not tally.in_grace or is_terminating(self._job)
        )

    def _count_success(self, pod: Object) -> None:
        last, end = self._memory.last_success, finish_time(pod)
        self._memory.last_success = end if last is None else max(last, end)
        if not self._spec.indexed:
            self._succeeded_count += 1
        elif 0 <= completion_index(pod) < (self._spec.completions or 0):
            self._completed_indexes.add(completion_index(pod))
            self._succeeded_count = len(self._completed_indexes)

    def _count_failure(self, pod: Object) -> None:
        if was_shut_down(pod):
            # A node shutdown is not the pod's fault: replace it without counting a failure.
            self._children.delete(self._job, PODS, pod)
            return
        action, text = (
            match_failure_policy(pod, self._spec.failure_rules)
            if phase_of(pod) == "Failed"
            else ("Count", "")
        )
        if action == "FailJob":
            self._policy_failure = self._policy_failure or text
        if action != "Ignore":
            self._failed_count += 1
        if self._spec.limit_per_index is not None:
            self._count_index_failure(pod, action, self._spec.limit_per_index)

    def _count_index_failure(self, pod: Object, action: FailureAction, limit: int) -> None:
        index = completion_index(pod)
        if not 0 <= index < (self._spec.completions or 0) or index in self._completed_indexes:
            return
        before = self._load_index_failures().add_failure(pod, is_ignored=action == "Ignore")
        if action == "FailIndex" or (action == "Count" and before >= limit):
            self._failed_indexes.add(index)

    def _load_index_failures(self) -> IndexFailures:
        """Return the failures of the indexes; of a Job that is not remembered, from its pods."""
        if self._memory.index_failures is None:
            ended_indexes = self._completed_indexes | self._failed_indexes
            records = self._iterate_pods(lambda tally: tally.phase != "Succeeded")
            pods = (
                self._objects.decode_record(PODS, record)
                for record in records
                if index_of(record) not in ended_indexes
            )
            self._memory.index_failures = IndexFailures.from_pods(pods, self._spec.failure_rules)
        return self._memory.index_failures

    def _find_failure(self) -> Outcome | None:
        if self._policy_failure:
            return "FailureTarget", "PodFailurePolicy", self._policy_failure
        if self._failed_count > self._spec.backoff_limit or exceeds_restart_limit(
            self._tallies(), self._spec
        ):
            return (
                "FailureTarget",
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            )
        seconds_left = self._seconds_until_deadline()
        if seconds_left is not None and seconds_left <= 0:
            return (
                "FailureTarget",
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            )
        return find_index_failure(self._spec, self._succeeded_count, len(self._failed_indexes))

    def _find_policy_success(self) -> Outcome | None:
        """Return the success that a rule of the success policy grants before all have succeeded."""
        rules, state = self._spec.success_rules, (self._spec.completions, self._completed_indexes)
        # The rules never change, and reading their indexes may take milliseconds.
        if not rules or self._memory.checked_successes == state:
            return None
        number = find_success_rule(rules, self._completed_indexes, self._spec.completions or 0)
        if number is None:
            self._memory.checked_successes = state[0], set(self._completed_indexes)
            return None
        return "SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {number}"

    def _find_success(self) -> Outcome | None:
        completions = self._spec.completions
        # Without completions (a work queue), one success is enough, once all pods have ended.
        has_enough = (
            self._succeeded_count > 0
            if completions is None
            else self._succeeded_count >= completions
        )
        if not has_enough or self._count_active_pods():
            return None
        return (
            "SuccessCriteriaMet",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )

    def _seconds_until_deadline(self) -> float | None:
        start = self._status.get("startTime")
        if self._spec.deadline_seconds is None or self._spec.suspended or not start:
            return None
        return (
            clock.parse_time(str(start))
            + clock.bound_seconds(self._spec.deadline_seconds)
            - clock.current_time()
        ).total_seconds()

    def _delete_active_pods(self) -> float | None:
        """Delete a batch of the pods that still run when a Job ends; return 0 when there are more.

        They stay until they are counted.
        """
        for pod in self._read_pods(lambda tally: tally.is_active):
            self._children.delete(self._job, PODS, pod)
        return 0 if self._count_active_pods() else None

    def _scale_pods(self) -> float | None:
        """Start or remove pods until the wanted number is active; never both at once."""
        spec = self._spec
        active = self._count_active_pods()
        wanted = 0 if spec.suspended else self._count_wanted_pods(active)
        if active > wanted:
            self._remove_surplus_pods(active - wanted, removes_all=not wanted)
            return 0 if active - wanted > PODS_PER_RECONCILE else None
        tallies = self._tallies().items()
        ending = sum(n for tally, n in tallies if tally.terminating and not tally.is_finished)
        missing = wanted - active - (0 if spec.replace_terminating else ending)
        room = self._context.pods_ahead - active - ending
        self._report_held_back_pods(wanted)
        return self._start_pods(min(missing, room)) if min(missing, room) > 0 else None

    def _remove_surplus_pods(self, surplus: int, *, removes_all: bool) -> None:
        """Remove a batch of surplus pods; their order counts unless all have to go."""
        records: Iterable[Record] = self._iterate_pods(lambda tally: tally.is_active)
        if not removes_all:
            records = sort_for_removal(
                records, self._spec.completions if self._spec.indexed else None
            )
        for record in list(islice(records, min(surplus, PODS_PER_RECONCILE))):
            pod = self._objects.decode_record(PODS, record)
            # Release it first: the count must not take a pod that the Job itself removes for a
            # failure.
            release_pod(self._objects, pod)
            self._children.delete(self._job, PODS, pod)

    def _count_wanted_pods(self, active: int) -> int:
        if self._spec.completions is None:
            return active if self._succeeded_count else self._spec.parallelism
        open_count = self._spec.completions - self._succeeded_count - len(self._failed_indexes)
        return max(0, min(self._spec.parallelism, open_count))

    def _report_held_back_pods(self, wanted: int) -> None:
        most = self._context.pods_ahead
        text = (
            f"The Job wants {wanted} pods at once; at most {most} of a Job are made before others "
            f"of it have ended, {AHEAD_FACTOR} times the pods of all nodes: start localkube with a "
            "larger --max-pods for more"
        )
        if wanted <= most:
            text = "The Job may have all the pods that it wants"
        is_limited = wanted > most
        if set_job_condition(self._conditions, LIMITED, is_limited, LIMITED, text) and is_limited:
            self._recorder.record_event(self._job, "Warning", LIMITED, text)

    def _start_pods(self, missing: int) -> float | None:
        """Start a batch of the missing pods; return the seconds until more may be started."""
        if self._spec.limit_per_index is not None:
            return self._start_independent_pods(missing)
        delay = seconds_until_retry(
            self._find_failure_times(), self._find_last_success(), clock.current_time()
        )
        if delay > 0:
            return delay
        batch = min(missing, PODS_PER_RECONCILE)
        indexes: Sequence[int | None] = (
            self._find_free_indexes(batch) if self._spec.indexed else [None] * batch
        )
        for index in indexes:
            created = self._children.create(self._job, PODS, build_job_pod(self._job, index))
            if created is None:
                return RETRY_AFTER
        return 0 if missing > batch else None

    def _start_independent_pods(self, missing: int) -> float | None:
        """Start pods of indexes each of which waits after its own failures only."""
        failures, now = self._load_index_failures(), clock.current_time()
        batch = min(missing, PODS_PER_RECONCILE)
        delayed_count = sum(
            index not in self._failed_indexes for index in failures.list_delayed(now)
        )
        # Those that wait may be the lowest of all, and hold up no other.
        free = self._find_free_indexes(batch, min(delayed_count, MAX_DELAYED))
        delays = {index: failures.seconds_until_retry(index, now) for index in free}
        ready = [index for index, delay in delays.items() if delay <= 0][:batch]
        for index in ready:
            pod = build_job_pod(self._job, index, failures.build_annotations(index))
            if self._children.create(self._job, PODS, pod) is None:
                return RETRY_AFTER
        if len(ready) == missing:
            return None
        if len(ready) == batch:
            return 0
        return min((delay for delay in delays.values() if delay > 0), default=None)

    def _find_failure_times(self) -> Sequence[datetime]:
        """Return when the latest failed pods ended."""
        failed = self._read_latest_pods(
            lambda tally: tally.phase == "Failed" and not tally.shut_down
        )
        rules = self._spec.failure_rules
        return [
            finish_time(pod) for pod in failed if match_failure_policy(pod, rules)[0] != "Ignore"
        ]

    def _find_last_success(self) -> datetime | None:
        """Return when a pod last succeeded, as far as it is remembered or a pod still says so."""
        memory = self._memory
        if memory.last_success is None:
            pods = self._read_latest_pods(lambda tally: tally.phase == "Succeeded")
            memory.last_success = max(map(finish_time, pods), default=None)
        return memory.last_success

    def _find_free_indexes(self, count: int, more: int = 0) -> Sequence[int]:
        """Return the lowest indexes that have not succeeded and have no pod that still may.

        The caller knows that there are `count` of them; up to `more` are returned beyond these.
        """
        pod_indexes, spec = self._memory.pod_indexes, self._spec
        assert pod_indexes is not None
        find = partial(
            pod_indexes.find_free,
            count + more,
            min(spec.completions or 0, MAX_INDEXED),
            self._completed_indexes | self._failed_indexes
            if self._failed_indexes
            else self._completed_indexes,
            replaces_ending=spec.replace_terminating,
        )
        indexes = find()
        if len(indexes) < count:
            # Anybody may write a status, so that indexes that had succeeded have not.
            pod_indexes.search_again()
            indexes = find()
        return indexes

    def _report_suspension(self) -> None:
        if self._spec.suspended and set_job_condition(
            self._conditions, "Suspended", True, "JobSuspended", "Job suspended"
        ):
            self._recorder.record_event(self._job, "Normal", "Suspended", "Job suspended")

    def _set_end_conditions(self, outcome: Outcome) -> None:
        """Announce the Job's outcome and, once no pod is left to wait for, set its end."""
        kind, reason, message = outcome
        set_job_condition(self._conditions, kind, True, reason, message)
        if any(tally.tracked or not tally.is_finished for tally in self._tallies()):
            return
        set_job_condition(self._conditions, END_CONDITIONS[kind], True, reason, message)
        if kind == "SuccessCriteriaMet":
            self._status["completionTime"] = clock.format_time()
            self._recorder.record_event(self._job, "Normal", "Completed", "Job completed")
        else:
            self._recorder.record_event(self._job, "Warning", reason, message)

    def _write_status(self) -> float | None:
        """Write a changed status; return the seconds until it may be written, if not yet.

        Of a large Job counts alone are written at most twice a second.
        """
        self._set_counts()
        if not self._conditions:
            del self._status["conditions"]
        stored, memory = self._job.get("status") or {}, self._memory
        if self._status == stored:
            return None
        now = clock.current_time().timestamp()
        is_same_state = self._status.get("conditions") == stored.get("conditions")
        total = sum(self._tallies().values())
        # What was counted and released is nowhere else, so it is written at once.
        is_counted = all(self._status.get(part) == stored.get(part) for part in COUNTED_FIELDS)
        if total > LARGE_JOB and is_same_state and is_counted:
            written_at = memory.status_written_at
            if written_at is not None and 0 <= now - written_at < STATUS_PAUSE_SECONDS:
                return STATUS_PAUSE_SECONDS - (now - written_at)
        memory.status_written_at = now
        self._objects.modify(
            JOBS,
            namespace_of(self._job),
            name_of(self._job),
            lambda job: job.update(status=self._status),
            subresource="status",
        )
        return None

    def _set_counts(self) -> None:
        tallies = self._tallies().items()
        counts = {
            "active": sum(count for tally, count in tallies if tally.is_active),
            "succeeded": self._succeeded_count,
            "failed": self._failed_count,
        }
        for field, count in counts.items():
            self._status.pop(field, None)
            if count:
                self._status[field] = count
        self._status["ready"] = sum(n for tally, n in tallies if tally.is_active and tally.ready)
        self._status["terminating"] = sum(
            count for tally, count in tallies if tally.terminating and not tally.is_finished
        )
        self._status["uncountedTerminatedPods"] = {}
        if self._completed_indexes:
            self._status["completedIndexes"] = format_indexes(self._completed_indexes)
        if self._spec.limit_per_index is not None:
            self._status["failedIndexes"] = format_indexes(self._failed_indexes)
