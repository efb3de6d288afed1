"""Starting one container of a pod, or saying why it waits, with the events that a real kubelet
tells on the way.
"""

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
"""How long a container that lacks something waits until it is looked at again."""

IMAGE_ERROR_DURATION = timedelta(seconds=10)
"""How long ErrImagePull stands before it becomes ImagePullBackOff."""


@dataclass(frozen=True, slots=True)
class StartTrouble:
    """Why a container could not be started: what its status says, what was told about it, and since
    when that is so.
    """

    waiting: Waiting
    event_text: str
    since: datetime


class ContainerStarter:
    """Starts the containers of one pod. `troubles` has those that could not be, by name; `prepared`
    is whether volumes are there.
    """

    def __init__(self, context: NodeContext, pod_directory: Path) -> None:
        self._context = context
        self._pod_directory = pod_directory
        self.troubles: dict[str, StartTrouble] = {}
        self.volumes_ready = False
        self._requested: set[Path] = set()

    def has_requested(self, attempt: Attempt) -> bool:
        """True when this server asked for that start; a server killed in the middle of asking may
        have left it undone.
        """
        return attempt.directory in self._requested

    def start_container(self, pod: Object, container: Object, last: Attempt | None) -> bool:
        """Start the container's next run; False, with its trouble noted and told, when that cannot
        be now.
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
        """A name that is none stays InvalidImageName; an image that cannot be had is ErrImagePull
        first, later ImagePullBackOff.
        """
        image = (container.get("image") or "")[:256]
        self.volumes_ready = True
        if error.reason == "InvalidImageName":
            text = f'Failed to apply default image tag "{image}": {error}'
            self._note_trouble(pod, container, Waiting(error.reason, text), "InspectFailed", text)
            return
        known = self.troubles.get(container["name"])
        first, later = "Error: ErrImagePull", "Error: ImagePullBackOff"
        if (
            known is None
            or known.event_text not in (first, later)
            or not known.waiting.message.endswith(str(error))
        ):
            self._record_event(
                pod, container, "Warning", "Failed", f'Failed to pull image "{image}": {error}'
            )
            self._note_trouble(pod, container, Waiting("ErrImagePull", str(error)), "Failed", first)
        elif known.event_text == first and clock.now() - known.since >= IMAGE_ERROR_DURATION:
            text = f'Back-off pulling image "{image}"'
            self._record_event(pod, container, "Normal", "BackOff", text)
            self._note_trouble(
                pod,
                container,
                Waiting("ImagePullBackOff", f"{text}: ErrImagePull: {error}"),
                "Failed",
                later,
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
        """Remember why a container waits; tell it once. `container` is None for what concerns the
        whole pod.
        """
        name = container["name"] if container else name
        known = self.troubles.get(name)
        if known is None or (known.waiting, known.event_text) != (waiting, text):
            self.troubles[name] = StartTrouble(waiting, text, clock.now())
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
    """How events name a container of a pod."""
    kind = (
        "initContainers"
        if any(container["name"] == other["name"] for other in init_containers(pod))
        else "containers"
    )
    return f"spec.{kind}{{{container['name']}}}"
