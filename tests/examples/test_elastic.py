"""The elastic example as real processes: ranks leave, come and die, and the loss of each step stays
what it is without them.
"""

import json
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.examples.processes import EXAMPLES, Launcher, Process, wait_until
from tests.free_ports import pick_free_port
from tests.torch import TORCH, needs_torch

STEPS = 60
ENDLESS = ("--steps", "1000", "--slow", "0.1")
"""More steps than any test waits for, whatever else the machine does."""


class Group:
    """Ranks that meet at one port, the first of them beside the hub."""

    def __init__(self, launcher: Launcher, nodes: str = "1:4", *more: str, **env: str) -> None:
        self.launcher, self.port, self.nodes = launcher, pick_free_port(), nodes
        self.arguments = ("--steps", str(STEPS), "--checkpoint-every", "5", *more)
        self.env = env

    def start(self, *, is_host: bool = False, slow: str = "") -> Process:
        variables = {
            "PET_RDZV_ENDPOINT": f"127.0.0.1:{self.port}",
            "PET_RDZV_CONF": f"last_call_timeout=2,is_host={int(is_host)}",
            "PET_NNODES": self.nodes,
        }
        command = [sys.executable, str(EXAMPLES / "elastic.py"), *self.arguments]
        command += ["--slow", slow] if slow else []
        return self.launcher.start(command, variables | self.env)

    def start_under_master(self, rank: int, world: int) -> Process:
        variables = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.port),
            "RANK": str(rank),
            "WORLD_SIZE": str(world),
            "PET_NNODES": self.nodes,
        }
        command = [sys.executable, str(EXAMPLES / "elastic.py"), *self.arguments]
        return self.launcher.start(command, variables)

    def start_all(self, count: int) -> list[Process]:
        return [self.start(is_host=number == 0) for number in range(count)]


@pytest.fixture
def uninterrupted_losses(launcher: Launcher) -> dict[int, float]:
    """The losses of a training without any interruption."""
    rank = Group(launcher, "1", *ENDLESS, "--slow", "0").start(is_host=True)
    assert rank.wait() == 0
    return rank.losses()


def assert_losses_are(ranks: Sequence[Process], losses: dict[int, float]) -> None:
    for rank in ranks:
        for step, loss in rank.losses().items():
            assert abs(loss - losses[step]) <= 1e-6, (step, rank.log)


def test_ranks_learn_the_same_however_many_they_are(
    launcher: Launcher, uninterrupted_losses: dict[int, float]
) -> None:
    ranks = Group(launcher, "3", "--slow", "0").start_all(3)
    assert [rank.wait() for rank in ranks] == [0, 0, 0]
    assert len({rank.digest() for rank in ranks}) == 1
    assert_losses_are(ranks, uninterrupted_losses)
    assert list(ranks[0].losses()) == list(range(1, STEPS + 1))
    assert uninterrupted_losses[1] > uninterrupted_losses[10] > uninterrupted_losses[STEPS]


def test_ranks_of_a_job_that_is_not_elastic_meet_at_its_master(
    launcher: Launcher, uninterrupted_losses: dict[int, float]
) -> None:
    """Such a job has no rendezvous: its operator names the master and numbers the pods."""
    group = Group(launcher, "3", "--slow", "0")
    ranks = [group.start_under_master(rank, 3) for rank in (1, 0, 2)]
    assert [rank.wait() for rank in ranks] == [0, 0, 0], ranks[0].log
    assert len({rank.digest() for rank in ranks}) == 1
    assert_losses_are(ranks, uninterrupted_losses)
    assert "elastic: rank 0 of 3" in ranks[1].log


def test_ranks_without_an_address_to_meet_at_say_so(launcher: Launcher) -> None:
    command = [sys.executable, str(EXAMPLES / "elastic.py")]
    rank = launcher.start(command, {"PET_NNODES": "2"})
    assert rank.wait() == 2
    assert rank.log == (
        "2 ranks have no address to meet at: neither PET_RDZV_ENDPOINT nor MASTER_ADDR is set; "
        "give the job a master, or a minimum and a maximum of pods\n"
    )


def test_a_group_goes_on_from_its_checkpoint_when_ranks_leave_and_come(
    launcher: Launcher, tmp_path: Path, uninterrupted_losses: dict[int, float]
) -> None:
    group = Group(launcher, "2:3", *ENDLESS, "--checkpoint", str(tmp_path / "kept"))
    ranks = group.start_all(3)
    ranks[2].awaited(r"^step 7 .* world 3")
    ranks[2].process.kill()
    resumed = int(ranks[0].awaited(r"^resumed at step (\d+)$")[1])
    assert resumed >= 5
    assert resumed % 5 == 0
    ranks[0].awaited(r"^step \d+ .* world 2")
    ranks.append(group.start())
    ranks[3].awaited(r"^resumed at step \d+$")
    ranks[3].awaited(r"^step \d+ .* world 3")
    assert_losses_are(ranks, uninterrupted_losses)


def test_the_ranks_wait_for_a_hub_that_comes_back(
    launcher: Launcher, tmp_path: Path, uninterrupted_losses: dict[int, float]
) -> None:
    group = Group(launcher, "2:2", "--slow", "0", "--checkpoint", str(tmp_path / "kept"))
    hub, other = group.start(is_host=True, slow="0.5"), group.start()
    other.awaited(r"^step 7 ")
    hub.process.kill()
    other.awaited("the hub was lost")
    again = group.start(is_host=True)
    assert int(again.awaited(r"^resumed at step (\d+)$")[1]) >= 5
    assert [rank.wait() for rank in (again, other)] == [0, 0]
    assert_losses_are([hub, other, again], uninterrupted_losses)


def test_without_a_checkpoint_the_group_begins_anew_and_says_so(launcher: Launcher) -> None:
    hub, other = Group(launcher, "1:2", *ENDLESS).start_all(2)
    other.awaited(r"^step 3 ")
    other.process.kill()
    hub.awaited("no checkpoint: began anew at step 0")
    hub.awaited(r"^step 1 .* world 1")


def test_the_ranks_that_outlive_their_hub_say_that_training_begins_anew(
    launcher: Launcher,
) -> None:
    group = Group(launcher, "2:2", *ENDLESS)
    hub, other = group.start_all(2)
    other.awaited(r"^step 3 ")
    hub.process.kill()
    other.awaited("the hub was lost")
    group.start(is_host=True)
    other.awaited("no checkpoint: began anew at step 0")


def test_a_checkpoint_that_is_being_written_is_whole_when_its_rank_is_evicted(
    launcher: Launcher, tmp_path: Path, uninterrupted_losses: dict[int, float]
) -> None:
    """Of each step one is written, so that the signals meet it at any point."""
    folder = tmp_path / "kept"
    more = ("--steps", "100000", "--slow", "0", "--checkpoint-every", "1")
    group = Group(launcher, "1", *more, "--checkpoint", str(folder))
    resumed = 0
    for how, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGTERM, 143)):
        rank = group.start(is_host=True)
        rank.awaited(rf"^step {resumed + 2} ")
        rank.process.send_signal(how)
        rank.process.send_signal(how)
        assert rank.wait(60) == code
        again = group.start(is_host=True)
        resumed = int(again.awaited(r"^resumed at step (\d+)$")[1])
        assert resumed - max(rank.losses()) in (-1, 0, 1)
        again.end()
        resumed = json.loads((folder / "checkpoint.json").read_text())["step"]


def test_a_rank_that_is_asked_to_end_keeps_what_is_done(launcher: Launcher, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    more = (*ENDLESS, "--checkpoint-every", "1000", "--checkpoint", str(folder))
    hub = Group(launcher, "1", *more).start(is_host=True)
    hub.awaited(r"^step 3 ")
    hub.process.send_signal(signal.SIGTERM)
    assert hub.wait() == 143
    again = Group(launcher, "1", *more).start(is_host=True)
    resumed = int(again.awaited(r"^resumed at step (\d+)$")[1])
    # The signal may come between a step and its line.
    assert resumed - max(hub.losses()) in (0, 1)


def test_a_group_is_formed_anew_as_often_as_it_may(launcher: Launcher) -> None:
    group = Group(launcher, "1:2", *ENDLESS, PET_MAX_RESTARTS="0")
    hub, other = group.start_all(2)
    other.awaited(r"^step 3 ")
    other.process.kill()
    assert hub.wait() == 1
    assert "ranks lost: 1, ranks that came: 0" in hub.log


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "cannot be read"), ('{"step": 9, "weights": [], "terms": []}', "another training")],
)
def test_a_checkpoint_that_is_not_its_own_is_left_alone(
    launcher: Launcher, tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "checkpoint.json").write_text(content)
    more = ("--slow", "0", "--checkpoint", str(tmp_path))
    rank = Group(launcher, "1", *more).start(is_host=True)
    assert rank.wait() == 0
    assert words in rank.log
    assert next(iter(rank.losses())) == 1


def test_strangers_do_not_disturb_the_group(launcher: Launcher) -> None:
    group = Group(launcher, "2:2", "--slow", "0")
    hub = group.start(is_host=True)

    def find_server() -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", group.port), timeout=1)
        except OSError:
            return None

    for greeting in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"ELA1H" + b"\xff" * 12, b""):
        connection = wait_until(find_server, 30, lambda: hub.log)
        connection.sendall(greeting)
        connection.close()
    other = group.start()
    assert [rank.wait() for rank in (hub, other)] == [0, 0]


@pytest.mark.parametrize(
    ("variable", "value"),
    [("PET_NNODES", "4:2"), ("PET_RDZV_ENDPOINT", "here"), ("PET_MAX_RESTARTS", "-1")],
)
def test_wrong_variables_are_refused_by_name(launcher: Launcher, variable: str, value: str) -> None:
    rank = Group(launcher, "1", **{variable: value}).start(is_host=True)
    assert rank.wait() == 2
    assert variable in rank.log


@needs_torch
@pytest.mark.long
@pytest.mark.timeout(900)
def test_under_torchrun_it_trains_the_same(
    launcher: Launcher, uninterrupted_losses: dict[int, float]
) -> None:
    settings = {
        "PET_NNODES": "1",
        "PET_NPROC_PER_NODE": "2",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"127.0.0.1:{pick_free_port()}",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    program = [str(EXAMPLES / "elastic.py"), "--steps", "20", "--slow", "0"]
    run = launcher.start([TORCH, "-m", "torch.distributed.run", *program], settings)
    assert run.wait(240) == 0, run.log
    assert "rank 1 world 2" in run.log
    assert_losses_are([run], uninterrupted_losses)
