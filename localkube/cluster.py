"""The whole cluster: open its data, start its parts in order, report readiness, stop them in
reverse.
"""

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import pwd
import signal
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path

from localkube import ballast, certificates, collection, resources
from localkube.api.application import Application
from localkube.api.listener import Listener
from localkube.controllers import build_controllers
from localkube.controllers.loop import ControllerLoop
from localkube.errors import ApiError
from localkube.kubelet.host import Host
from localkube.kubelet.machine_division import CannotDivide
from localkube.metadata import Object, name_of
from localkube.objects import Objects
from localkube.options import Options
from localkube.resources.resource import Resource
from localkube.scheduler import Scheduler, build_default_priority_classes, build_default_queues
from localkube.store import SchemaTooNew, Store

log = logging.getLogger("localkube")

INITIAL_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
STREAM_GRACE = 2.0
"""Seconds that open watches and logs may take to end when the server stops."""


class CannotStart(Exception):
    """The cluster cannot run as asked; the message says why and what to do."""


async def run_cluster(options: Options) -> None:
    """Run the cluster until a signal, or the end of its companion process, stops it.

    The signals are SIGTERM and SIGINT. Raises CannotStart.
    """
    os.umask(0o077)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_lock_data_directory(options.data))
        stack.enter_context(_use_ballast(options.data))
        if options.die_with is not None:
            stack.enter_context(_stop_with_process(options.die_with, stop))
        cluster = Cluster(options)
        stack.callback(cluster.store.close)
        try:
            await cluster.start()
            await stop.wait()
        finally:
            await cluster.stop()


class Cluster:
    """All parts of the running cluster. Raises CannotStart for data that cannot be used."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.identity = certificates.ensure_identity(options.data / "pki")
        self.store = _open_store(options.data / "state.db")
        self.objects = Objects(self.store, options.unreachable_toleration)
        _create_initial_objects(self.objects)
        self.loop = ControllerLoop(self.objects)
        self.loop.add_controller(Scheduler(self.objects))
        controllers = build_controllers(
            self.objects,
            self.identity.authority.decode(),
            options.max_pods * len(options.nodes),
            options.node_monitor_grace,
        )
        for controller in controllers:
            self.loop.add_controller(controller)
        self.host = Host(self.objects, options)
        application = Application(self.objects, self.host, self.identity.token)
        self.listener = Listener(application, self.identity.context, options.port)
        self._started = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Serve the API, adopt pods that still run, then report that the cluster is ready.

        Raises CannotStart when the port is taken, or the nodes want more GPUs than there are.
        """
        try:
            await self.listener.start()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise CannotStart(
                f"port {self.options.port} on 127.0.0.1 is taken: choose another with --port, or "
                "0 for a free one"
            ) from error
        self._started.push_async_callback(self.listener.stop, STREAM_GRACE)
        try:
            await self.host.start()
        except CannotDivide as refusal:
            raise CannotStart(str(refusal)) from refusal
        self._started.push_async_callback(self.host.stop, keep_pods=self.options.keep_pods)
        working = asyncio.create_task(self.loop.run())
        self._started.push_async_callback(self._stop_loop, working)
        address = f"https://127.0.0.1:{self.listener.port}"
        kubeconfig = self.options.data / "kubeconfig"
        certificates.write_kubeconfig(kubeconfig, self.identity, address)
        collection.freeze_survivors()
        _print_line(f"localkube is ready: {address} (kubeconfig: {kubeconfig})")
        _print_line(
            f"Pods run as processes of {_get_user_name()} (uid {os.getuid()}) on this machine, "
            "without isolation."
        )

    async def stop(self) -> None:
        """Stop the parts in reverse order: controllers, then pods (unless kept), then the API."""
        await self._started.aclose()

    async def _stop_loop(self, loop_task: asyncio.Task[None]) -> None:
        self.loop.stop()
        await loop_task


def _print_line(line: str) -> None:
    """Print a line for the process that started us.

    A closed pipe is no reason to stop.
    """
    try:
        print(line, flush=True)
    except BrokenPipeError:
        # The line stays in the buffer, and Python would fail to flush it when it exits.
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)


def _get_user_name() -> str:
    """Return the name of the user that pods run as.

    It is looked up by uid: the environment may say anything.
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "an unnamed user"


def _open_store(path: Path) -> Store:
    try:
        return Store(path, _collect_selectable_fields)
    except SchemaTooNew as error:
        raise CannotStart(str(error)) from error
    except sqlite3.OperationalError as error:
        advice = "see that the disk has room and that the file may be written"
        raise CannotStart(
            f"{path} cannot be opened ({error}): {advice}, or start with another --data"
        ) from error
    except sqlite3.DatabaseError as error:
        raise CannotStart(
            f"{path} cannot be read as the cluster's state ({error}): restore it, or start with "
            "another --data"
        ) from error


def _collect_selectable_fields(key: str, obj: Object) -> Mapping[str, str]:
    """Return the values that field selectors may ask of an object.

    Returns an empty mapping for a resource that is no longer served.
    """
    resource = resources.find_by_key(key)
    if resource is None:
        return {}
    return {path: read_field(obj) for path, read_field in resource.field_selectors.items()}


def _create_initial_objects(objects: Objects) -> None:
    """Create the objects that every cluster has from its first start.

    An object that exists stays as it is, changed or not, but for the specs of CRDs.
    """
    for name in INITIAL_NAMESPACES:
        _ensure_object(objects, resources.NAMESPACES, {"metadata": {"name": name}})
    for priority in build_default_priority_classes():
        _ensure_object(objects, resources.PRIORITYCLASSES, priority)
    for queue in build_default_queues():
        _ensure_object(objects, resources.QUEUES, queue)
    _ensure_object(objects, resources.STORAGECLASSES, resources.build_local_class())
    for definition in resources.build_crds():
        _ensure_object(objects, resources.CRDS, definition)
        # An upgrade may serve other fields than the data directory was made with.
        objects.modify(
            resources.CRDS, "", name_of(definition), partial(_set_spec, spec=definition["spec"])
        )


def _set_spec(definition: Object, spec: Object) -> None:
    definition["spec"] = spec


def _ensure_object(objects: Objects, resource: Resource, obj: Object) -> None:
    if objects.find(resource, "", name_of(obj)) is not None:
        return
    try:
        objects.create(resource, "", obj)
    except ApiError as refusal:
        raise CannotStart(
            f"{resource.kind} {name_of(obj)} could not be made: {refusal.message}"
        ) from refusal


@contextlib.contextmanager
def _lock_data_directory(data: Path) -> Iterator[None]:
    """Create the data directory, make it private, and lock it for this process.

    Raises CannotStart when it cannot be used or another localkube has locked it.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)
        # Stays open: closing it would give the lock back.
        lock = open(data / "lock", "w")  # noqa: SIM115
    except OSError as error:
        raise CannotStart(
            f"{data} cannot be used ({error.strerror}): give a directory you may write to with "
            "--data"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotStart(
                f"another localkube runs on {data}: stop it first, or use another --data"
            ) from error
        yield


@contextlib.contextmanager
def _use_ballast(data: Path) -> Iterator[None]:
    """Release the ballast of the data directory for the code inside.

    Raises CannotStart when the disk is full even so.
    """
    ballast.release_ballast(data)
    try:
        yield
    except (OSError, ApiError) as error:
        if isinstance(error, ApiError) and error.code != HTTPStatus.INSUFFICIENT_STORAGE:
            raise
        if isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CannotStart(
            f"the disk of {data} is full: free some space on it, or use another --data"
        ) from error


@contextlib.contextmanager
def _stop_with_process(pid: int, stop: asyncio.Event) -> Iterator[None]:
    """Set `stop` when process `pid` ends. Raises CannotStart when there is no such process.

    A pidfd is used, since the number may be reused by another process.
    """
    try:
        process_handle = os.pidfd_open(pid)
    except ProcessLookupError as error:
        raise CannotStart(
            f"process {pid}, which this cluster is to die with, is not there"
        ) from error
    loop = asyncio.get_running_loop()
    loop.add_reader(process_handle, stop.set)
    try:
        yield
    finally:
        loop.remove_reader(process_handle)
        os.close(process_handle)
