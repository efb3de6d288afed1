"""The tutorial's image: its arguments are taken, what is run is said, and nothing is ignored in
silence.
"""

from pathlib import Path

import pytest

from tests.examples.processes import Launcher

BARE = ("-S",)
"""The interpreter without installed packages, so without torch."""

FAST = ("--slow", "0", "--steps", "3")


@pytest.fixture
def torch_path(tmp_path: Path) -> str:
    """A folder with something that is called torch, where only its being there counts."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(name='torch')\n")
    return str(tmp_path)


def test_without_torch_it_says_so_and_runs_allreduce(launcher: Launcher) -> None:
    ranks = launcher.group(2, "mnist.py", *FAST, flags=BARE)
    assert [rank.wait() for rank in ranks] == [0, 0]
    assert ranks[0].log.startswith(
        "mnist: torch is not installed for this Python: running allreduce --steps 3 --slow 0.0\n"
    )
    assert ranks[0].digest() == ranks[1].digest()


def test_with_torch_it_runs_pytorch_ddp(launcher: Launcher, torch_path: str) -> None:
    rank = launcher.group(
        1,
        "mnist.py",
        *FAST,
        "--backend",
        "gloo",
        "--no-cuda",
        "--batch-size",
        "32",
        PYTHONPATH=torch_path,
    )[0]
    assert rank.wait() == 1
    expected = (
        "running pytorch_ddp --steps 3 --slow 0.0 --no-cuda --batch-size 32 --backend gloo\ntorch "
        "is missing"
    )
    assert expected in rank.log


def test_the_arguments_of_the_tutorial_are_taken_or_said_to_be_ignored(launcher: Launcher) -> None:
    tutorial = (
        "--backend",
        "gloo",
        "--epochs",
        "2",
        "--lr",
        "0.5",
        "--momentum",
        "0.5",
        "--save-model",
        "--dir",
        "/x",
        "--no-cuda",
    )
    rank = launcher.group(1, "mnist.py", *tutorial, "--slow", "0", "--mystery", "1", flags=BARE)[0]
    assert rank.wait() == 0
    assert "running allreduce --steps 40 --slow 0.0 --lr 0.5\n" in rank.log
    for ignored in (
        "--backend gloo",
        "--momentum 0.5",
        "--save-model",
        "--dir /x",
        "--mystery",
        "1",
    ):
        assert f"mnist: ignored {ignored}: " in rank.log


@pytest.mark.parametrize("epochs", ["1", "3", "10"])
def test_it_lasts_about_a_minute_whatever_the_epochs(launcher: Launcher, epochs: str) -> None:
    rank = launcher.group(1, "mnist.py", "--epochs", epochs, flags=BARE)[0]
    line = rank.awaited(r"--steps (\d+) --slow ([\d.]+)")
    assert 55 < int(line[1]) * float(line[2]) < 65
    assert line[1] == str(20 * int(epochs))


def test_wrong_values_are_refused(launcher: Launcher) -> None:
    assert launcher.group(1, "mnist.py", "--epochs", "0")[0].wait() == 2
