"""The cluster is silent, or holds garbage: the console says so, stays usable, and everything else
goes on.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.conformance.api import Api
from tests.faults import poisons
from tests.faults.stories import LONG, SHORT
from tests.installation import PROCESSES, Installation, all_over, eventually
from tests.rest import Program, Reader

PASSWORD = "correct horse battery"
SILENT = "has not answered since"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(
        tmp_path_factory.mktemp("troubles") / "var", admin_password=PASSWORD
    ).migrated() as running:
        eventually(lambda: set(running.pids()) == PROCESSES)
        yield running


@pytest.fixture(scope="module")
def program(installation: Installation) -> Program:
    return Program(installation.url, PASSWORD)


@pytest.fixture(scope="module")
def reader(installation: Installation) -> Reader:
    return Reader(installation.url, PASSWORD)


def are(program: Program, phases: dict[str, str], within: float = 270) -> None:
    """Wait until each of these workloads is in its phase, or among the deleted."""

    def list_others() -> list[str]:
        deleted_ids = {str(each["id"]) for each in program.listed(deleted="true").values()}
        now = {key: "Deleted" if key in deleted_ids else program.phase(key) for key in phases}
        return [f"{key} is {phase}" for key, phase in now.items() if phase != phases[key]]

    all_over(list_others, within)


@pytest.mark.timeout(900)
def test_poison_in_the_cluster_stops_nothing_else(
    installation: Installation, program: Program, reader: Reader
) -> None:
    ended, beside = (
        program.submit("ended-before-poison", **SHORT),
        program.submit("beside-poison", **SHORT),
    )
    are(program, {ended: "Completed"})
    api = Api.from_kubeconfig(installation.data / "localkube" / "kubeconfig")
    taken = {poisons.PODS: poisons.pods(beside, ended), poisons.JOBS: poisons.jobs(beside, ended)}
    answers = {
        path: [api.post(path, each).status for each in objects] for path, objects in taken.items()
    }
    answers[poisons.EVENTS] = [
        api.post(poisons.EVENTS, each).status for each in poisons.events(beside, "beside-poison")
    ]
    assert all(statuses.count(201) >= 3 for statuses in answers.values()), answers
    before = installation.pids()
    after = program.submit("after-poison", **SHORT)
    are(program, {ended: "Completed", beside: "Completed", after: "Completed"})
    eventually(
        lambda: all(
            f"{poisons.NAMESPACE}/{name}" in installation.log("follow")
            for name in ("poison-3", "poison-4", "poison-9")
        )
    )
    for path in (
        "/workloads",
        *(f"/workloads/{beside}/{tab}" for tab in ("history", "logs", "details")),
        f"/workloads/{beside}/pods",
    ):
        assert "<script>alert(1)" not in reader.page(path)
    for each in (ended, beside, after):
        program.delete(each)
    are(program, {ended: "Deleted", beside: "Deleted", after: "Deleted"})
    assert installation.pids() == before
    api.close()


@contextlib.contextmanager
def silence(installation: Installation, name: str) -> Iterator[None]:
    """A server accepts connections, as its kernel does for it, and answers none."""
    pid = installation.pids()[name]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.timeout(900)
def test_a_broker_that_hangs_holds_nobody_up(
    installation: Installation, program: Program, reader: Reader
) -> None:
    impatient = Program(installation.url, PASSWORD, patience=0)
    with silence(installation, "redis"):
        hung = [impatient.submit(f"hung-{number}", **SHORT) for number in range(3)]
        impatient.delete(hung[2])
        assert "hung-1" in reader.page("/workloads")
    are(program, {hung[0]: "Completed", hung[1]: "Completed", hung[2]: "Deleted"})


def through_a_silence(
    installation: Installation, program: Program, reader: Reader, name: str, seconds: float
) -> None:
    there, stops, goes = (
        program.submit(f"{name}-{what}", **spec)
        for what, spec in (("there", SHORT), ("stops", LONG), ("goes", LONG))
    )
    are(program, {there: "Completed", stops: "Running", goes: "Running"})
    assert SILENT not in reader.page("/workloads")
    with silence(installation, "localkube"):
        began = time.monotonic()
        comes = program.submit(f"{name}-comes", **SHORT)
        program.suspend(stops)
        program.delete(goes)
        eventually(lambda: SILENT in reader.page("/workloads"), within=360)
        print(f"{name}: said after {time.monotonic() - began:.1f} s")
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        for path in (
            "/workloads",
            *(f"/workloads/{there}/{tab}" for tab in ("history", "logs", "details")),
            f"/workloads/{there}/pods",
        ):
            page = reader.page(path)
            assert f"{name}-there" in page
            assert SILENT in page or path.endswith("/pods")
        now = {program.phase(each) for each in (comes, stops, goes)}
        assert now == {"Creating", "Stopping", "Deleting"}
        assert reader.page("/workloads").count('class="mu-age"') >= 4
    began = time.monotonic()
    are(program, {there: "Completed", comes: "Completed", stops: "Stopped", goes: "Deleted"})
    eventually(lambda: SILENT not in reader.page("/workloads"))
    print(f"{name}: over {time.monotonic() - began:.1f} s after the silence")


@pytest.mark.timeout(900)
def test_what_is_asked_for_while_the_cluster_is_silent_is_done_after(
    installation: Installation, program: Program, reader: Reader
) -> None:
    through_a_silence(installation, program, reader, "silence", 0)


@pytest.mark.long
def test_what_is_asked_for_in_a_minute_of_silence_is_done_after(
    installation: Installation, program: Program, reader: Reader
) -> None:
    through_a_silence(installation, program, reader, "minute", 60)
