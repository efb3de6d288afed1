"""One pod's life on this machine, from its binding to its last process: a loop that looks at pod
and disk and does what is due.

Nothing that matters is kept in memory only. The directories of the runs say what was started and
how it ended, the pod's object says what is wanted; so a server that was killed anywhere goes on
from both, and starts nothing twice.
"""

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from pathlib import Path

from localkube import clock
from localkube.errors import ApiError
from localkube.kubelet import attempts, pod_status, removal, run_plan, runs, volumes
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
"""A pod that nothing happens to is looked at this often all the same."""

STARTING_SECONDS = 0.02
"""How soon a container that is being started is looked at again."""

MAX_RETRY_SECONDS = 30.0

log = logging.getLogger(__name__)


class PodWorker:
    """Follows one pod, named by its uid: a namesake that is made later has a life of its own.

    `rebooted` says that the machine was started anew since the pod was last seen.
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
        """The supervisor's pid of each container that ran when last looked at."""

    def wake(self) -> None:
        """Look at the pod again now."""
        self._wake.set()

    def request_end(self, verdict: Verdict, max_grace: float) -> None:
        """End the pod, if it is not at its end anyway, within `most_grace` seconds even where its
        own grace is longer.
        """
        self._requested_verdict = verdict
        self._max_grace = max_grace
        self._wake.set()

    async def run(self) -> None:
        """Live until the pod is at its end and nothing of it runs, or it is gone from the store. A
        failed look is tried again.
        """
        failures = 0
        try:
            while True:
                self._wake.clear()
                try:
                    pause = await self._sync_pod()
                    failures = 0
                except Exception as error:
                    # A refusal says all there is to say; on a full disk every pod gets one.
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
                # Not asyncio.wait_for: in Python 3.11 that forgets a cancellation that comes
                # together with the wake-up.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
        finally:
            for watcher in self._watchers.values():
                watcher.cancel()

    async def _sync_pod(self) -> float | None:
        """One look: see what is, end or start what is due, write it down. Seconds until the next
        look; None when all is over.
        """
        async with self._context.sync_lock:
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
        """The part of a look in which nothing is awaited, so that nobody else's write comes
        between; None at the pod's end.
        """
        pod = self._find_pod()
        if pod is None or _is_finished(pod):
            return None
        story = self._load_history(pod)
        if not self._messages.has_all(story):
            return 0.0
        self._report_starts(pod, story)
        self._decide_verdict(pod, story)
        pause = (
            self._end_pod(pod, story)
            if self._is_ending(pod)
            else self._start_due_containers(pod, story)
        )
        story = self._load_history(pod)
        if not self._messages.has_all(story):
            return 0.0
        self._watch_runs(story)
        self.supervisor_pids = run_plan.supervisor_pids(story)
        pod = self._write_status(pod, story)
        if _is_finished(pod):
            return None
        return min(pause, self._seconds_until_settled(story), self._seconds_until_deadline(pod))

    def _find_pod(self) -> Object | None:
        pod = self._context.objects.find(PODS, self._namespace, self._name)
        return pod if pod is not None and uid_of(pod) == self._uid else None

    def _load_history(self, pod: Object) -> AttemptHistory:
        """What the disk knows of each container."""
        old = pod.get("status") or {}
        stored = {
            entry["name"]: entry
            for part in ("initContainerStatuses", "containerStatuses")
            for entry in old.get(part) or ()
        }
        names = [container["name"] for container in pod_status.all_containers(pod)]
        return {
            name: attempts.load_attempts(self.directory, name, stored.get(name)) for name in names
        }

    # Starting

    def _start_due_containers(self, pod: Object, history: AttemptHistory) -> float:
        """Start each container whose turn it is, and end sidecars that outlived their time. Seconds
        until one may be due again.
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
            wait = (moment - clock.now()).total_seconds()
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
        """Find out whether the pod is to be ended for another reason than its deletion; once found,
        that stands.

        A pod whose containers are done keeps its own end, whoever asks; one that a reboot of the
        machine tore away does not.
        """
        if self._verdict is not None:
            return
        done = (
            pod_status.phase_of(
                pod, self._build_views(pod, history), live=run_plan.has_live_run(history)
            )
            in FINISHED_PHASES
        )
        ends = [
            known[-1].state
            for known in history.values()
            if known and isinstance(known[-1].state, runs.Exited)
        ]
        torn = self._rebooted and any(end.reason == STATUS_UNKNOWN for end in ends)
        disruption = (
            find_condition((pod.get("status") or {}).get("conditions") or (), "DisruptionTarget")
            or {}
        )
        deadline = run_plan.pod_deadline(pod)
        if (
            torn
            or disruption.get("reason") == "TerminationByKubelet"
            or (self._requested_verdict and not done)
        ):
            self._verdict = self._requested_verdict or pod_status.NODE_SHUTDOWN
        elif deadline is not None and clock.now() >= deadline:
            in_time = done and all(
                end.finished_at is not None and end.finished_at <= deadline for end in ends
            )
            if not in_time:
                self._verdict = pod_status.DEADLINE_EXCEEDED
                self._context.recorder.record_event(
                    pod, "Normal", self._verdict.reason, self._verdict.message
                )

    def _end_pod(self, pod: Object, history: AttemptHistory) -> float:
        """Stop all that runs. A verdict is written first: a server that is killed now must know it
        again.
        """
        if self._verdict is not None:
            try:
                self._write_status(pod, history)
            except ApiError as refusal:
                # On a full disk the pod must end all the same: it may be what fills it.
                log.warning(
                    "why pod %s/%s ends was not written: %s",
                    self._namespace,
                    self._name,
                    refusal.message,
                )
        self._stop_containers(pod, history, self._remaining_grace(pod))
        return SYNC_SECONDS

    def _remaining_grace(self, pod: Object) -> float:
        """Seconds that the containers still have."""
        own = pod["spec"].get("terminationGracePeriodSeconds")
        grace = float(DEFAULT_GRACE_SECONDS if own is None else own)
        if is_terminating(pod):
            given = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            # The time stamp has whole seconds, so up to one of the grace was cut off it.
            left = (
                clock.parse_time(pod["metadata"]["deletionTimestamp"]) - clock.now()
            ).total_seconds() + 1
            grace = min(given, max(0.0, left))
        return min(grace, self._max_grace)

    def _stop_containers(self, pod: Object, history: AttemptHistory, grace: float) -> None:
        """Ask every live run to end within `grace`; a later request may only shorten the time."""
        until = clock.now() + timedelta(seconds=grace)
        for container in pod_status.all_containers(pod):
            newest = run_plan.newest_attempt(history, container)
            if newest is None or not newest.is_live:
                continue
            known = self._stop_times.get(newest.directory)
            if known is None:
                text = f"Stopping container {container['name']}"
                self._context.recorder.record_event(
                    pod, "Normal", "Killing", text, field_path=container_field_path(pod, container)
                )
            if known is None or until < known - timedelta(seconds=1):
                self._stop_times[newest.directory] = until
                runs.stop_run(newest.directory, grace)

    async def _remove_gone_pod(self) -> None:
        """The pod is gone: kill what runs, and forget it."""
        places = [path for path in self.directory.glob("[!_]*/*") if path.name.isdigit()]
        live = [
            path
            for path in places
            if isinstance(runs.read_run_state(path), runs.Starting | runs.Running)
        ]
        for path in live:
            runs.stop_run(path, 0)
        await asyncio.gather(*(runs.wait_until_ended(path) for path in live))
        await asyncio.to_thread(removal.remove_tree, self.directory)

    async def _finish_pod(self) -> None:
        """The pod's end is written, or it is gone: give back its disk space but for the logs, and
        confirm a deletion.
        """
        if self._find_pod() is not None:
            await asyncio.to_thread(volumes.clear_pod_directory, self.directory)
        if (pod := self._find_pod()) is not None and is_terminating(pod):
            self._context.objects.delete(
                PODS, self._namespace, self._name, DeleteOptions(grace_seconds=0, uid=self._uid)
            )
        if self._find_pod() is None:
            await self._remove_gone_pod()

    # Telling

    def _report_starts(self, pod: Object, history: AttemptHistory) -> None:
        """Tell once of each run that was started under this server; those found at its start were
        told of before.
        """
        begun = {
            name: known[-1]
            for name, known in history.items()
            if known and isinstance(known[-1].state, runs.Running | runs.Exited)
        }
        if self._reported_starts is None:
            self._reported_starts = {attempt.directory for attempt in begun.values()}
        for container in pod_status.all_containers(pod):
            attempt = begun.get(container["name"])
            if attempt is None or attempt.directory in self._reported_starts:
                continue
            self._reported_starts.add(attempt.directory)
            state, part = attempt.state, container_field_path(pod, container)
            if isinstance(state, runs.Exited) and state.reason == CANNOT_RUN:
                self._context.recorder.record_event(
                    pod, "Warning", "Failed", f"Error: {state.message}", field_path=part
                )
            else:
                self._context.recorder.record_event(
                    pod,
                    "Normal",
                    "Started",
                    f"Started container {container['name']}",
                    field_path=part,
                )

    def _watch_runs(self, history: AttemptHistory) -> None:
        """Be woken when a live run ends."""
        for attempt in (known[-1] for known in history.values() if known):
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
        """Write the status that follows, if it is another than the stored one; the pod as it is
        then.
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
        between = any(
            isinstance(known[-1].state, runs.Starting) for known in history.values() if known
        )
        return STARTING_SECONDS if between else SYNC_SECONDS

    def _seconds_until_deadline(self, pod: Object) -> float:
        deadline = run_plan.pod_deadline(pod)
        if deadline is None or self._verdict is not None:
            return SYNC_SECONDS
        return max(0.0, (deadline - clock.now()).total_seconds())


def _is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED_PHASES
