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
from localkube.kubelet import attempts, plan, removal, runs, status, volumes
from localkube.kubelet.attempts import CANNOT_RUN, LOST, Attempt
from localkube.kubelet.messages import Messages
from localkube.kubelet.plan import Story
from localkube.kubelet.specs import Site
from localkube.kubelet.starts import RETRY_SECONDS, Starter, field_path
from localkube.kubelet.status import Verdict
from localkube.lifecycle import DEFAULT_GRACE, DeleteOptions
from localkube.metadata import FINISHED, Object, condition_of, is_terminating, uid_of
from localkube.resources import PODS

LOOK_SECONDS = 30.0
"""A pod that nothing happens to is looked at this often all the same."""

STARTING_SECONDS = 0.02
"""How soon a container that is being started is looked at again."""

LONGEST_RETRY = 30.0

log = logging.getLogger(__name__)


class PodLife:
    """Follows one pod, named by its uid: a namesake that is made later has a life of its own.

    `rebooted` says that the machine was started anew since the pod was last seen.
    """

    def __init__(
        self, site: Site, namespace: str, name: str, uid: str, *, rebooted: bool = False
    ) -> None:
        self._site = site
        self._namespace = namespace
        self._name = name
        self._uid = uid
        self._rebooted = rebooted
        self.directory = site.root / uid
        self._starter = Starter(site, self.directory)
        self._messages = Messages()
        self._wake = asyncio.Event()
        self._watchers: dict[Path, asyncio.Task[None]] = {}
        self._announced: set[Path] | None = None
        self._told_back_off: set[Path] = set()
        self._stopping: dict[Path, datetime] = {}
        self._verdict: Verdict | None = None
        self._asked: Verdict | None = None
        self._most_grace = float("inf")
        self.supervisors: dict[str, int] = {}
        """The supervisor's pid of each container that ran when last looked at."""

    def wake(self) -> None:
        """Look at the pod again now."""
        self._wake.set()

    def end(self, verdict: Verdict, most_grace: float) -> None:
        """End the pod, if it is not at its end anyway, within `most_grace` seconds even where its
        own grace is longer.
        """
        self._asked = verdict
        self._most_grace = most_grace
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
                    pause = await self._look()
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
                    pause = min(LONGEST_RETRY, 2.0**failures)
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

    async def _look(self) -> float | None:
        """One look: see what is, end or start what is due, write it down. Seconds until the next
        look; None when all is over.
        """
        async with self._site.turn:
            await asyncio.sleep(0)
            if (pod := self._find()) is not None:
                await self._messages.fetch(
                    {c["name"]: c for c in status.all_containers(pod)}, self._read(pod)
                )
            pause = self._step()
        if pause is None:
            await self._finish()
        return pause

    def _step(self) -> float | None:
        """The part of a look in which nothing is awaited, so that nobody else's write comes
        between; None at the pod's end.
        """
        pod = self._find()
        if pod is None or _is_finished(pod):
            return None
        story = self._read(pod)
        if not self._messages.has_all(story):
            return 0.0
        self._announce(pod, story)
        self._judge(pod, story)
        pause = self._end(pod, story) if self._is_ending(pod) else self._advance(pod, story)
        story = self._read(pod)
        if not self._messages.has_all(story):
            return 0.0
        self._watch(story)
        self.supervisors = plan.supervisors(story)
        pod = self._write(pod, story)
        if _is_finished(pod):
            return None
        return min(pause, self._until_settled(story), self._until_deadline(pod))

    def _find(self) -> Object | None:
        pod = self._site.objects.find(PODS, self._namespace, self._name)
        return pod if pod is not None and uid_of(pod) == self._uid else None

    def _read(self, pod: Object) -> Story:
        """What the disk knows of each container."""
        old = pod.get("status") or {}
        stored = {
            entry["name"]: entry
            for part in ("initContainerStatuses", "containerStatuses")
            for entry in old.get(part) or ()
        }
        names = [container["name"] for container in status.all_containers(pod)]
        return {name: attempts.history(self.directory, name, stored.get(name)) for name in names}

    # Starting

    def _advance(self, pod: Object, story: Story) -> float:
        """Start each container whose turn it is, and end sidecars that outlived their time. Seconds
        until one may be due again.
        """
        pauses = [
            self._start(pod, container, plan.newest_of(story, container))
            for container in plan.whose_turn(pod, story)
        ]
        if plan.mains_are_done(pod, story):
            self._stop(pod, story, self._grace(pod))
        return min(pauses, default=LOOK_SECONDS)

    def _start(self, pod: Object, container: Object, newest: Attempt | None) -> float:
        if newest is not None and (
            isinstance(newest.state, runs.Running)
            or (self._starter.has_asked(newest) and newest.is_live)
        ):
            return LOOK_SECONDS
        if newest is not None and isinstance(newest.state, runs.Exited):
            moment = attempts.restart_at(newest, plan.policy_of(pod, container))
            if moment is None:
                return LOOK_SECONDS
            wait = (moment - clock.now()).total_seconds()
            if wait > 0:
                self._tell_back_off(pod, container, newest)
                return wait
        return LOOK_SECONDS if self._starter.start(pod, container, newest) else RETRY_SECONDS

    def _tell_back_off(self, pod: Object, container: Object, newest: Attempt) -> None:
        if newest.directory not in self._told_back_off:
            self._told_back_off.add(newest.directory)
            text = (
                f"Back-off restarting failed container {container['name']} in pod "
                f"{plan.full_name(pod)}"
            )
            self._site.recorder.event(
                pod, "Warning", "BackOff", text, field_path=field_path(pod, container)
            )

    # Ending

    def _is_ending(self, pod: Object) -> bool:
        return self._verdict is not None or is_terminating(pod)

    def _judge(self, pod: Object, story: Story) -> None:
        """Find out whether the pod is to be ended for another reason than its deletion; once found,
        that stands.

        A pod whose containers are done keeps its own end, whoever asks; one that a reboot of the
        machine tore away does not.
        """
        if self._verdict is not None:
            return
        done = status.phase_of(pod, self._views(pod, story), live=plan.is_live(story)) in FINISHED
        ends = [
            known[-1].state
            for known in story.values()
            if known and isinstance(known[-1].state, runs.Exited)
        ]
        torn = self._rebooted and any(end.reason == LOST for end in ends)
        disruption = (
            condition_of((pod.get("status") or {}).get("conditions") or (), "DisruptionTarget")
            or {}
        )
        deadline = plan.deadline_of(pod)
        if torn or disruption.get("reason") == "TerminationByKubelet" or (self._asked and not done):
            self._verdict = self._asked or status.NODE_SHUTDOWN
        elif deadline is not None and clock.now() >= deadline:
            in_time = done and all(
                end.finished_at is not None and end.finished_at <= deadline for end in ends
            )
            if not in_time:
                self._verdict = status.DEADLINE_EXCEEDED
                self._site.recorder.event(
                    pod, "Normal", self._verdict.reason, self._verdict.message
                )

    def _end(self, pod: Object, story: Story) -> float:
        """Stop all that runs. A verdict is written first: a server that is killed now must know it
        again.
        """
        if self._verdict is not None:
            try:
                self._write(pod, story)
            except ApiError as refusal:
                # On a full disk the pod must end all the same: it may be what fills it.
                log.warning(
                    "why pod %s/%s ends was not written: %s",
                    self._namespace,
                    self._name,
                    refusal.message,
                )
        self._stop(pod, story, self._grace(pod))
        return LOOK_SECONDS

    def _grace(self, pod: Object) -> float:
        """Seconds that the containers still have."""
        own = pod["spec"].get("terminationGracePeriodSeconds")
        grace = float(DEFAULT_GRACE if own is None else own)
        if is_terminating(pod):
            given = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            # The time stamp has whole seconds, so up to one of the grace was cut off it.
            left = (
                clock.parse(pod["metadata"]["deletionTimestamp"]) - clock.now()
            ).total_seconds() + 1
            grace = min(given, max(0.0, left))
        return min(grace, self._most_grace)

    def _stop(self, pod: Object, story: Story, grace: float) -> None:
        """Ask every live run to end within `grace`; a later request may only shorten the time."""
        until = clock.now() + timedelta(seconds=grace)
        for container in status.all_containers(pod):
            newest = plan.newest_of(story, container)
            if newest is None or not newest.is_live:
                continue
            known = self._stopping.get(newest.directory)
            if known is None:
                text = f"Stopping container {container['name']}"
                self._site.recorder.event(
                    pod, "Normal", "Killing", text, field_path=field_path(pod, container)
                )
            if known is None or until < known - timedelta(seconds=1):
                self._stopping[newest.directory] = until
                runs.stop(newest.directory, grace)

    async def _vanish(self) -> None:
        """The pod is gone: kill what runs, and forget it."""
        places = [path for path in self.directory.glob("[!_]*/*") if path.name.isdigit()]
        live = [
            path for path in places if isinstance(runs.state(path), runs.Starting | runs.Running)
        ]
        for path in live:
            runs.stop(path, 0)
        await asyncio.gather(*(runs.wait(path) for path in live))
        await asyncio.to_thread(removal.remove, self.directory)

    async def _finish(self) -> None:
        """The pod's end is written, or it is gone: give back its disk space but for the logs, and
        confirm a deletion.
        """
        if self._find() is not None:
            await asyncio.to_thread(volumes.clear, self.directory)
        if (pod := self._find()) is not None and is_terminating(pod):
            self._site.objects.delete(
                PODS, self._namespace, self._name, DeleteOptions(grace=0, uid=self._uid)
            )
        if self._find() is None:
            await self._vanish()

    # Telling

    def _announce(self, pod: Object, story: Story) -> None:
        """Tell once of each run that was started under this server; those found at its start were
        told of before.
        """
        begun = {
            name: known[-1]
            for name, known in story.items()
            if known and isinstance(known[-1].state, runs.Running | runs.Exited)
        }
        if self._announced is None:
            self._announced = {attempt.directory for attempt in begun.values()}
        for container in status.all_containers(pod):
            attempt = begun.get(container["name"])
            if attempt is None or attempt.directory in self._announced:
                continue
            self._announced.add(attempt.directory)
            state, part = attempt.state, field_path(pod, container)
            if isinstance(state, runs.Exited) and state.reason == CANNOT_RUN:
                self._site.recorder.event(
                    pod, "Warning", "Failed", f"Error: {state.message}", field_path=part
                )
            else:
                self._site.recorder.event(
                    pod,
                    "Normal",
                    "Started",
                    f"Started container {container['name']}",
                    field_path=part,
                )

    def _watch(self, story: Story) -> None:
        """Be woken when a live run ends."""
        for attempt in (known[-1] for known in story.values() if known):
            if attempt.is_live and attempt.directory not in self._watchers:
                self._watchers[attempt.directory] = asyncio.create_task(
                    self._await_end(attempt.directory)
                )

    async def _await_end(self, directory: Path) -> None:
        await runs.wait(directory)
        del self._watchers[directory]
        self._wake.set()

    def _views(self, pod: Object, story: Story) -> dict[str, status.View]:
        troubles = {name: trouble.waiting for name, trouble in self._starter.troubles.items()}
        return plan.views_of(
            pod, self._messages.put_into(story), troubles, ending=self._is_ending(pod)
        )

    def _write(self, pod: Object, story: Story) -> Object:
        """Write the status that follows, if it is another than the stored one; the pod as it is
        then.
        """
        views, live = self._views(pod, story), plan.is_live(story)
        prepared = self._starter.prepared or any(story.values())

        def change(current: Object) -> None:
            current["status"] = status.status_of(
                current, views, live=live, prepared=prepared, verdict=self._verdict
            )

        return self._site.objects.modify(
            PODS, self._namespace, self._name, change, subresource="status"
        )

    def _until_settled(self, story: Story) -> float:
        between = any(
            isinstance(known[-1].state, runs.Starting) for known in story.values() if known
        )
        return STARTING_SECONDS if between else LOOK_SECONDS

    def _until_deadline(self, pod: Object) -> float:
        deadline = plan.deadline_of(pod)
        if deadline is None or self._verdict is not None:
            return LOOK_SECONDS
        return max(0.0, (deadline - clock.now()).total_seconds())


def _is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED
