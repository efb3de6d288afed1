"""An MNIST-like training with PyTorch whose images are slow to load: the twin of `delivery.py`.

The images are synthetic and follow from their number and the seed; nothing is downloaded. The
loader is an ordinary DataLoader with a DistributedSampler. Two lines give its work to data workers:
`loader = delivery.register(loader)` and `delivery.unregister(loader)`. Runs as one process per pod
from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, under torchrun, or alone. Exit codes: 0 trained,
1 torch or muster-delivery is missing, 2 wrong arguments, 143 ended by SIGTERM.
"""

import argparse
import hashlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

try:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, Dataset, DistributedSampler

    import muster_delivery as delivery
except ModuleNotFoundError as missing:
    packages = "muster-delivery torch==2.13.0 numpy"
    print(f"{missing.name} is missing: pip install {packages}", file=sys.stderr)
    sys.exit(1)

CLASSES, SIDE = 10, 28


class SlowImages(Dataset):  # type: ignore[type-arg, misc, unused-ignore]
    """Grey images of ten kinds, each of which takes a while to load."""

    def __init__(self, count: int, seconds: float, seed: int) -> None:
        self.count, self.seconds, self.seed = count, seconds, seed
        chance = torch.Generator().manual_seed(seed)
        self.prototypes = torch.rand(CLASSES, 1, SIDE, SIDE, generator=chance)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Any, int, int]:
        time.sleep(self.seconds)
        chance = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        label = number % CLASSES
        noise = torch.randn(1, SIDE, SIDE, generator=chance)
        return self.prototypes[label] + 0.3 * noise, label, number


def make_loader(options: argparse.Namespace, rank: int, world: int) -> Any:
    images = SlowImages(options.images, options.load_seconds, options.seed)
    sampler = DistributedSampler(images, world, rank, seed=options.seed)
    return DataLoader(images, batch_size=options.batch_size, sampler=sampler)


def make_model(seed: int) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5, stride=3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 8 * 8, CLASSES),
    )


# Training


def train(loader: Any, options: argparse.Namespace, rank: int, world: int) -> None:
    """Train from the checkpoint, or from the beginning, to the last epoch."""
    device = torch.device("cuda" if torch.cuda.is_available() and not options.no_cuda else "cpu")
    model = make_model(options.seed).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    epoch, step = load_checkpoint(model, optimizer, loader, options, rank)
    parallel = DistributedDataParallel(model) if world > 1 else model
    waited = 0.0
    started = time.monotonic()
    while epoch < options.epochs:
        if isinstance(getattr(loader, "sampler", None), DistributedSampler):
            loader.sampler.set_epoch(epoch)
        requested_at = time.monotonic()
        for images, labels, numbers in loader:
            waited_now = time.monotonic() - requested_at
            waited += waited_now
            time.sleep(options.step_seconds)
            optimizer.zero_grad()
            scores = parallel(images.to(device))
            loss = torch.nn.functional.cross_entropy(scores, labels.to(device))
            loss.backward()
            optimizer.step()
            step += 1
            text = f"step {step} loss {loss.item():.6f} waited {waited_now:.3f}"
            if options.print_elements:
                text += f" elements {' '.join(str(int(each)) for each in numbers)}"
            print(text, flush=True)
            if step % options.checkpoint_every == 0:
                save_checkpoint((epoch, step), model, optimizer, loader, options, rank)
            requested_at = time.monotonic()
        epoch += 1
        save_checkpoint((epoch, step), model, optimizer, loader, options, rank)
    total = time.monotonic() - started
    print(f"waited {waited:.1f} s of {total:.1f} s for data ({100 * waited / total:.0f} %)")
    print(f"digest {hash_model(model)} rank {rank}", flush=True)


def hash_model(model: Any) -> str:
    content = hashlib.sha256()
    for tensor in model.state_dict().values():
        content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return content.hexdigest()[:16]


# Checkpoints


def save_checkpoint(
    reached: tuple[int, int],
    model: Any,
    optimizer: Any,
    loader: Any,
    options: argparse.Namespace,
    rank: int,
) -> None:
    """Put the checkpoint of this rank in place, with how far its loader has come."""
    if options.checkpoint is None:
        return
    options.checkpoint.mkdir(parents=True, exist_ok=True)
    draft = options.checkpoint / f"delivery-{rank}.{os.getpid()}"
    state = {
        "reached": reached,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "loader": loader.state_dict() if hasattr(loader, "state_dict") else None,
    }
    with draft.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(options.checkpoint / f"delivery-{rank}.pt")


def load_checkpoint(
    model: Any, optimizer: Any, loader: Any, options: argparse.Namespace, rank: int
) -> tuple[int, int]:
    """Load the checkpoint of this rank, and return its epoch and step; 0 and 0 without one."""
    path = options.checkpoint and options.checkpoint / f"delivery-{rank}.pt"
    if not path or not path.exists():
        print("no checkpoint: begins at step 0", flush=True)
        return 0, 0
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if state["loader"] is not None and hasattr(loader, "load_state_dict"):
        loader.load_state_dict(state["loader"])
    epoch, step = state["reached"]
    print(f"resumed at step {step}", flush=True)
    return epoch, step


# The command


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="A small classifier of synthetic images that are slow to load, with PyTorch."
    )
    parser.add_argument("--epochs", type=int, default=2, help="passes over the images")
    parser.add_argument("--images", type=int, default=2048, help="images of the dataset")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N")
    parser.add_argument(
        "--load-seconds", type=float, default=0.01, metavar="S", help="what an image takes to load"
    )
    parser.add_argument(
        "--step-seconds", type=float, default=0.05, metavar="S", help="what a step takes beside"
    )
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=1, help="seed of images, order and weights")
    parser.add_argument("--no-cuda", action="store_true", help="train on the CPU")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep a checkpoint there, and resume from it: a volume that outlives the pods",
    )
    parser.add_argument("--checkpoint-every", type=int, default=10, metavar="N")
    parser.add_argument(
        "--print-elements", action="store_true", help="print the numbers of a step's images"
    )
    options = parser.parse_args(arguments)
    if min(options.epochs, options.images, options.batch_size, options.checkpoint_every) < 1:
        parser.error("--epochs, --images, --batch-size and --checkpoint-every must be at least 1")
    if not (0 <= options.load_seconds <= 3600 and 0 <= options.step_seconds <= 3600):
        parser.error("--load-seconds and --step-seconds must be from 0 to 3600")
    return options


def end_on_sigterm(*_: object) -> NoReturn:
    sys.exit(143)


def main(arguments: Sequence[str]) -> None:
    # The kernel delivers only handled signals to process 1 of a container.
    signal.signal(signal.SIGTERM, end_on_sigterm)
    options = parse_options(arguments)
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    # Before the group is formed: in a data worker it does not return, and there is no group.
    loader = delivery.register(make_loader(options, rank, world))
    if world > 1:
        if is_on_loopback():
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo")
    train(loader, options, rank, world)
    delivery.unregister(loader)
    if world > 1:
        dist.destroy_process_group()


def is_on_loopback() -> bool:
    """Return whether all ranks are on this machine: gloo would look its own name up otherwise."""
    return os.environ.get("MASTER_ADDR", "").startswith(("127.", "localhost"))


if __name__ == "__main__":
    main(sys.argv[1:])
