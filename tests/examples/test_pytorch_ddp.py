"""The PyTorch example: DDP over gloo, directly and under torchrun, with checkpoints, resuming and
an elastic group.
"""

import re
import signal
import sys
from pathlib import Path

import pytest

from tests.examples.processes import EXAMPLES, Launcher, Process
from tests.free_ports import pick_free_port
from tests.torch import TORCH, needs_torch

PROGRAM = "pytorch_ddp.py"
pytestmark = pytest.mark.timeout(900)


def elastic_agent(launcher: Launcher, port: int, *arguments: str, host: bool = False) -> Process:
    """One pod of an elastic PyTorchJob, which starts torchrun by itself, with the settings that
    examples/README.md asks for.

    The host keeps the group's store and must stay.
    """
    settings = {
        "PET_NNODES": "2:3",
        "PET_NPROC_PER_NODE": "1",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"127.0.0.1:{port}",
        "PET_RDZV_ID": "example",
        "PET_RDZV_CONF": (
            f"keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=2,is_host={int(host)}"
        ),
        "PET_MAX_RESTARTS": "10",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    return launcher.start([TORCH, str(EXAMPLES / PROGRAM), *arguments], settings)


def test_without_torch_one_line_says_how_to_install_it(launcher: Launcher) -> None:
    alone = launcher.start([sys.executable, "-S", str(EXAMPLES / PROGRAM)], {})
    assert alone.wait() == 1
    assert "pip install torch==2.13.0" in alone.log
    assert alone.log.count("\n") == 1


@needs_torch
def test_two_ranks_learn_and_end_with_the_same_weights(launcher: Launcher) -> None:
    ranks = launcher.group(2, PROGRAM, "--steps", "40", python=TORCH)
    assert [rank.wait(300) for rank in ranks] == [0, 0], [rank.log for rank in ranks]
    assert len({rank.digest() for rank in ranks}) == 1
    losses = ranks[0].losses()
    assert list(losses) == list(range(1, 41))
    assert sum(losses[step] for step in range(1, 6)) > sum(losses[step] for step in range(36, 41))


@needs_torch
def test_the_loss_of_a_step_does_not_depend_on_the_number_of_ranks(launcher: Launcher) -> None:
    """Of 64 samples three ranks take 22, 21 and 21."""
    alone = launcher.group(1, PROGRAM, "--steps", "40", python=TORCH)[0]
    ranks = launcher.group(3, PROGRAM, "--steps", "40", python=TORCH)
    assert [rank.wait(300) for rank in (alone, *ranks)] == [0, 0, 0, 0]
    losses = alone.losses()
    assert all(abs(loss - losses[step]) <= 1e-6 for step, loss in ranks[2].losses().items())
    assert list(ranks[2].losses()) == list(losses) == list(range(1, 41))


@needs_torch
def test_a_stopped_training_goes_on_from_its_checkpoint_and_a_finished_one_does_not(
    launcher: Launcher, tmp_path: Path
) -> None:
    arguments = ["--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "5"]
    straight = launcher.group(1, PROGRAM, "--steps", "20", python=TORCH)[0]
    first = launcher.group(
        1, PROGRAM, "--steps", "20", "--fail-at-step", "13", *arguments, python=TORCH
    )[0]
    assert first.wait(300) == 3
    second = launcher.group(
        1, PROGRAM, "--steps", "20", "--fail-at-step", "13", *arguments, python=TORCH
    )[0]
    assert second.wait(300) == 0
    assert list(second.losses()) == list(range(11, 21))
    third = launcher.group(1, PROGRAM, "--steps", "20", *arguments, python=TORCH)[0]
    assert third.wait(300) == 0
    assert "nothing is left to do" in third.log
    assert third.losses() == {}
    assert straight.wait(300) == 0
    assert straight.digest() == second.digest() == third.digest()


@needs_torch
def test_when_a_rank_fails_the_other_ends_with_a_line(launcher: Launcher) -> None:
    ranks = launcher.group(2, PROGRAM, "--fail-at-step", "3", "--fail-rank", "1", python=TORCH)
    assert [rank.wait(300) for rank in ranks] == [1, 3]
    assert "rank 1 fails at step 3" in ranks[1].log
    assert re.search(r"^rank 0 stops: ", ranks[0].log, re.MULTILINE)
    assert "Traceback" not in ranks[0].log


@needs_torch
def test_sigterm_ends_a_rank_that_waits_for_another(launcher: Launcher) -> None:
    ranks = launcher.group(2, PROGRAM, "--slow", "0.1", "--steps", "10000", python=TORCH)
    ranks[0].awaited(r"^step 2 ", within=360)
    ranks[1].process.send_signal(signal.SIGSTOP)
    ranks[0].process.send_signal(signal.SIGTERM)
    assert ranks[0].wait(60) in (143, -signal.SIGTERM)


@needs_torch
@pytest.mark.long
def test_an_elastic_group_loses_a_member_gets_another_and_finishes(
    launcher: Launcher, tmp_path: Path
) -> None:
    arguments = [
        "--steps",
        "40",
        "--slow",
        "0.3",
        "--checkpoint",
        str(tmp_path / "kept"),
        "--checkpoint-every",
        "5",
    ]
    straight = launcher.group(1, PROGRAM, "--steps", "40", python=TORCH)[0]
    port = pick_free_port()
    first = elastic_agent(launcher, port, *arguments, host=True)
    lost = elastic_agent(launcher, port, *arguments)
    first.awaited(r"^step 7 ", within=360)
    lost.end()
    newcomer = elastic_agent(launcher, port, *arguments)
    assert int(newcomer.awaited(r"^resumed at step (\d+)$", within=360)[1]) >= 5
    assert (first.wait(300), newcomer.wait(300)) == (0, 0)
    assert first.digest() == newcomer.digest()
    assert 40 in newcomer.losses()
    assert straight.wait(300) == 0
    losses = straight.losses()
    for rank in (first, lost, newcomer):
        assert all(abs(loss - losses[step]) <= 1e-6 for step, loss in rank.losses().items())
