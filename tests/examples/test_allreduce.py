"""The all-reduce example as three real processes: it trains, agrees, and says who is to blame when
it cannot.
"""

import random
import signal
import socket
from typing import Any

import pytest

from tests.examples.processes import Launcher
from tests.free_ports import pick_free_port

PROGRAM = "allreduce.py"


def test_three_ranks_learn_and_end_with_the_same_weights(launcher: Launcher) -> None:
    ranks = launcher.group(3, PROGRAM, "--steps", "30")
    assert [rank.wait() for rank in ranks] == [0, 0, 0]
    assert len({rank.digest() for rank in ranks}) == 1
    for rank in ranks:
        losses = rank.losses()
        assert list(losses) == list(range(1, 31))
        assert losses[1] > losses[10] > losses[30]


def test_the_same_group_trains_to_the_same_digest_again(launcher: Launcher) -> None:
    runs = [launcher.group(2, PROGRAM, "--steps", "5")[0] for _ in range(2)]
    assert runs[0].digest() == runs[1].digest()


def test_without_a_launcher_it_trains_alone(launcher: Launcher) -> None:
    alone = launcher.rank(0, 1, pick_free_port(), PROGRAM, "--epochs", "3")
    assert alone.wait() == 0
    assert list(alone.losses()) == [1, 2, 3]


def test_a_rank_fails_when_it_is_told_to_and_the_others_name_it(launcher: Launcher) -> None:
    ranks = launcher.group(3, PROGRAM, "--fail-at-step", "4", "--fail-rank", "1")
    assert [rank.wait() for rank in ranks] == [1, 3, 1]
    assert "rank 1 fails at step 4" in ranks[1].log
    for rank in (ranks[0], ranks[2]):
        assert "rank 1 was lost" in rank.log
        assert list(rank.losses()) == [1, 2, 3]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_when_a_rank_is_killed_the_others_name_it_and_end(launcher: Launcher, lost: int) -> None:
    ranks = launcher.group(3, PROGRAM, "--steps", "10000", "--slow", "0.02")
    ranks[lost].awaited(r"^step 3 ")
    ranks[lost].process.kill()
    for number in {0, 1, 2} - {lost}:
        assert ranks[number].wait() == 1
        assert f"rank {number} stops: rank {lost} was lost" in ranks[number].log


def test_sigterm_ends_a_rank_at_once(launcher: Launcher) -> None:
    ranks = launcher.group(2, PROGRAM, "--steps", "10000", "--slow", "0.02")
    ranks[1].awaited(r"^step 2 ")
    ranks[1].process.send_signal(signal.SIGTERM)
    assert ranks[1].wait(60) == 143


def test_workers_wait_for_a_hub_that_comes_late(launcher: Launcher) -> None:
    port = pick_free_port()
    worker = launcher.rank(1, 2, port, PROGRAM, "--steps", "2")
    worker.awaited("rank 1 of 2")
    hub = launcher.rank(0, 2, port, PROGRAM, "--steps", "2")
    assert (hub.wait(), worker.wait()) == (0, 0)


def test_strangers_at_the_door_do_not_disturb_the_group(launcher: Launcher) -> None:
    port = pick_free_port()
    hub = launcher.rank(0, 2, port, PROGRAM, "--steps", "2")
    for greeting in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"ALR1H" + b"\xff" * 12,
        random.Random(1).randbytes(500),
        b"",
    ):
        connection = None
        while connection is None:
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            except ConnectionRefusedError:
                assert hub.process.poll() is None, hub.log
        with connection:
            connection.sendall(greeting)
    worker = launcher.rank(1, 2, port, PROGRAM, "--steps", "2")
    assert (hub.wait(), worker.wait()) == (0, 0)
    assert hub.log.count("was refused") == 4


def test_ranks_with_different_arguments_do_not_train_together(launcher: Launcher) -> None:
    port = pick_free_port()
    launcher.rank(1, 2, port, PROGRAM, "--steps", "3")
    hub = launcher.rank(0, 2, port, PROGRAM, "--steps", "4")
    assert hub.wait() == 1
    assert "rank 1 was started with other arguments" in hub.log


@pytest.mark.parametrize(
    ("env", "part"),
    [
        ({"RANK": "3"}, "RANK is '3': it must be a number from 0 to 1"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE is 'many'"),
        ({"MASTER_PORT": "0"}, "MASTER_PORT is '0'"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR is missing"),
    ],
)
def test_wrong_variables_are_said_in_one_line(
    launcher: Launcher, env: dict[str, Any], part: str
) -> None:
    rank = launcher.rank(0, 2, pick_free_port(), PROGRAM, **env)
    assert rank.wait() == 2
    assert part in rank.log
    assert rank.log.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--steps", "0"], ["--lr", "nan"], ["--slow", "-1"], ["--what"]]
)
def test_wrong_arguments_are_refused(launcher: Launcher, arguments: list[str]) -> None:
    rank = launcher.rank(0, 1, pick_free_port(), PROGRAM, *arguments)
    assert rank.wait() == 2
    assert "usage:" in rank.log
