"""The worker of one pod on this machine: a loop that compares pod and disk and does what is due.

It lives from the pod's binding to its last process. Nothing that matters is kept in memory only:
the directories of the runs say what was started and how it ended, the pod's object says what is
wanted. So a server that was killed anywhere continues from both, and starts nothing twice.
"""

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from pathlib import Path

from localkube import clock
from localkube.errors import ApiError
from localkube.kubelet import (
    attempts,
    pod_admission,
    pod_status,
    removal,
    run_plan,
    runs,
    volumes,
)
from localkube.kubelet.attempts import CANNOT_RUN, STATUS_UNKNOWN, Attempt
from localkube.kubelet.container_starter import (
    RETRY_SECONDS,
    ContainerStarter,
    container_field_path,
)
from localkube.kubelet.pod_status import Verdict
from localkube.kubelet.run_plan import AttemptHistory
from localkube.kubelet.run_specs import NodeContext
from localkube.kubelet.termination_messages import TerminationMessages
from localkube.lifecycle import DEFAULT_GRACE_SECONDS, DeleteOptions
from localkube.metadata import FINISHED_PHASES, Object, find_condition, is_terminating, uid_of
from localkube.resources import PODS

SYNC_SECONDS = 30.0
"""A pod to which nothing happens is synced this often all the same."""

STARTING_SECONDS = 0.02
"""How soon a container that is being started is looked at again."""

MAX_RETRY_SECONDS = 30.0

LAST_READ_SECONDS = 1.0
"""How long a deleted pod stays after its last container has ended, so that its log can be read.

A real kubelet takes as long: it looks for ended containers once a second (PLEG).
"""

log = logging.getLogger(__name__)


class PodWorker:
    """Runs one pod, named by its uid: a later pod of the same name has a worker of its own.

    `rebooted` says that the machine was rebooted since the pod was last seen.
    """

    def __init__(
        self, context: NodeContext, namespace: str, name: str, uid: str, *, rebooted: bool = False
    ) -> None:
        self._context = context
        self._namespace = namespace
        self._name = name
        self._uid = uid
        self._rebooted = rebooted
        self.directory = context.pods_directory / uid
        self._starter = ContainerStarter(context, self.directory)
        self._messages = TerminationMessages()
        self._wake = asyncio.Event()
        self._watchers: dict[Path, asyncio.Task[None]] = {}
        self._reported_starts: set[Path] | None = None
        self._reported_back_offs: set[Path] = set()
        self._stop_times: dict[Path, datetime] = {}
        self._verdict: Verdict | None = None
        self._requested_verdict: Verdict | None = None
        self._max_grace = float("inf")
        self.supervisor_pids: dict[str, int] = {}
        """The supervisor's pid of each container that ran at the last sync."""

    def wake(self) -> None:
        """Sync the pod now."""
        self._wake.set()

    def request_end(self, verdict: Verdict, max_grace: float) -> None:
        """End the pod within `max_grace` seconds, unless it is at its end anyway.

        Its own grace period may be longer; `max_grace` wins.
        """
        self._requested_verdict = verdict
        self._max_grace = max_grace
        self._wake.set()

    async def run(self) -> None:
        """Work until the pod is at its end and nothing of it runs, or it is gone from the store.

        A failed sync is tried again.
        """
        failures = 0
        try:
            while True:
                self._wake.clear()
                try:
                    pause = await self._sync_pod()
                    failures = 0
                except Exception as error:
                    # No traceback for a refusal: on a full disk every pod gets one.
                    trace = not isinstance(error, ApiError)
                    log.error(
                        "pod %s/%s (%s): %s",
                        self._namespace,
                        self._name,
                        self._uid,
                        error,
                        exc_info=trace,
                    )
                    pause = min(MAX_RETRY_SECONDS, 2.0**failures)
                    failures += 1
                if pause is None:
                    return
                # Not asyncio.wait_for: in Python 3.11 that loses a cancellation that arrives
                # together with the wake-up.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
        finally:
            for watcher in self._watchers.values():
                watcher.cancel()

    async def _sync_pod(self) -> float | None:
        """Sync the pod once; return the seconds until the next sync, or None when all is over."""
        async with self._context.sync_lock:
            # Yield once, so that of thousands of workers that wake together each lets the API and
            # the other tasks run in between.
            await asyncio.sleep(0)
            if (pod := self._find_pod()) is not None:
                await self._messages.read_messages(
                    {c["name"]: c for c in pod_status.all_containers(pod)}, self._load_history(pod)
                )
            pause = self._sync_once()
        if pause is None:
            await self._finish_pod()
        return pause

    def _sync_once(self) -> float | None:
        """Run the part of a sync that awaits nothing, so that nobody else writes in between.

        Returns None at the pod's end.
        """
        pod = self._find_pod()
        if pod is None or _is_finished(pod):
            return None
        history = self._load_history(pod)
        if not self._messages.has_all(history):
            return 0.0
        self._report_starts(pod, history)
        self._decide_verdict(pod, history)
        if not self._is_ending(pod):
            if not self._admit_pod(pod, history):
                return None
            # Admission may have given it devices.
            pod = self._find_pod() or pod
        pause = (
            self._end_pod(pod, history)
            if self._is_ending(pod)
            else self._start_due_containers(pod, history)
        )
        history = self._load_history(pod)
        if not self._messages.has_all(history):
            return 0.0
        self._watch_runs(history)
        self.supervisor_pids = run_plan.supervisor_pids(history)
        pod = self._write_status(pod, history)
        if _is_finished(pod):
            return None
        return min(pause, self._seconds_until_settled(history), self._seconds_until_deadline(pod))

    def _find_pod(self) -> Object | None:
        pod = self._context.objects.find(PODS, self._namespace, self._name)
        return pod if pod is not None and uid_of(pod) == self._uid else None

    def _load_history(self, pod: Object) -> AttemptHistory:
        """Return what the disk knows of each container."""
        old = pod.get("status") or {}
        stored = {
            entry.get("name"): entry
            for part in ("initContainerStatuses", "containerStatuses")
            for entry in old.get(part) or ()
        }
        names = [container["name"] for container in pod_status.all_containers(pod)]
        return {
            name: attempts.load_attempts(self.directory, name, stored.get(name)) for name in names
        }

    # Starting

    def _admit_pod(self, pod: Object, history: AttemptHistory) -> bool:
        """Return whether the node takes the pod; fail it when not."""
        rejection = self._context.admission.admit_pod(pod, has_run=any(history.values()))
        if rejection is None:
            return True

        def change(current: Object) -> None:
            current["status"] = pod_admission.build_rejected_status(current, rejection)

        self._context.objects.modify(
            PODS, self._namespace, self._name, change, subresource="status"
        )
        self._context.recorder.record_event(pod, "Warning", rejection.reason, rejection.message)
        return False

    def _start_due_containers(self, pod: Object, history: AttemptHistory) -> float:
        """Start each container that may run, and end sidecars that are no longer needed.

        Returns the seconds until one may be due again.
        """
        pauses = [
            self._start_container(pod, container, run_plan.newest_attempt(history, container))
            for container in run_plan.containers_to_run(pod, history)
        ]
        if run_plan.main_containers_done(pod, history):
            self._stop_containers(pod, history, self._remaining_grace(pod))
        return min(pauses, default=SYNC_SECONDS)

    def _start_container(self, pod: Object, container: Object, newest: Attempt | None) -> float:
        if newest is not None and (
            isinstance(newest.state, runs.Running)
            or (self._starter.has_requested(newest) and newest.is_live)
        ):
            return SYNC_SECONDS
        if newest is not None and isinstance(newest.state, runs.Exited):
            moment = attempts.restart_time(newest, run_plan.restart_policy(pod, container))
            if moment is None:
                return SYNC_SECONDS
            wait = (moment - clock.current_time()).total_seconds()
            if wait > 0:
                self._report_back_off(pod, container, newest)
                return wait
        return (
            SYNC_SECONDS if self._starter.start_container(pod, container, newest) else RETRY_SECONDS
        )

    def _report_back_off(self, pod: Object, container: Object, newest: Attempt) -> None:
        if newest.directory not in self._reported_back_offs:
            self._reported_back_offs.add(newest.directory)
            text = (
                f"Back-off restarting failed container {container['name']} in pod "
                f"{run_plan.pod_full_name(pod)}"
            )
            self._context.recorder.record_event(
                pod, "Warning", "BackOff", text, field_path=container_field_path(pod, container)
            )

    # Ending

    def _is_ending(self, pod: Object) -> bool:
        return self._verdict is not None or is_terminating(pod)

    def _decide_verdict(self, pod: Object, history: AttemptHistory) -> None:
        """Find out whether the pod must end for another reason than its deletion; that then stays.

        A pod whose containers are done keeps its own end, whoever asks; one that a reboot of the
        machine tore away does not.
        """
        if self._verdict is not None:
            return
        is_done = (
            pod_status.phase_of(
                pod, self._build_views(pod, history), live=run_plan.has_live_run(history)
            )
            in FINISHED_PHASES
        )
        exits = [
            attempt_list[-1].state
            for attempt_list in history.values()
            if attempt_list and isinstance(attempt_list[-1].state, runs.Exited)
        ]
        was_torn = self._rebooted and any(
            exit_state.reason == STATUS_UNKNOWN for exit_state in exits
        )
        disruption = (
            find_condition((pod.get("status") or {}).get("conditions") or (), "DisruptionTarget")
            or {}
        )
        deadline = run_plan.pod_deadline(pod)
        if (
            was_torn
            or disruption.get("reason") == "TerminationByKubelet"
            or (self._requested_verdict and not is_done)
        ):
            self._verdict = self._requested_verdict or pod_status.NODE_SHUTDOWN
        elif deadline is not None and clock.current_time() >= deadline:
            in_time = is_done and all(
                exit_state.finished_at is not None and exit_state.finished_at <= deadline
                for exit_state in exits
            )
            if not in_time:
                self._verdict = pod_status.DEADLINE_EXCEEDED
                self._context.recorder.record_event(
                    pod, "Normal", self._verdict.reason, self._verdict.message
                )

    def _end_pod(self, pod: Object, history: AttemptHistory) -> float:
        """Stop all that runs.

        A verdict is written first: a server that is killed now must know it again.
        """
        if self._verdict is not None:
            try:
                self._write_status(pod, history)
            except ApiError as refusal:
                # Go on: on a full disk the pod must end all the same, as it may be what fills it.
                log.warning(
                    "why pod %s/%s ends was not written: %s",
                    self._namespace,
                    self._name,
                    refusal.message,
                )
        self._stop_containers(pod, history, self._remaining_grace(pod))
        return SYNC_SECONDS

    def _remaining_grace(self, pod: Object) -> float:
        """Return the seconds that the containers still have."""
        spec_grace = pod["spec"].get("terminationGracePeriodSeconds")
        grace = float(DEFAULT_GRACE_SECONDS if spec_grace is None else spec_grace)
        if is_terminating(pod):
            deletion_grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            # deletionTimestamp has whole seconds, so up to one second of the grace was cut off.
            seconds_left = (
                clock.parse_time(pod["metadata"]["deletionTimestamp"]) - clock.current_time()
            ).total_seconds() + 1
            grace = min(deletion_grace, max(0.0, seconds_left))
        return min(grace, self._max_grace, float(clock.MAX_SECONDS))

    def _stop_containers(self, pod: Object, history: AttemptHistory, grace: float) -> None:
        """Ask every live run to end within `grace`; a later request may only shorten the time."""
        until = clock.current_time() + timedelta(seconds=grace)
        for container in pod_status.all_containers(pod):
            newest = run_plan.newest_attempt(history, container)
            if newest is None or not newest.is_live:
                continue
            requested = self._stop_times.get(newest.directory)
            if requested is None:
                text = f"Stopping container {container['name']}"
                self._context.recorder.record_event(
                    pod, "Normal", "Killing", text, field_path=container_field_path(pod, container)
                )
            if requested is None or until < requested - timedelta(seconds=1):
                self._stop_times[newest.directory] = until
                runs.stop_run(newest.directory, grace)

    async def _remove_gone_pod(self) -> None:
        """Kill what runs of a pod that is gone, and remove its directory."""
        paths = [path for path in self.directory.glob("[!_]*/*") if path.name.isdigit()]
        live = [
            path
            for path in paths
            if isinstance(runs.read_run_state(path), runs.Starting | runs.Running)
        ]
        for path in live:
            runs.stop_run(path, 0)
        await asyncio.gather(*(runs.wait_until_ended(path) for path in live))
        await asyncio.to_thread(removal.remove_tree, self.directory)

    async def _finish_pod(self) -> None:
        """Free the disk space of a finished pod but for its logs, and confirm its deletion."""
        if (pod := self._find_pod()) is not None:
            await asyncio.to_thread(volumes.clear_pod_directory, self.directory)
            if is_terminating(pod) and pod_status.has_ended_containers(pod):
                await asyncio.sleep(LAST_READ_SECONDS)
        if (pod := self._find_pod()) is not None and is_terminating(pod):
            self._context.objects.delete(
                PODS, self._namespace, self._name, DeleteOptions(grace_seconds=0, uid=self._uid)
            )
        if self._find_pod() is None:
            await self._remove_gone_pod()

    # Reporting

    def _report_starts(self, pod: Object, history: AttemptHistory) -> None:
        """Record an event once for each run that was started under this server.

        Runs that existed at its start were reported before.
        """
        started = {
            name: attempt_list[-1]
            for name, attempt_list in history.items()
            if attempt_list and isinstance(attempt_list[-1].state, runs.Running | runs.Exited)
        }
        if self._reported_starts is None:
            self._reported_starts = {attempt.directory for attempt in started.values()}
        for container in pod_status.all_containers(pod):
            attempt = started.get(container["name"])
            if attempt is None or attempt.directory in self._reported_starts:
                continue
            self._reported_starts.add(attempt.directory)
            state, path = attempt.state, container_field_path(pod, container)
            if isinstance(state, runs.Exited) and state.reason == CANNOT_RUN:
                self._context.recorder.record_event(
                    pod, "Warning", "Failed", f"Error: {state.message}", field_path=path
                )
            else:
                self._context.recorder.record_event(
                    pod,
                    "Normal",
                    "Started",
                    f"Started container {container['name']}",
                    field_path=path,
                )

    def _watch_runs(self, history: AttemptHistory) -> None:
        """Wake the worker when a live run ends."""
        for attempt in (attempt_list[-1] for attempt_list in history.values() if attempt_list):
            if attempt.is_live and attempt.directory not in self._watchers:
                self._watchers[attempt.directory] = asyncio.create_task(
                    self._wait_for_end(attempt.directory)
                )

    async def _wait_for_end(self, directory: Path) -> None:
        await runs.wait_until_ended(directory)
        del self._watchers[directory]
        self._wake.set()

    def _build_views(
        self, pod: Object, history: AttemptHistory
    ) -> dict[str, pod_status.ContainerView]:
        troubles = {name: trouble.waiting for name, trouble in self._starter.troubles.items()}
        return run_plan.build_views(
            pod, self._messages.add_to_history(history), troubles, ending=self._is_ending(pod)
        )

    def _write_status(self, pod: Object, history: AttemptHistory) -> Object:
        """Write the resulting status if it differs from the stored one; return the pod as it then
        is.
        """
        views, live = self._build_views(pod, history), run_plan.has_live_run(history)
        prepared = self._starter.volumes_ready or any(history.values())

        def change(current: Object) -> None:
            current["status"] = pod_status.build_pod_status(
                current, views, live=live, volumes_ready=prepared, verdict=self._verdict
            )

        return self._context.objects.modify(
            PODS, self._namespace, self._name, change, subresource="status"
        )

    def _seconds_until_settled(self, history: AttemptHistory) -> float:
        is_starting = any(
            isinstance(attempt_list[-1].state, runs.Starting)
            for attempt_list in history.values()
            if attempt_list
        )
        return STARTING_SECONDS if is_starting else SYNC_SECONDS

    def _seconds_until_deadline(self, pod: Object) -> float:
        deadline = run_plan.pod_deadline(pod)
        if deadline is None or self._verdict is not None:
            return SYNC_SECONDS
        return max(0.0, (deadline - clock.current_time()).total_seconds())


def _is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED_PHASES
