"""Starting one container of a pod, or saying why it waits, with the events that a real kubelet
tells on the way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from localkube import clock
from localkube.kubelet import attempts, removal, runs, specs, volumes
from localkube.kubelet.attempts import Attempt
from localkube.kubelet.environment import ConfigError
from localkube.kubelet.images import ImageError
from localkube.kubelet.specs import Site
from localkube.kubelet.status import Waiting, before_first_start, init_containers
from localkube.kubelet.volumes import MountError
from localkube.metadata import Object

RETRY_SECONDS = 5.0
"""How long a container that lacks something waits until it is looked at again."""

IMAGE_ERROR_SHOWN = timedelta(seconds=10)
"""How long ErrImagePull stands before it becomes ImagePullBackOff."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a container could not be started: what its status says, what was told about it, and since
    when that is so.
    """

    waiting: Waiting
    told: str
    since: datetime


class Starter:
    """Starts the containers of one pod. `troubles` has those that could not be, by name; `prepared`
    is whether volumes are there.
    """

    def __init__(self, site: Site, pod_directory: Path) -> None:
        self._site = site
        self._pod_directory = pod_directory
        self.troubles: dict[str, Trouble] = {}
        self.prepared = False
        self._asked: set[Path] = set()

    def has_asked(self, attempt: Attempt) -> bool:
        """True when this server asked for that start; a server killed in the middle of asking may
        have left it undone.
        """
        return attempt.directory in self._asked

    def start(self, pod: Object, container: Object, last: Attempt | None) -> bool:
        """Start the container's next run; False, with its trouble noted and told, when that cannot
        be now.
        """
        name = container["name"]
        if pressure := self._site.pressure():
            self._note(
                pod,
                None,
                before_first_start(pod),
                "NodeHasDiskPressure",
                f"No container is started: {pressure}",
                name,
            )
            return False
        try:
            self._start(pod, container, attempts.following(self._pod_directory, name, last))
        except ImageError as error:
            self._image_trouble(pod, container, error)
        except ConfigError as error:
            self._note(
                pod,
                container,
                Waiting("CreateContainerConfigError", str(error)),
                "Failed",
                f"Error: {error}",
            )
        except MountError as error:
            self._note(pod, None, before_first_start(pod), "FailedMount", str(error), name)
        except OSError as error:
            text = f"the machine refuses: {error.strerror or error}"
            self._note(
                pod, container, Waiting("CreateContainerError", text), "Failed", f"Error: {text}"
            )
        else:
            self.troubles.pop(name, None)
            for directory in attempts.superseded(self._pod_directory, name):
                removal.remove(directory)
            return True
        return False

    def _start(self, pod: Object, container: Object, attempt: Attempt) -> None:
        program = specs.program_of(container)
        spec = specs.run_spec(
            self._site, pod, container, self._volumes(pod), attempt.directory, self._pod_directory
        )
        self._tell(pod, container, "Normal", "Pulled", program.note)
        attempts.make(attempt)
        runs.start(attempt.directory, spec)
        self._asked.add(attempt.directory)
        self._tell(pod, container, "Normal", "Created", f"Created container: {container['name']}")

    def _volumes(self, pod: Object) -> Mapping[str, Path]:
        places = volumes.prepare(
            pod,
            self._pod_directory / volumes.VOLUMES,
            self._site.sources(pod),
            self._site.options.host_paths,
        )
        self.prepared = True
        return places

    def _image_trouble(self, pod: Object, container: Object, error: ImageError) -> None:
        """A name that is none stays InvalidImageName; an image that cannot be had is ErrImagePull
        first, later ImagePullBackOff.
        """
        image = (container.get("image") or "")[:256]
        self.prepared = True
        if error.reason == "InvalidImageName":
            text = f'Failed to apply default image tag "{image}": {error}'
            self._note(pod, container, Waiting(error.reason, text), "InspectFailed", text)
            return
        known = self.troubles.get(container["name"])
        first, later = "Error: ErrImagePull", "Error: ImagePullBackOff"
        if (
            known is None
            or known.told not in (first, later)
            or not known.waiting.message.endswith(str(error))
        ):
            self._tell(
                pod, container, "Warning", "Failed", f'Failed to pull image "{image}": {error}'
            )
            self._note(pod, container, Waiting("ErrImagePull", str(error)), "Failed", first)
        elif known.told == first and clock.now() - known.since >= IMAGE_ERROR_SHOWN:
            text = f'Back-off pulling image "{image}"'
            self._tell(pod, container, "Normal", "BackOff", text)
            self._note(
                pod,
                container,
                Waiting("ImagePullBackOff", f"{text}: ErrImagePull: {error}"),
                "Failed",
                later,
            )

    def _note(
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
        if known is None or (known.waiting, known.told) != (waiting, text):
            self.troubles[name] = Trouble(waiting, text, clock.now())
            self._tell(pod, container, "Warning", reason, text)

    def _tell(
        self,
        pod: Object,
        container: Object | None,
        kind: Literal["Normal", "Warning"],
        reason: str,
        text: str,
    ) -> None:
        self._site.recorder.event(
            pod, kind, reason, text, field_path=field_path(pod, container) if container else ""
        )


def field_path(pod: Object, container: Object) -> str:
    """How events name a container of a pod."""
    kind = (
        "initContainers"
        if any(container["name"] == other["name"] for other in init_containers(pod))
        else "containers"
    )
    return f"spec.{kind}{{{container['name']}}}"
