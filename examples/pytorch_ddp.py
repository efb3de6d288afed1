"""Distributed training with PyTorch DDP: a small classifier, with checkpoints, resuming, elastic
groups.

Runs as one process per pod from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, under torchrun, or
alone; where the operator's PET_RDZV_ENDPOINT says that torchrun is to form the group, it starts
torchrun. Data and batches follow from the seed and the step only, so a group that forms anew with
another number of ranks goes on with the same training: the loss of a step does not depend on their
number. Exit codes: 0 trained, 1 torch is missing or the group broke, 2 wrong arguments or
variables, 3 failed as asked to, 143 ended by SIGTERM.
"""

import argparse
import hashlib
import math
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

try:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
except ModuleNotFoundError as missing:
    print(
        (
            f"{missing.name} is missing: pip install torch==2.13.0 numpy, then run this with the "
            "Python that has it"
        ),
        file=sys.stderr,
    )
    sys.exit(1)

FEATURES, CLASSES, SAMPLES = 16, 4, 2048
CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class ProcessPlace:
    """Which process this is, of how many, and where it computes."""

    rank: int
    world: int
    local_rank: int
    device: torch.device


class GroupBroken(Exception):
    """The ranks cannot go on together: usually one is gone, or never came."""


# Joining


def detect_place(options: argparse.Namespace) -> ProcessPlace:
    """Return this process's place from the launcher's variables; without any it is alone."""
    world = parse_variable("WORLD_SIZE", "1", 1, 1024)
    rank = parse_variable("RANK", "0", 0, world - 1)
    local_rank = parse_variable("LOCAL_RANK", "0", 0, 1023)
    if world > 1 and not os.environ.get("MASTER_ADDR"):
        exit_now(2, f"MASTER_ADDR is missing: {world} ranks need to know where rank 0 listens")
    device = torch.device("cpu")
    if torch.cuda.is_available() and not options.no_cuda:
        device = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    return ProcessPlace(rank, world, local_rank, device)


def is_under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def become_torchrun(arguments: list[str], options: argparse.Namespace) -> NoReturn:
    """Go on as torchrun, which starts this program for each GPU, or once where there is none.

    It reads the group from the PET_* variables.
    """
    gpus = 0 if options.no_cuda else torch.cuda.device_count()
    launcher = [sys.executable, "-m", "torch.distributed.run"]
    program = ["--nproc-per-node", str(max(gpus, 1)), __file__, *arguments]
    os.execv(sys.executable, launcher + program)


def join_group(place: ProcessPlace, options: argparse.Namespace) -> Any:
    """Form the group over gloo and return the group that averages gradients.

    That is nccl where each rank has a GPU of its own. Raises GroupBroken when the others do not
    come.
    """
    if is_loopback(os.environ.get("MASTER_ADDR", "")):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    timeout = timedelta(seconds=options.timeout)
    try:
        if place.world == 1 and "MASTER_ADDR" not in os.environ:
            dist.init_process_group(
                "gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timeout
            )
        else:
            dist.init_process_group("gloo", timeout=timeout)
        devices: list[Any] = [None] * place.world
        dist.all_gather_object(devices, identify_gpu(place.device))
        own_gpus = None not in devices and len(set(devices)) == place.world
        if options.backend == "nccl" and not own_gpus:
            exit_now(2, "nccl needs a GPU of its own for each rank: use --backend gloo or auto")
        if options.backend != "gloo" and own_gpus:
            return dist.new_group(backend="nccl", timeout=timeout)
    except RuntimeError as error:
        raise GroupBroken(
            f"rank {place.rank} could not join the group: {first_line(error)}"
        ) from error
    return dist.group.WORLD


def is_loopback(host: str) -> bool:
    """Return whether a name means this machine alone.

    Gloo would otherwise need the machine's own name to resolve.
    """
    try:
        return socket.gethostbyname(host).startswith("127.")
    except OSError:
        return False


def identify_gpu(device: torch.device) -> str | None:
    """Return a GPU's unique name; None for the CPU."""
    return (
        f"{socket.gethostname()}/{torch.cuda.get_device_properties(device).uuid}"
        if device.type == "cuda"
        else None
    )


# Data, model and checkpoint


def make_data(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Make points and their classes by one hidden linear map: the same on every rank."""
    chance = torch.Generator().manual_seed(seed)
    points = torch.randn(SAMPLES, FEATURES, generator=chance)
    hidden = torch.randn(FEATURES, CLASSES, generator=chance)
    return points, (points @ hidden).argmax(dim=1)


def select_batch(step: int, place: ProcessPlace, options: argparse.Namespace) -> torch.Tensor:
    """Return the indexes of this rank's part of the step's batch.

    The whole batch does not depend on how many ranks share it.
    """
    epoch, batch_index = divmod(step - 1, SAMPLES // options.batch_size)
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(options.seed + epoch))
    return order[batch_index * options.batch_size : (batch_index + 1) * options.batch_size][
        place.rank :: place.world
    ]


def make_model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES)
    )


def hash_model(model: torch.nn.Module) -> str:
    content = hashlib.sha256()
    for tensor in model.state_dict().values():
        content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return content.hexdigest()[:16]


def save_checkpoint(folder: Path, state: dict[str, Any], rank: int) -> None:
    """Put the checkpoint in place whole or not at all, also when the machine stops meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{CHECKPOINT}.{socket.gethostname()}-{rank}-{os.getpid()}"
    try:
        with draft.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / CHECKPOINT)
    finally:
        draft.unlink(missing_ok=True)


def load_newest_state(place: ProcessPlace, folder: Path | None) -> dict[str, Any] | None:
    """Return the newest checkpoint among the ranks', the same on each, or None.

    The ranks' folders need not be one.
    """
    own_state = None
    if folder and (folder / CHECKPOINT).exists():
        own_state = torch.load(folder / CHECKPOINT, map_location="cpu", weights_only=True)
    reached: list[Any] = [0] * place.world
    dist.all_gather_object(reached, own_state["step"] if own_state else 0)
    best = max(reached)
    if best == 0:
        return None
    shared = [own_state]
    dist.broadcast_object_list(shared, src=reached.index(best), device=torch.device("cpu"))
    return shared[0]


# Training


def train(place: ProcessPlace, group: Any, options: argparse.Namespace) -> None:
    """Train from the newest checkpoint, or the start, to the last step.

    Raises GroupBroken when another rank goes away.
    """
    folder = Path(options.checkpoint) if options.checkpoint else None
    model = make_model(options.seed).to(place.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum)
    done_steps = 0
    try:
        state = load_newest_state(place, folder)
        if state:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            done_steps = state["step"]
            print(f"resumed at step {done_steps}")
        elif is_under_torchrun():
            # Not counted there: a rank that came. A process cannot know of the group before it.
            restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            print(f"no checkpoint: {'begins' if restarts == '0' else 'began anew'} at step 0")
        if done_steps >= options.steps:
            print(f"step {done_steps} is the last: nothing is left to do")
        else:
            run_steps(done_steps, model, optimizer, place, group, options)
        dist.barrier()
    except RuntimeError as error:
        raise GroupBroken(f"rank {place.rank} stops: {first_line(error)}") from error
    print(f"digest {hash_model(model)} rank {place.rank}")


def run_steps(
    completed_steps: int,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    place: ProcessPlace,
    group: Any,
    options: argparse.Namespace,
) -> None:
    points, labels = (tensor.to(place.device) for tensor in make_data(options.seed))
    parallel = DistributedDataParallel(model, process_group=group)
    folder = Path(options.checkpoint) if options.checkpoint else None
    for step in range(completed_steps + 1, options.steps + 1):
        if (
            step == options.fail_at_step
            and place.rank == options.fail_rank
            and completed_steps == 0
        ):
            print(
                f"rank {place.rank} fails at step {step}, as --fail-at-step asks", file=sys.stderr
            )
            os._exit(3)
        time.sleep(options.slow)
        batch = select_batch(step, place, options)
        optimizer.zero_grad()
        scores = parallel(points[batch])
        total = torch.nn.functional.cross_entropy(scores, labels[batch], reduction="sum")
        loss = total / options.batch_size
        # DDP takes the mean over the ranks, whose parts of the batch may differ in size.
        (loss * place.world).backward()
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=group)
        if step % options.log_interval == 0 or step == options.steps:
            print(f"step {step} loss {mean.item():.8f} rank {place.rank} world {place.world}")
        if (
            folder
            and place.local_rank == 0
            and (step % options.checkpoint_every == 0 or step == options.steps)
        ):
            save_checkpoint(
                folder,
                {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                place.rank,
            )


# The command


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Data-parallel training of a small classifier with PyTorch DDP."
    )
    parser.add_argument("--epochs", type=int, default=2, help="passes over the data")
    parser.add_argument("--steps", type=int, help="steps to train, instead of --epochs")
    parser.add_argument(
        "--batch-size", type=int, default=64, help="samples of a step, over all ranks"
    )
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1, help="seed of data, batches and weights")
    parser.add_argument(
        "--log-interval", type=int, default=1, metavar="N", help="print every N-th step"
    )
    parser.add_argument(
        "--no-cuda", action="store_true", help="train on the CPU even where there is a GPU"
    )
    parser.add_argument(
        "--backend",
        choices=("auto", "gloo", "nccl"),
        default="auto",
        help="auto: nccl where each rank has its own GPU",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="how long ranks wait for each other",
    )
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="keep a checkpoint there, and resume from it"
    )
    parser.add_argument(
        "--checkpoint-every", type=int, default=10, metavar="N", help="steps between checkpoints"
    )
    parser.add_argument(
        "--slow", type=float, default=0.0, metavar="SECONDS", help="pause before each step"
    )
    parser.add_argument(
        "--fail-at-step",
        type=int,
        metavar="N",
        help="exit with code 3 at this step, unless resumed from a checkpoint",
    )
    parser.add_argument(
        "--fail-rank", type=int, default=0, metavar="R", help="the rank that --fail-at-step means"
    )
    options = parser.parse_args(arguments)
    if not 1 <= options.batch_size <= SAMPLES:
        parser.error(f"--batch-size must be from 1 to {SAMPLES}")
    options.steps = (
        options.epochs * (SAMPLES // options.batch_size) if options.steps is None else options.steps
    )
    if min(options.steps, options.log_interval, options.checkpoint_every) < 1:
        parser.error("--steps, --epochs, --log-interval and --checkpoint-every must be at least 1")
    if not (0 < options.lr < math.inf and 0 <= options.slow < options.timeout < math.inf):
        parser.error("--lr must be above 0, and --slow from 0 to below --timeout")
    return options


def parse_variable(variable: str, default: str, low: int, high: int) -> int:
    text = os.environ.get(variable) or default
    if not text.isdecimal() or not low <= int(text) <= high:
        exit_now(2, f"{variable} is {text!r}: it must be a number from {low} to {high}")
    return int(text)


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def exit_now(code: int, message: str) -> NoReturn:
    """End at once: an orderly exit would wait for ranks that are gone."""
    print(message, file=sys.stderr)
    os._exit(code)


def end_on_sigterm() -> None:
    """Let SIGTERM end this process even inside a collective operation, and as process 1.

    No signal handler of Python runs inside a collective operation.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def wait() -> None:
        signal.sigwait({signal.SIGTERM})
        exit_now(143, "ended by SIGTERM")

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    options = parse_options(arguments)
    if os.environ.get("PET_RDZV_ENDPOINT") and not is_under_torchrun():
        become_torchrun(arguments, options)
    end_on_sigterm()
    place = detect_place(options)
    if place.world > options.batch_size:
        exit_now(
            2, f"--batch-size {options.batch_size} leaves nothing for some of {place.world} ranks"
        )
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    # The order of a sum differs with the number of ranks: in double precision nobody sees it.
    torch.set_default_dtype(torch.float64)
    try:
        group = join_group(place, options)
        where = f"{dist.get_backend(group)} on {place.device}, torch {torch.__version__}"
        print(f"pytorch_ddp: rank {place.rank} of {place.world}, {options.steps} steps, {where}")
        train(place, group, options)
    except GroupBroken as broken:
        exit_now(1, str(broken))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
