"""What the runs of a pod's containers come to, and whose turn it is: pure functions over what pod
and disk say.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from localkube import clock
from localkube.kubelet import attempts, runs
from localkube.kubelet.attempts import Attempt
from localkube.kubelet.images import ImageError
from localkube.kubelet.specs import program_of
from localkube.kubelet.status import (
    View,
    Waiting,
    all_containers,
    before_first_start,
    go_duration,
    init_containers,
    is_sidecar,
)
from localkube.metadata import Object, name_of, namespace_of, uid_of

Story = Mapping[str, Sequence[Attempt]]
"""The starts of each container, oldest first."""


def full_name(pod: Object) -> str:
    """How a kubelet names a pod in its messages."""
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"


def policy_of(pod: Object, container: Object) -> str:
    """The restart policy of one container: an init container that succeeded is not run again, a
    sidecar always is.
    """
    policy = str(pod["spec"].get("restartPolicy", "Always"))
    if is_sidecar(container):
        return "Always"
    is_init = any(container["name"] == other["name"] for other in init_containers(pod))
    return "OnFailure" if is_init and policy == "Always" else policy


def is_live(story: Story) -> bool:
    """True while a process of the pod may exist."""
    return any(attempt.is_live for known in story.values() for attempt in known)


def supervisors(story: Story) -> dict[str, int]:
    """The supervisor's pid of each container that runs: everything below it is the container."""
    newest = {name: known[-1].state for name, known in story.items() if known}
    return {
        name: state.supervisor for name, state in newest.items() if isinstance(state, runs.Running)
    }


def deadline_of(pod: Object) -> datetime | None:
    """When activeDeadlineSeconds are over; None without them or before the pod's start."""
    seconds, start = (
        pod["spec"].get("activeDeadlineSeconds"),
        (pod.get("status") or {}).get("startTime"),
    )
    return (
        None
        if seconds is None or start is None
        else clock.parse(start) + timedelta(seconds=int(seconds))
    )


def mains_are_done(pod: Object, story: Story) -> bool:
    """True when no main container runs or will run again; the sidecars' time is over then."""
    return all(_is_done(pod, container, story) for container in pod["spec"]["containers"])


def _is_done(pod: Object, container: Object, story: Story) -> bool:
    newest = newest_of(story, container)
    return (
        newest is not None
        and isinstance(newest.state, runs.Exited)
        and attempts.restart_at(newest, policy_of(pod, container)) is None
    )


def newest_of(story: Story, container: Object) -> Attempt | None:
    known = story[container["name"]]
    return known[-1] if known else None


def whose_turn(pod: Object, story: Story) -> Sequence[Object]:
    """The containers that may run now: init containers one after the other, sidecars from then on,
    main ones after all of them.
    """
    mains = pod["spec"]["containers"]
    if mains_are_done(pod, story):
        return []
    if any(story[container["name"]] for container in mains):
        return [*(container for container in init_containers(pod) if is_sidecar(container)), *mains]
    turn: list[Object] = []
    for container in init_containers(pod):
        newest = newest_of(story, container)
        state = None if newest is None else newest.state
        if is_sidecar(container):
            turn.append(container)
            if not isinstance(state, runs.Running):
                return turn
        elif not isinstance(state, runs.Exited) or state.exit_code != 0:
            return [*turn, container]
    return [*turn, *mains]


def views_of(
    pod: Object, story: Story, troubles: Mapping[str, Waiting], *, ending: bool
) -> dict[str, View]:
    """What to say of each container. `troubles` keep containers from starting; a pod that is
    `ending` restarts none.
    """
    ending = ending or mains_are_done(pod, story)
    return {
        c["name"]: _view(pod, c, story[c["name"]], troubles.get(c["name"]), ending=ending)
        for c in all_containers(pod)
    }


def _view(
    pod: Object,
    container: Object,
    known: Sequence[Attempt],
    trouble: Waiting | None,
    *,
    ending: bool,
) -> View:
    image = _image_id(container)
    if not known:
        return View(trouble or before_first_start(pod), image_id=image)
    newest = known[-1]
    before = next(
        ((a.number, a.state) for a in reversed(known[:-1]) if isinstance(a.state, runs.Exited)),
        None,
    )
    last = before[1] if before else None
    if isinstance(newest.state, runs.Running):
        return View(newest.state, last, newest.number, image)
    if not isinstance(newest.state, runs.Exited):
        return View(
            trouble or Waiting("ContainerCreating"), last, before[0] if before else None, image
        )
    if ending or attempts.restart_at(newest, policy_of(pod, container)) is None:
        return View(newest.state, last, newest.number, image)
    delay = go_duration(newest.delay or attempts.FIRST_DELAY)
    message = (
        f"back-off {delay} restarting failed container={container['name']} pod={full_name(pod)}"
    )
    return View(trouble or Waiting("CrashLoopBackOff", message), newest.state, newest.number, image)


def _image_id(container: Object) -> str:
    try:
        return program_of(container).image_id
    except ImageError:
        return ""
