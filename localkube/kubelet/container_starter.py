"""Starting one container of a pod, or noting why it waits, with a real kubelet's events."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from localkube import clock
from localkube.kubelet import attempts, removal, run_specs, runs, volumes
from localkube.kubelet.attempts import Attempt
from localkube.kubelet.environment import ConfigError
from localkube.kubelet.images import ImageError
from localkube.kubelet.pod_status import Waiting, init_containers, initial_waiting
from localkube.kubelet.run_specs import NodeContext
from localkube.kubelet.volumes import MountError
from localkube.metadata import Object

RETRY_SECONDS = 5.0
"""How long a container that lacks something waits until it is tried again."""

IMAGE_ERROR_DURATION = timedelta(seconds=10)
"""How long ErrImagePull stands before it becomes ImagePullBackOff."""


@dataclass(frozen=True, slots=True)
class StartTrouble:
    """Why a container could not be started: its status, the recorded event, and since when."""

    waiting: Waiting
    event_text: str
    since: datetime


class ContainerStarter:
    """Starts the containers of one pod.

    `troubles` has those that could not be started, by name; `volumes_ready` is whether the volumes
    exist.
    """

    def __init__(self, context: NodeContext, pod_directory: Path) -> None:
        self._context = context
        self._pod_directory = pod_directory
        self.troubles: dict[str, StartTrouble] = {}
        self.volumes_ready = False
        self._requested: set[Path] = set()

    def has_requested(self, attempt: Attempt) -> bool:
        """Return whether this server requested that start.

        A server killed in the middle of a request may have left it undone.
        """
        return attempt.directory in self._requested

    def start_container(self, pod: Object, container: Object, last: Attempt | None) -> bool:
        """Start the container's next run.

        Returns False when that cannot be done now; the trouble is then noted and recorded as an
        event.
        """
        name = container["name"]
        if pressure := self._context.pressure():
            self._note_trouble(
                pod,
                None,
                initial_waiting(pod),
                "NodeHasDiskPressure",
                f"No container is started: {pressure}",
                name,
            )
            return False
        try:
            self._start_attempt(
                pod, container, attempts.next_attempt(self._pod_directory, name, last)
            )
        except ImageError as error:
            self._note_image_trouble(pod, container, error)
        except ConfigError as error:
            self._note_trouble(
                pod,
                container,
                Waiting("CreateContainerConfigError", str(error)),
                "Failed",
                f"Error: {error}",
            )
        except MountError as error:
            self._note_trouble(pod, None, initial_waiting(pod), "FailedMount", str(error), name)
        except OSError as error:
            text = f"the machine refuses: {error.strerror or error}"
            self._note_trouble(
                pod, container, Waiting("CreateContainerError", text), "Failed", f"Error: {text}"
            )
        else:
            self.troubles.pop(name, None)
            for directory in attempts.list_superseded(self._pod_directory, name):
                removal.remove_tree(directory)
            return True
        return False

    def _start_attempt(self, pod: Object, container: Object, attempt: Attempt) -> None:
        program = run_specs.resolve_container_program(container)
        spec = run_specs.build_run_spec(
            self._context,
            pod,
            container,
            self._prepare_volumes(pod),
            attempt.directory,
            self._pod_directory,
        )
        self._record_event(pod, container, "Normal", "Pulled", program.event_text)
        # The directory comes first: a server killed between these two lines finds an unstarted
        # attempt and starts that one, instead of counting another.
        attempts.create_attempt(attempt)
        runs.start_run(attempt.directory, spec)
        self._requested.add(attempt.directory)
        self._record_event(
            pod, container, "Normal", "Created", f"Created container: {container['name']}"
        )

    def _prepare_volumes(self, pod: Object) -> Mapping[str, Path]:
        places = volumes.prepare_volumes(
            pod,
            self._pod_directory / volumes.VOLUMES,
            self._context.build_sources(pod),
            self._context.options.host_paths,
        )
        self.volumes_ready = True
        return places

    def _note_image_trouble(self, pod: Object, container: Object, error: ImageError) -> None:
        """Note an invalid image name or an unavailable image.

        An unavailable image is ErrImagePull first, later ImagePullBackOff; an invalid name stays
        InvalidImageName.
        """
        image = (container.get("image") or "")[:256]
        self.volumes_ready = True
        if error.reason == "InvalidImageName":
            text = f'Failed to apply default image tag "{image}": {error}'
            self._note_trouble(pod, container, Waiting(error.reason, text), "InspectFailed", text)
            return
        previous = self.troubles.get(container["name"])
        first_event, later_event = "Error: ErrImagePull", "Error: ImagePullBackOff"
        if (
            previous is None
            or previous.event_text not in (first_event, later_event)
            or not previous.waiting.message.endswith(str(error))
        ):
            self._record_event(
                pod, container, "Warning", "Failed", f'Failed to pull image "{image}": {error}'
            )
            self._note_trouble(
                pod, container, Waiting("ErrImagePull", str(error)), "Failed", first_event
            )
        elif (
            previous.event_text == first_event
            and clock.current_time() - previous.since >= IMAGE_ERROR_DURATION
        ):
            text = f'Back-off pulling image "{image}"'
            self._record_event(pod, container, "Normal", "BackOff", text)
            self._note_trouble(
                pod,
                container,
                Waiting("ImagePullBackOff", f"{text}: ErrImagePull: {error}"),
                "Failed",
                later_event,
            )

    def _note_trouble(
        self,
        pod: Object,
        container: Object | None,
        waiting: Waiting,
        reason: str,
        text: str,
        name: str = "",
    ) -> None:
        """Remember why a container waits, and record an event once.

        `container` is None for what concerns the whole pod.
        """
        name = container["name"] if container else name
        previous = self.troubles.get(name)
        if previous is None or (previous.waiting, previous.event_text) != (waiting, text):
            self.troubles[name] = StartTrouble(waiting, text, clock.current_time())
            self._record_event(pod, container, "Warning", reason, text)

    def _record_event(
        self,
        pod: Object,
        container: Object | None,
        kind: Literal["Normal", "Warning"],
        reason: str,
        text: str,
    ) -> None:
        self._context.recorder.record_event(
            pod,
            kind,
            reason,
            text,
            field_path=container_field_path(pod, container) if container else "",
        )


def container_field_path(pod: Object, container: Object) -> str:
    """Return how events name a container of a pod."""
    kind = (
        "initContainers"
        if any(container["name"] == other["name"] for other in init_containers(pod))
        else "containers"
    )
    return f"spec.{kind}{{{container['name']}}}"
