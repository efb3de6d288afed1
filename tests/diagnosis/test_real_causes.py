"""Causes made by real processes on an embedded cluster, which a follower watches."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusters import connections as clients
from clusters import project_provisioning
from tests.cast import Cast, a_spec, make_cast
from tests.cluster import LocalKube
from tests.diagnosis.measuring import Measurement, describe_measurements, measure_until
from tests.workloads.test_follow import following
from workloads import journal, tasks
from workloads.logbook.collecting import LogCollector
from workloads.queries import WorkloadDiagnosis
from workloads.specs import (
    Architecture,
    Compute,
    Environment,
    Lifecycle,
    Setup,
    Variable,
    VariableSource,
)
from workloads.specs.pod_setup import Claim, Secret, Volume

pytestmark = pytest.mark.django_db(transaction=True)
SMALL: dict[str, Any] = {"cpu_request": "0.1", "memory_request": "50M"}


@dataclass(frozen=True, slots=True)
class RealCause:
    """A pod that waits or fails for this cause, and parts of the sentence about it."""

    name: str
    parts: Sequence[str]
    command: Sequence[str] = ("sleep", "600")
    image: str = "any"
    is_imageless: bool = False
    variables: Sequence[Variable] = ()
    volumes: Sequence[Volume] = ()
    compute: Compute = field(default_factory=lambda: Compute(**SMALL))


def _run_script(script: str) -> Sequence[str]:
    """Return the command of a shell; the cluster makes one dollar of two."""
    return ("sh", "-c", script)


MISSING_TOKEN = Variable(
    name="TOKEN", source=VariableSource.SECRET, object_name="absent", key="token"
)
PORT = (
    "import socket; a = socket.create_server(('127.0.0.1', 0)); "
    "socket.create_server(a.getsockname())"
)
SAMPLE: Sequence[RealCause] = (
    RealCause("exit code", ["exit code 3"], _run_script("exit 3")),
    RealCause(
        "missing module",
        ["its image lacks a module"],
        ("python3", "-c", "import no_such_module"),
    ),
    RealCause("Secret of a variable", ["Secret absent", "is not there"], variables=[MISSING_TOKEN]),
    RealCause(
        "more CPU than there is",
        ["CPU cores"],
        compute=Compute(cpu_request="900", memory_request="50M"),
    ),
)
MORE: Sequence[RealCause] = (
    RealCause("SIGKILL", ["SIGKILL", "137"], _run_script("kill -9 $$$$")),
    RealCause("SIGSEGV", ["SIGSEGV"], _run_script("kill -11 $$$$")),
    RealCause("SIGABRT", ["SIGABRT"], ("python3", "-c", "import os; os.abort()")),
    RealCause("command that is not there", ["not found"], _run_script("no-such-command")),
    RealCause("command that cannot be executed", ["cannot be executed"], _run_script("exit 126")),
    RealCause("missing file", ["is not there"], ("python3", "-c", "open('/no/such/file')")),
    RealCause("port in use", ["has the port"], ("python3", "-c", PORT)),
    RealCause(
        "arguments",
        ["does not take its arguments"],
        (
            "python3",
            "-c",
            "import argparse, sys; argparse.ArgumentParser().parse_args(['--no-such-flag'])",
        ),
    ),
    RealCause(
        "name that is not known",
        ["knows no address"],
        ("python3", "-c", "import socket; socket.getaddrinfo('absent.invalid', 1)"),
    ),
    RealCause("image that is not there", ["cannot be pulled"], image="no/such", is_imageless=True),
    RealCause(
        "Secret of a volume", ["Secret absent"], volumes=[Secret(path="/secret", name="absent")]
    ),
    RealCause(
        "claim that is not there",
        ["claim absent", "is not there"],
        volumes=[Claim(path="/d", claim="absent")],
    ),
)


@pytest.fixture
def real_cast(tmp_path: Path) -> Iterator[Cast]:
    """The cast on an embedded cluster, followed, with the logs of its pods captured."""
    with LocalKube(tmp_path / "kube", "--gpus", "4") as kube:
        cast = make_cast(kube.kubeconfig.read_text())
        project_provisioning.provision_project(cast.team_a)
        stop = threading.Event()
        collector = LogCollector(cast.cluster.pk, stop, threading.Event())
        thread = threading.Thread(target=collector.run)
        thread.start()
        try:
            with following():
                yield cast
        finally:
            stop.set()
            thread.join()
            clients.close_all()


def run_cause(cast: Cast, cause: RealCause, number: int) -> Measurement:
    """Submit a workload with the cause, and measure until its sentence is right."""
    environment = Environment(
        image=cause.image,
        command=() if cause.is_imageless else tuple(cause.command),
        variables=tuple(cause.variables),
    )
    setup = Setup(environment, cause.compute, volumes=tuple(cause.volumes))
    spec = a_spec(
        cast.team_a,
        f"real{number}",
        setup=setup,
        workers=1,
        architecture=Architecture.STANDARD,
        framework=None,
        lifecycle=Lifecycle(backoff_limit=0),
    )
    workload = journal.create_workload(spec, project=cast.team_a, user=cast.bob)
    since = time.monotonic()
    tasks.launch(str(workload.pk))
    return measure_until(
        cause.name, cast, workload, since, lambda found: _list_missing(cause, found)
    )


def _list_missing(cause: RealCause, found: WorkloadDiagnosis | None) -> Sequence[str]:
    sentence = found.sentence if found is not None else ""
    return [f"{part!r} is missing" for part in cause.parts if part not in sentence]


def run_causes(cast: Cast, causes: Sequence[RealCause]) -> Sequence[Measurement]:
    return [run_cause(cast, cause, number) for number, cause in enumerate(causes)]


def test_real_processes_have_their_sentences(real_cast: Cast) -> None:
    found = run_causes(real_cast, SAMPLE)
    assert all(each.seconds is not None for each in found), describe_measurements("real", found)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_all_real_causes_have_their_sentences(real_cast: Cast) -> None:
    """The seconds are from the submission on: they include the start and the end of the process."""
    found = run_causes(real_cast, (*SAMPLE, *MORE))
    table = describe_measurements("real processes", found)
    print(f"\n{table}")
    assert sum(each.seconds is not None for each in found) >= 0.95 * len(found), table
