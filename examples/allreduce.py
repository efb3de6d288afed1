"""Data-parallel training with the standard library alone: ranks average their gradients over TCP.

The model is logistic regression. Uses only MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, as any
launcher sets them; without them it trains alone. Rank 0 is the hub: each step the others send it
their gradient and get back the mean. So all ranks have the same weights at every step, and print a
digest of them at the end. Exit codes: 0 trained, 1 the group broke, 2 wrong arguments or variables,
3 failed as asked to.
"""

import argparse
import contextlib
import hashlib
import math
import os
import random
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import NoReturn

FEATURES = 8
SAMPLES = 256
"""Samples of each rank: every rank has data of its own, the same on every run."""

JOIN_SECONDS = 60.0
"""How long the ranks wait for each other at the start."""

STEP_SECONDS = 60.0
"""How long a rank may stay silent within a step, its slow-down apart."""

HELLO_SECONDS = 5.0
MAX_WORLD = 1024

Vector = list[float]


class GroupError(Exception):
    """The group cannot go on; the text names the rank that is to blame."""

    def __init__(self, rank: int, message: str) -> None:
        super().__init__(f"rank {rank} {message}")
        self.rank = rank


# Messages: a fixed header, then `count` numbers. A header other than the expected one is refused
# before anything is allocated for its numbers.

HEADER = struct.Struct("!4scIII")
MAGIC = b"ALR1"
HELLO, WELCOME, GRADIENT, MEAN, LOST = b"H", b"W", b"G", b"M", b"L"


class ProtocolError(Exception):
    """The other side is not a rank of this group, or not at this step."""


def send_message(peer: socket.socket, kind: bytes, rank: int, step: int, numbers: Vector) -> None:
    peer.sendall(
        HEADER.pack(MAGIC, kind, rank, step, len(numbers))
        + struct.pack(f"!{len(numbers)}d", *numbers)
    )


def receive_message(peer: socket.socket, kind: bytes, step: int, count: int) -> tuple[int, Vector]:
    """Return the rank and the numbers of the next message.

    Raises ProtocolError, GroupError when the hub lost a rank, OSError.
    """
    magic, sent_kind, rank, sent_step, length = HEADER.unpack(receive_bytes(peer, HEADER.size))
    if magic != MAGIC:
        raise ProtocolError("speaks another protocol")
    if sent_kind == LOST and kind != HELLO:
        raise GroupError(rank, f"was lost at step {sent_step}")
    if (sent_kind, sent_step, length) != (kind, step, count):
        raise ProtocolError(
            f"sent {sent_kind!r} of step {sent_step} with {length} numbers instead of {kind!r} of "
            f"step {step} with {count}"
        )
    numbers = list(struct.unpack(f"!{count}d", receive_bytes(peer, 8 * count)))
    if not all(map(math.isfinite, numbers)):
        raise ProtocolError("sent a number that is not finite")
    return rank, numbers


def receive_bytes(peer: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = peer.recv(size - len(content))
        if not part:
            raise ConnectionResetError("closed the connection")
        content += part
    return content


# The group


@dataclass
class Group:
    """One rank's connections: the hub has one to every other rank, the others one to the hub."""

    rank: int
    world: int
    peers: dict[int, socket.socket] = field(default_factory=dict)

    def average(self, step: int, values: Vector) -> Vector:
        """Return the mean of the ranks' values for this step, the same bits on each. Raises
        GroupError.
        """
        if self.rank != 0:
            self.send_to(0, GRADIENT, step, values)
            return self.receive_from(0, MEAN, step, len(values))
        try:
            total = values
            for rank in sorted(self.peers):
                total = [
                    a + b
                    for a, b in zip(
                        total, self.receive_from(rank, GRADIENT, step, len(values)), strict=True
                    )
                ]
            mean = [number / self.world for number in total]
            for rank in sorted(self.peers):
                self.send_to(rank, MEAN, step, mean)
        except GroupError as error:
            self._announce_loss(error.rank, step)
            raise
        return mean

    def send_to(self, rank: int, kind: bytes, step: int, numbers: Vector) -> None:
        try:
            send_message(self.peers[rank], kind, self.rank, step, numbers)
        except OSError as error:
            raise self._describe_loss(rank, step, error) from error

    def receive_from(self, rank: int, kind: bytes, step: int, count: int) -> Vector:
        try:
            return receive_message(self.peers[rank], kind, step, count)[1]
        except (OSError, ProtocolError) as error:
            raise self._describe_loss(rank, step, error) from error

    def _describe_loss(self, rank: int, step: int, error: Exception) -> GroupError:
        """Return the error for a broken connection.

        A last message of the hub about another lost rank may still be in it.
        """
        if isinstance(error, ConnectionError) and self.rank != 0:
            try:
                receive_message(self.peers[rank], LOST, step, 0)
            except GroupError as announced:
                return announced
            except (OSError, ProtocolError):
                pass
        reason = (
            f"was silent for {STEP_SECONDS:.0f} s"
            if isinstance(error, TimeoutError)
            else f"was lost ({error})"
        )
        return GroupError(rank, f"{reason} at step {step}")

    def _announce_loss(self, lost_rank: int, step: int) -> None:
        """Tell the other ranks which rank was lost, as far as they still listen."""
        for rank, peer in self.peers.items():
            if rank != lost_rank:
                try:
                    send_message(peer, LOST, lost_rank, step, [])
                except OSError:
                    continue

    def close(self) -> None:
        """Leave the group; the hub waits until the others have left.

        Its end is the end of the job, and operators stop the ranks that still run then.
        """
        for peer in self.peers.values():
            if self.rank == 0:
                with contextlib.suppress(OSError):
                    peer.recv(1)
            peer.close()


def form_group(rank: int, world: int, address: tuple[str, int], terms: Vector) -> Group:
    """Bring the ranks together. `terms` is what all must agree on. Raises GroupError."""
    if world == 1:
        return Group(0, 1)
    deadline = time.monotonic() + JOIN_SECONDS
    return (
        gather_ranks(world, address, terms, deadline)
        if rank == 0
        else join_hub(rank, world, address, terms, deadline)
    )


def gather_ranks(world: int, address: tuple[str, int], terms: Vector, deadline: float) -> Group:
    """Wait for all ranks as the hub, then welcome them all at once.

    Strangers are sent away; a rank that comes again replaces itself.
    """
    group = Group(0, world)
    host = address[0] if address[0] in ("127.0.0.1", "localhost") else ""
    with socket.create_server((host, address[1]), backlog=world) as server:
        while len(group.peers) < world - 1:
            server.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                peer, origin = server.accept()
            except TimeoutError:
                missing = min(set(range(1, world)) - set(group.peers))
                raise GroupError(missing, f"did not come within {JOIN_SECONDS:.0f} s") from None
            peer.settimeout(HELLO_SECONDS)
            try:
                rank, rank_terms = receive_message(peer, HELLO, world, len(terms))
                if not 0 < rank < world:
                    raise ProtocolError(f"says it is rank {rank} of {world}")
            except (OSError, ProtocolError) as error:
                print(f"a connection from {origin[0]} was refused: {error}", file=sys.stderr)
                peer.close()
                continue
            if rank_terms != terms:
                raise GroupError(
                    rank, f"was started with other arguments: {rank_terms} instead of {terms}"
                )
            if rank in group.peers:
                group.peers[rank].close()
            group.peers[rank] = configure_socket(peer)
    for rank in group.peers:
        group.send_to(rank, WELCOME, 0, [])
    return group


def join_hub(
    rank: int, world: int, address: tuple[str, int], terms: Vector, deadline: float
) -> Group:
    """Join the hub: try until it is there and all ranks have come."""
    pause = 0.05
    while True:
        seconds_left = deadline - time.monotonic()
        try:
            hub = socket.create_connection(address, timeout=max(seconds_left, 0.001))
            send_message(hub, HELLO, rank, world, terms)
            receive_message(hub, WELCOME, 0, 0)
            return Group(rank, world, {0: configure_socket(hub)})
        except (OSError, ProtocolError) as error:
            if seconds_left <= pause:
                raise GroupError(
                    0,
                    (
                        f"could not be joined at {address[0]}:{address[1]} within "
                        f"{JOIN_SECONDS:.0f} s: {error}"
                    ),
                ) from error
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def configure_socket(peer: socket.socket) -> socket.socket:
    peer.settimeout(STEP_SECONDS)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


# The model


def make_data(rank: int, seed: int) -> list[tuple[Vector, float]]:
    """Make this rank's samples: points and on which side of one hidden plane they lie.

    One label in twenty is wrong.
    """
    plane_random = random.Random(f"plane {seed}")
    plane = [plane_random.gauss(0, 1) for _ in range(FEATURES)]
    rank_random = random.Random(f"data {seed} {rank}")
    samples = []
    for _ in range(SAMPLES):
        point = [rank_random.gauss(0, 1) for _ in range(FEATURES)]
        side = sum(a * b for a, b in zip(point, plane, strict=True)) > 0
        samples.append((point, float(side != (rank_random.random() < 0.05))))
    return samples


def compute_gradient(weights: Vector, samples: list[tuple[Vector, float]]) -> Vector:
    """Return the gradient of the mean logistic loss, and that loss as the last number."""
    slope = [0.0] * FEATURES
    loss = 0.0
    for point, label in samples:
        score = sum(a * b for a, b in zip(point, weights, strict=True))
        guess = 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))
        loss -= math.log(guess if label else 1 - guess)
        for index, value in enumerate(point):
            slope[index] += (guess - label) * value
    return [number / len(samples) for number in (*slope, loss)]


def hash_weights(weights: Vector) -> str:
    return hashlib.sha256(struct.pack(f"!{len(weights)}d", *weights)).hexdigest()[:16]


def train(group: Group, options: argparse.Namespace) -> Vector:
    samples = make_data(group.rank, options.seed)
    weights = [0.0] * FEATURES
    for step in range(1, options.steps + 1):
        if step == options.fail_at_step and group.rank == options.fail_rank:
            print(
                f"rank {group.rank} fails at step {step}, as --fail-at-step asks", file=sys.stderr
            )
            sys.exit(3)
        time.sleep(options.slow)
        *slope, loss = group.average(step, compute_gradient(weights, samples))
        weights = [
            weight - options.lr * number for weight, number in zip(weights, slope, strict=True)
        ]
        print(f"step {step} loss {loss:.4f} rank {group.rank}")
    return weights


# The command


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Data-parallel logistic regression over TCP, with the standard library alone."
    )
    parser.add_argument(
        "--steps",
        "--epochs",
        type=int,
        default=50,
        help="steps to train; each passes over all of the data",
    )
    parser.add_argument("--lr", type=float, default=1.0, help="learning rate")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data")
    parser.add_argument(
        "--slow", type=float, default=0.0, metavar="SECONDS", help="pause before each step"
    )
    parser.add_argument(
        "--fail-at-step", type=int, metavar="N", help="exit with code 3 at this step"
    )
    parser.add_argument(
        "--fail-rank", type=int, default=0, metavar="R", help="the rank that --fail-at-step means"
    )
    options = parser.parse_args(arguments)
    if options.steps < 1 or not 0 < options.lr < math.inf or not 0 <= options.slow < STEP_SECONDS:
        parser.error(
            "--steps must be at least 1, --lr above 0, and --slow from 0 to below "
            f"{STEP_SECONDS:.0f} seconds"
        )
    return options


def parse_variable(variable: str, default: str, low: int, high: int) -> int:
    text = os.environ.get(variable) or default
    if not text.isdecimal() or not low <= int(text) <= high:
        exit_with(2, f"{variable} is {text!r}: it must be a number from {low} to {high}")
    return int(text)


def exit_with(code: int, message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


def main(arguments: list[str]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    # The kernel delivers only handled signals to process 1 of a container.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_options(arguments)
    world = parse_variable("WORLD_SIZE", "1", 1, MAX_WORLD)
    rank = parse_variable("RANK", "0", 0, world - 1)
    port = parse_variable("MASTER_PORT", "29500", 1, 65535)
    if world > 1 and not os.environ.get("MASTER_ADDR"):
        exit_with(2, f"MASTER_ADDR is missing: {world} ranks need to know where rank 0 listens")
    print(f"allreduce: rank {rank} of {world}, {options.steps} steps")
    terms = [float(options.steps), options.lr, float(options.seed)]
    try:
        group = form_group(rank, world, (os.environ.get("MASTER_ADDR", ""), port), terms)
        weights = train(group, options)
    except GroupError as error:
        exit_with(1, f"rank {rank} stops: {error}")
    print(f"digest {hash_weights(weights)} rank {rank}")
    group.close()


if __name__ == "__main__":
    main(sys.argv[1:])
