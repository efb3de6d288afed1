"""From a container of a pod to the command that the runtime starts: image, variables, mounts and
limits.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from localkube import quantities
from localkube.event_recorder import EventRecorder
from localkube.kubelet import environment, host_tools, images, mpi, runs, volumes
from localkube.kubelet.attempts import TERMINATION_LOG
from localkube.kubelet.environment import ConfigError, PodSources
from localkube.kubelet.machine_division import NodeShare
from localkube.kubelet.pod_admission import PodAdmission
from localkube.metadata import Object, namespace_of
from localkube.objects import Objects
from localkube.options import Options
from localkube.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, SECRETS, SERVICES

CLAIMS_DIRECTORY = "claims"
"""Directory of the data directory: what claims hold, each in a directory named by its claim's uid.
"""

TERMINATION_PATH = "/dev/termination-log"
PYTHON_DIRECTORY = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What every pod worker needs of the node.

    `pressure` returns why no container may start now, or nothing.
    """

    objects: Objects
    recorder: EventRecorder
    options: Options
    share: NodeShare
    admission: PodAdmission
    pressure: Callable[[], str]
    sync_lock: asyncio.Lock
    """Held by the worker that syncs its pod.

    All nodes share one: of many workers at once, each lets other tasks of the event loop run in
    between.
    """

    @property
    def pods_directory(self) -> Path:
        return self.options.data / "pods"

    def build_sources(self, pod: Object) -> PodSources:
        namespace = namespace_of(pod)
        return PodSources(
            secret=lambda name: self.objects.find(SECRETS, namespace, name),
            config_map=lambda name: self.objects.find(CONFIGMAPS, namespace, name),
            allocatable=self.share.capacity,
            devices=self.share.devices,
            claim=lambda name: self.objects.find(PERSISTENTVOLUMECLAIMS, namespace, name),
            claims=self.options.data / CLAIMS_DIRECTORY,
            service=lambda name: self.objects.find(SERVICES, namespace, name),
        )


def resolve_container_program(container: Object) -> images.Program:
    """Return the program that a container's image and command mean. Raises ImageError."""
    return images.resolve_program(
        container.get("image") or "", container.get("command") or (), container.get("args") or ()
    )


def build_run_spec(
    context: NodeContext,
    pod: Object,
    container: Object,
    volume_paths: Mapping[str, Path],
    directory: Path,
    pod_directory: Path,
) -> runs.RunSpec:
    """Build what the runtime starts in `directory`; `volume_paths` are the pod's volumes.

    Raises ImageError, ConfigError and MountError; nothing of the run exists then.
    """
    program = resolve_container_program(container)
    home, scratch = pod_directory / volumes.HOME, pod_directory / volumes.SCRATCH
    for part in (home, scratch):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    base = environment.build_base_environment(pod, home, scratch, PYTHON_DIRECTORY)
    env = environment.build_environment(pod, container, context.build_sources(pod), base)
    message_file = directory / TERMINATION_LOG
    extra = dict(program.files) | {
        container.get("terminationMessagePath") or TERMINATION_PATH: message_file
    }
    mounts = volumes.build_mounts(container, volume_paths, env, extra)
    argv = [mounts.translate(text) for text in environment.expand_arguments(program.args, env)]
    is_own_command = program.command == container.get("command")
    argv[:0] = (
        [mounts.translate(text) for text in environment.expand_arguments(program.command, env)]
        if is_own_command
        else program.command
    )
    env |= {
        item["name"]: mounts.translate(env[item["name"]])
        for item in container.get("env") or ()
        if not item.get("valueFrom")
    }
    env |= mounts.build_variables() | {"LOCALKUBE_TERMINATION_LOG": str(message_file)}
    environment.check_size(env, argv)
    if missing := host_tools.describe_missing_tool(argv, env):
        raise ConfigError(missing)
    argv = mpi.wrap_command(pod, container, argv)
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    return runs.RunSpec(
        argv=argv,
        env=env,
        cwd=_find_working_directory(container, mounts, home),
        memory_limit=None if limit is None else quantities.parse_bytes(limit),
        die_with=context.options.die_with,
        read_only=[str(path) for path in mounts.read_only],
        # What is the pod's own is written, though a directory of this machine above it is not.
        writable=[*map(str, mounts.writable), os.path.realpath(home), os.path.realpath(scratch)],
    )


def _find_working_directory(container: Object, mounts: volumes.Mounts, home: Path) -> str:
    """Return the container's workingDir on this machine; the pod's home when it names none."""
    working_dir = container.get("workingDir")
    if not working_dir:
        return str(home)
    path = mounts.translate(working_dir)
    if not Path(path).is_dir():
        raise ConfigError(
            f"workingDir {working_dir} does not exist on this machine and no volume is mounted "
            "there"
        )
    return path
