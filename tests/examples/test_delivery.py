"""The example of data delivery outside Muster: it trains on its own loader, and resumes."""

import sys
from pathlib import Path

from tests.examples.processes import EXAMPLES, Launcher
from tests.torch import TORCH, needs_torch

DELIVERY = str(EXAMPLES.parent / "delivery" / "src")
FAST = ("--batches", "4", "--batch-size", "2", "--load-seconds", "0.01", "--step-seconds", "0.01")


def test_alone_it_trains_on_its_own_loader_and_resumes(launcher: Launcher, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "delivery.py"), *FAST, "--print-elements"]
    command += ["--checkpoint", str(tmp_path / "checkpoints")]
    first = launcher.start([*command, "--steps", "6"], {"PYTHONPATH": DELIVERY})
    assert first.wait() == 0, first.log
    assert first.awaited(r"^step 4 loss [\d.]+ waited [\d.]+ elements 6 7$")
    assert first.awaited(r"^step 5 loss [\d.]+ waited [\d.]+ elements 0 1$")
    second = launcher.start([*command, "--steps", "8"], {"PYTHONPATH": DELIVERY})
    assert second.wait() == 0, second.log
    assert second.log.startswith("resumed at step 6\n")
    assert second.awaited(r"^step 8 loss")
    assert second.digest() != first.digest()


def test_loading_may_compute_instead_of_sleeping(launcher: Launcher) -> None:
    command = [sys.executable, str(EXAMPLES / "delivery.py"), *FAST, "--load-computes"]
    process = launcher.start([*command, "--steps", "2"], {"PYTHONPATH": DELIVERY})
    assert process.wait() == 0, process.log
    assert process.awaited(r"^waited [\d.]+ s of [\d.]+ s for data \(\d+ %\)$")


@needs_torch
def test_the_twin_with_torch_sees_each_image_once_an_epoch(launcher: Launcher) -> None:
    arguments = ("--images", "32", "--batch-size", "8", "--epochs", "1", "--load-seconds", "0")
    command = [TORCH, str(EXAMPLES / "delivery_pytorch.py"), *arguments, "--print-elements"]
    process = launcher.start([*command, "--step-seconds", "0"], {"PYTHONPATH": DELIVERY})
    assert process.wait() == 0, process.log
    steps = [line.partition(" elements ")[2] for line in process.log.splitlines()]
    assert sorted(int(each) for step in steps for each in step.split()) == list(range(32))
