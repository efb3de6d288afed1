"""Elastic data-parallel training with the standard library alone: ranks may leave and join.

The model is logistic regression. The variables are those that an elastic PyTorchJob sets for
torchrun: PET_RDZV_ENDPOINT, PET_RDZV_CONF, PET_NNODES and PET_MAX_RESTARTS; or, of a job that is
not elastic, MASTER_ADDR, MASTER_PORT and RANK. The rank that the endpoint names, or the master,
runs the hub beside its training; whenever a rank is lost or comes, the hub forms the group anew,
and all go on from the last checkpoint. Each step passes over the same samples, divided
among however many ranks there are, so the loss of a step does not depend on their number. Started
by torchrun itself it trains over torch.distributed, and torchrun forms the group. Exit codes: 0
trained, 1 the group broke, 2 wrong arguments or variables, 143 ended by SIGTERM.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import random
import selectors
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Protocol

FEATURES = 8
SAMPLES = 512
"""Samples of a step, all ranks' together."""

JOIN_SECONDS = 600.0
"""How long a rank waits for its group: a pod may be evicted and wait for a GPU meanwhile."""

LAST_CALL_SECONDS = 2.0
"""How long the hub waits for further ranks once there are enough."""

SILENCE_SECONDS = 60.0
"""How long a rank may say nothing within a step, its slow-down apart."""

SEND_SECONDS = 5.0
MOST_RANKS = 1024
CHECKPOINT = "checkpoint.json"

Vector = list[float]

NO_STATE: tuple[int, Vector] = 0, [0.0] * FEATURES
"""The last step and the weights where training begins."""


class GroupError(Exception):
    """The group cannot go on; the text says why."""


class GroupFormsAnew(Exception):
    """A rank has left or come: training goes on from the checkpoint in another group."""


# Messages: a fixed header, then `count` numbers. Any other header is refused before anything is
# allocated for its numbers.

HEADER = struct.Struct("!4scIII")
MAGIC = b"ELA1"
HELLO, WELCOME, GRADIENT, MEAN, ANEW, DONE, END = b"H", b"W", b"G", b"M", b"A", b"D", b"E"
MOST_NUMBERS = FEATURES + 4


@dataclass(frozen=True)
class Message:
    """What a rank and the hub send each other; what the two numbers are depends on the kind."""

    kind: bytes
    first: int = 0
    second: int = 0
    numbers: tuple[float, ...] = ()

    def encode(self) -> bytes:
        head = HEADER.pack(MAGIC, self.kind, self.first, self.second, len(self.numbers))
        return head + struct.pack(f"!{len(self.numbers)}d", *self.numbers)


@dataclass(eq=False)
class Connection:
    """A socket with the bytes of messages that are not complete yet."""

    socket: socket.socket
    rest: bytes = b""
    is_member: bool = False

    def send(self, message: Message) -> None:
        self.socket.sendall(message.encode())

    def receive_some(self) -> list[Message]:
        """Receive what has come, and return the complete messages.

        Raises ConnectionError at the end, and for what is no message of this program.
        """
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionResetError("closed the connection")
        self.rest += received
        messages = []
        while len(self.rest) >= HEADER.size:
            magic, kind, first, second, count = HEADER.unpack_from(self.rest)
            if magic != MAGIC or count > MOST_NUMBERS:
                raise ConnectionAbortedError("speaks another protocol")
            end = HEADER.size + 8 * count
            if len(self.rest) < end:
                break
            numbers = struct.unpack(f"!{count}d", self.rest[HEADER.size : end])
            if not all(map(math.isfinite, numbers)):
                raise ConnectionAbortedError("sent a number that is not finite")
            messages.append(Message(kind, first, second, numbers))
            self.rest = self.rest[end:]
        return messages

    def close(self) -> None:
        self.socket.close()


# The hub


@dataclass
class Hub:
    """Forms the group, and averages the ranks' gradients; runs in a thread of one rank's process.

    Between `least` and `most` ranks make a group; it is formed anew `max_restarts` times at most.
    """

    server: socket.socket
    least: int
    most: int
    max_restarts: int
    checkpoint: Path | None
    terms: tuple[float, ...]
    ranks: list[Connection] = field(default_factory=list)
    """The members, in the order of their ranks."""
    generation: int = 0
    is_formed: bool = False
    gradients: dict[Connection, tuple[float, ...]] = field(default_factory=dict)
    done: set[Connection] = field(default_factory=set)
    last_join: float = 0.0
    lost: int = 0
    joined: int = 0
    """How often the group was given up because a rank was lost, and because one came."""

    def run(self) -> None:
        """Serve until all ranks are done, or the group cannot go on."""
        with selectors.DefaultSelector() as selector, self.server:
            selector.register(self.server, selectors.EVENT_READ)
            while not self._is_used_up and not self._is_done:
                for key, _ in selector.select(timeout=0.1):
                    if key.fileobj is self.server:
                        self._accept(selector)
                    else:
                        self._serve(key.data, selector)
                if not self.is_formed:
                    self._form()
        # The hub's own process ends with its rank: that one is told last.
        end = Message(END, self.lost, self.joined) if self._is_used_up else Message(END)
        for connection in reversed(self.ranks):
            with contextlib.suppress(OSError):
                connection.send(end)

    @property
    def _is_used_up(self) -> bool:
        return self.lost + self.joined > self.max_restarts

    @property
    def _is_done(self) -> bool:
        return self.is_formed and bool(self.ranks) and self.done.issuperset(self.ranks)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        peer, _ = self.server.accept()
        if len(selector.get_map()) > 2 * MOST_RANKS:
            peer.close()
            return
        peer.settimeout(SEND_SECONDS)
        selector.register(peer, selectors.EVENT_READ, Connection(peer))

    def _serve(self, connection: Connection, selector: selectors.BaseSelector) -> None:
        try:
            for message in connection.receive_some():
                self._take(connection, message)
        except OSError:
            selector.unregister(connection.socket)
            connection.close()
            if connection.is_member:
                self.ranks.remove(connection)
                if connection not in self.done:
                    self.lost += self.is_formed
                    self._begin_anew()

    def _take(self, connection: Connection, message: Message) -> None:
        if message.kind == HELLO and not connection.is_member:
            # Who comes when others are done would make them train the last steps again.
            if message.numbers != self.terms or len(self.ranks) >= self.most or self.done:
                raise ConnectionAbortedError("has other arguments, or there are enough ranks")
            connection.is_member = True
            # The rank beside the hub comes first: it writes the checkpoint that the hub reads.
            self.ranks.insert(0 if message.first else len(self.ranks), connection)
            self.last_join = time.monotonic()
            self.joined += self.is_formed
            self._begin_anew()
        elif message.first != self.generation or not self.is_formed:
            return  # of a group that has been given up
        elif message.kind == GRADIENT:
            self._add_gradient(connection, message)
        elif message.kind == DONE:
            self.done.add(connection)

    def _begin_anew(self) -> None:
        """Give the group up, and tell its ranks."""
        if self.is_formed:
            self.is_formed = False
            self._send_all(lambda rank: Message(ANEW))

    def _form(self) -> None:
        """Form a group of the ranks that are there, if there are enough and no more are coming."""
        is_late = time.monotonic() - self.last_join >= LAST_CALL_SECONDS
        if len(self.ranks) < self.least or not (is_late or len(self.ranks) == self.most):
            return
        self.generation += 1
        self.gradients, self.done, self.is_formed = {}, set(), True
        step, weights = load_checkpoint(self.checkpoint, self.terms)
        state = (float(self.generation), float(step), *weights)
        self._send_all(lambda rank: Message(WELCOME, rank, len(self.ranks), state))

    def _add_gradient(self, connection: Connection, message: Message) -> None:
        if len(message.numbers) != FEATURES + 1:
            raise ConnectionAbortedError("sent a gradient of another model")
        self.gradients[connection] = message.numbers
        if len(self.gradients) == len(self.ranks):
            columns = zip(*self.gradients.values(), strict=True)
            mean = tuple(math.fsum(numbers) / SAMPLES for numbers in columns)
            self.gradients = {}
            self._send_all(lambda rank: Message(MEAN, self.generation, message.second, mean))

    def _send_all(self, build: Callable[[int], Message]) -> None:
        for rank, connection in enumerate(self.ranks):
            # Who cannot be reached is lost: the next reading finds it.
            with contextlib.suppress(OSError):
                connection.send(build(rank))


# The group, as a rank sees it


class Group(Protocol):
    """A group that sums vectors over its ranks."""

    rank: int
    world: int
    step: int
    weights: Vector

    def average(self, step: int, sums: Vector) -> Vector:
        """Return the mean over all ranks' samples. Raises GroupFormsAnew and GroupError."""

    def finish(self) -> None:
        """Leave the group when all ranks are done."""


@dataclass
class HubGroup:
    """The group that the hub forms."""

    connection: Connection
    rank: int
    world: int
    generation: int
    step: int
    weights: Vector
    waiting: list[Message]

    def average(self, step: int, sums: Vector) -> Vector:
        self.connection.send(Message(GRADIENT, self.generation, step, tuple(sums)))
        return list(self._wait_for(MEAN).numbers)

    def finish(self) -> None:
        self.connection.send(Message(DONE, self.generation))
        self._wait_for(END)

    def _wait_for(self, kind: bytes) -> Message:
        while True:
            message = receive_next(self.connection, self.waiting, SILENCE_SECONDS)
            if message.kind == ANEW:
                raise GroupFormsAnew
            if message.kind == END and message.first + message.second:
                raise build_used_up_error(message)
            if message.kind == kind:
                return message


class TorchGroup:
    """The group that torchrun forms: it starts all ranks anew when one is lost or comes."""

    def __init__(self, checkpoint: Path | None, terms: tuple[float, ...]) -> None:
        try:
            import torch  # type: ignore[import-not-found, unused-ignore]
            from torch import distributed  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            exit_with(1, "torchrun has started this program, but torch cannot be imported")
        self._torch, self._distributed = torch, distributed
        distributed.init_process_group("gloo")
        self.rank, self.world = distributed.get_rank(), distributed.get_world_size()
        step, weights = load_checkpoint(checkpoint, terms) if self.rank == 0 else NO_STATE
        state = torch.tensor([float(step), *weights], dtype=torch.float64)
        distributed.broadcast(state, 0)
        self.step, self.weights = int(state[0]), [float(each) for each in state[1:]]

    def average(self, step: int, sums: Vector) -> Vector:
        total = self._torch.tensor(sums, dtype=self._torch.float64)
        try:
            self._distributed.all_reduce(total)
        except RuntimeError as error:
            raise GroupError(f"another rank was lost: {str(error).splitlines()[0]}") from error
        return [float(each) / SAMPLES for each in total]

    def finish(self) -> None:
        self._distributed.barrier()
        self._distributed.destroy_process_group()


def build_used_up_error(end: Message) -> GroupError:
    return GroupError(
        f"the group had to form anew {end.first + end.second} times, more often than "
        f"PET_MAX_RESTARTS allows (ranks lost: {end.first}, ranks that came: {end.second})"
    )


def receive_next(connection: Connection, waiting: list[Message], seconds: float) -> Message:
    """Return the next message of the hub, of those that wait or from the connection."""
    connection.socket.settimeout(seconds)
    while not waiting:
        waiting += connection.receive_some()
    return waiting.pop(0)


def join_group(
    address: tuple[str, int], terms: tuple[float, ...], *, is_beside_hub: bool
) -> HubGroup:
    """Join the group at this address: try until it is there and has been formed."""
    deadline = time.monotonic() + JOIN_SECONDS
    pause = 0.05
    while True:
        try:
            connection = Connection(socket.create_connection(address, timeout=SEND_SECONDS))
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.send(Message(HELLO, int(is_beside_hub), numbers=terms))
            return wait_for_group(connection, [], deadline)
        except OSError as error:
            if time.monotonic() + pause >= deadline:
                raise GroupError(
                    f"no group was formed at {address[0]}:{address[1]} within "
                    f"{JOIN_SECONDS:.0f} s: {error}"
                ) from error
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def wait_for_group(
    connection: Connection, waiting: list[Message], deadline: float | None = None
) -> HubGroup:
    """Wait until the hub has formed a group with this rank."""
    deadline = deadline or time.monotonic() + JOIN_SECONDS
    while True:
        message = receive_next(connection, waiting, max(deadline - time.monotonic(), 0.001))
        if message.kind == END:
            raise build_used_up_error(message)
        if message.kind == WELCOME:
            generation, step, *weights = message.numbers
            return HubGroup(
                connection,
                message.first,
                message.second,
                int(generation),
                int(step),
                weights,
                waiting,
            )


# The model and its checkpoint


def make_samples(seed: int) -> list[tuple[Vector, float]]:
    """Make the samples: points and on which side of a hidden plane they lie; one in twenty lies."""
    numbers = random.Random(f"elastic {seed}")
    plane = [numbers.gauss(0, 1) for _ in range(FEATURES)]
    samples = []
    for _ in range(SAMPLES):
        point = [numbers.gauss(0, 1) for _ in range(FEATURES)]
        side = sum(a * b for a, b in zip(point, plane, strict=True)) > 0
        samples.append((point, float(side != (numbers.random() < 0.05))))
    return samples


def sum_gradients(weights: Vector, samples: Sequence[tuple[Vector, float]]) -> Vector:
    """Return the sum of these samples' gradients of the logistic loss, and of the losses."""
    slope = [0.0] * FEATURES
    loss = 0.0
    for point, label in samples:
        score = sum(a * b for a, b in zip(point, weights, strict=True))
        guess = 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))
        loss -= math.log(guess if label else 1 - guess)
        for index, value in enumerate(point):
            slope[index] += (guess - label) * value
    return [*slope, loss]


def save_checkpoint(
    folder: Path | None, step: int, weights: Vector, terms: Sequence[float]
) -> None:
    """Put the checkpoint in place whole or not at all, also when the machine stops meanwhile."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{CHECKPOINT}.{os.getpid()}"
    with draft.open("w") as file:
        json.dump({"step": step, "weights": weights, "terms": list(terms)}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / CHECKPOINT)


def load_checkpoint(folder: Path | None, terms: Sequence[float]) -> tuple[int, Vector]:
    """Return the last step and the weights after it; 0 and zeros where there is no checkpoint."""
    if folder is None or not (folder / CHECKPOINT).exists():
        return NO_STATE
    try:
        state = json.loads((folder / CHECKPOINT).read_text())
        step, weights = int(state["step"]), [float(each) for each in state["weights"]]
        if state["terms"] == list(terms) and len(weights) == FEATURES:
            return step, weights
        print(f"the checkpoint in {folder} is of another training", file=sys.stderr)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"the checkpoint in {folder} cannot be read: {error}", file=sys.stderr)
    return NO_STATE


def train(group: Group, options: argparse.Namespace, terms: tuple[float, ...]) -> Vector:
    """Train from where the group begins to the last step. Raises GroupFormsAnew."""
    samples = make_samples(options.seed)[group.rank :: group.world]
    weights, step = list(group.weights), group.step
    try:
        while step < options.steps:
            time.sleep(options.slow)
            *slope, loss = group.average(step + 1, sum_gradients(weights, samples))
            changed = [w - options.lr * number for w, number in zip(weights, slope, strict=True)]
            # In one statement, for a signal saves what is done.
            weights, step = changed, step + 1
            print(f"step {step} loss {loss:.8f} rank {group.rank} world {group.world}")
            if group.rank == 0 and (step % options.checkpoint_every == 0 or step == options.steps):
                save_checkpoint(options.checkpoint, step, weights, terms)
    except SystemExit:
        if group.rank == 0:
            save_checkpoint(options.checkpoint, step, weights, terms)
        raise
    return weights


# The command


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Elastic data-parallel logistic regression, with the standard library alone."
    )
    parser.add_argument("--steps", type=int, default=100, help="steps to train")
    parser.add_argument("--lr", type=float, default=1.0, help="learning rate")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data")
    parser.add_argument(
        "--slow", type=float, default=0.2, metavar="SECONDS", help="pause before each step"
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep a checkpoint there, and resume from it: a volume that outlives the pods",
    )
    parser.add_argument("--checkpoint-every", type=int, default=10, metavar="N")
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.checkpoint_every < 1 or not 0 < options.lr < math.inf:
        parser.error("--steps and --checkpoint-every must be at least 1, and --lr above 0")
    if not 0 <= options.slow < SILENCE_SECONDS:
        parser.error(f"--slow must be from 0 to below {SILENCE_SECONDS:.0f} seconds")
    return options


def exit_with(code: int, message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


def parse_bounds(text: str) -> tuple[int, int]:
    """Return how few and how many ranks make a group: "2:4", or "3" for 3 and 3."""
    least, _, most = text.partition(":")
    most = most or least
    if not (least.isdecimal() and most.isdecimal() and 1 <= int(least) <= int(most) <= MOST_RANKS):
        exit_with(2, f"PET_NNODES is {text!r}: it must be MIN:MAX, from 1 to {MOST_RANKS}")
    return int(least), int(most)


def parse_endpoint(name: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        exit_with(2, f"{name} is {text!r}: it must be HOST:PORT")
    return host, int(port)


def find_endpoint() -> tuple[str, int]:
    """Return where the ranks meet: at the rendezvous of an elastic job, or at the job's master."""
    if text := os.environ.get("PET_RDZV_ENDPOINT"):
        return parse_endpoint("PET_RDZV_ENDPOINT", text)
    if address := os.environ.get("MASTER_ADDR"):
        port = os.environ.get("MASTER_PORT", "")
        return parse_endpoint("MASTER_ADDR:MASTER_PORT", f"{address}:{port}")
    least, _ = parse_bounds(os.environ.get("PET_NNODES", "1"))
    if least > 1:
        exit_with(
            2,
            f"{least} ranks have no address to meet at: neither PET_RDZV_ENDPOINT nor MASTER_ADDR "
            "is set; give the job a master, or a minimum and a maximum of pods",
        )
    return "127.0.0.1", 29400


def is_host(endpoint: tuple[str, int]) -> bool:
    """Return whether this rank runs the hub.

    PET_RDZV_CONF says it, or RANK where a master stands for the rendezvous, or the endpoint's name.
    """
    for pair in os.environ.get("PET_RDZV_CONF", "").split(","):
        key, _, value = pair.partition("=")
        if key.strip() == "is_host":
            return value.strip().lower() in ("1", "true")
    if not os.environ.get("PET_RDZV_ENDPOINT") and "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    return endpoint[0].split(".")[0] in (socket.gethostname(), "localhost", "127")


def start_hub(
    endpoint: tuple[str, int], options: argparse.Namespace, terms: tuple[float, ...]
) -> None:
    least, most = parse_bounds(os.environ.get("PET_NNODES", "1"))
    restarts = os.environ.get("PET_MAX_RESTARTS", "1000")
    if not restarts.isdecimal():
        exit_with(2, f"PET_MAX_RESTARTS is {restarts!r}: it must be a number")
    host = endpoint[0] if endpoint[0] in ("127.0.0.1", "localhost") else ""
    server = socket.create_server((host, endpoint[1]), backlog=most)
    hub = Hub(server, least, most, int(restarts), options.checkpoint, terms)
    threading.Thread(target=hub.run, name="hub", daemon=True).start()


def report_start(group: Group, *, has_trained: bool) -> None:
    print(f"elastic: rank {group.rank} of {group.world}")
    if group.step:
        print(f"resumed at step {group.step}")
    elif has_trained:
        print("no checkpoint: began anew at step 0")
    else:
        print("no checkpoint: begins at step 0")


def train_in_groups(options: argparse.Namespace, terms: tuple[float, ...]) -> None:
    """Train in one group after the other, until the last step is done in one."""
    endpoint = find_endpoint()
    is_beside_hub = is_host(endpoint)
    if is_beside_hub:
        start_hub(endpoint, options, terms)
    group = join_group(endpoint, terms, is_beside_hub=is_beside_hub)
    # A hub that came back counts its groups from 1: the ranks that outlived it know better.
    has_trained = group.generation > 1
    while True:
        try:
            report_start(group, has_trained=has_trained)
            has_trained = True
            weights = train(group, options, terms)
            print(f"digest {hash_weights(weights)} rank {group.rank}")
            group.finish()
            return
        except GroupFormsAnew:
            print(f"rank {group.rank}: a rank has left or come, the group forms anew")
            group = wait_for_group(group.connection, group.waiting)
        except OSError as error:
            # The hub is gone, with its pod: a new one comes up at the same address.
            print(f"rank {group.rank}: the hub was lost: {error}")
            group.connection.close()
            group = join_group(endpoint, terms, is_beside_hub=is_beside_hub)


def train_under_torchrun(options: argparse.Namespace, terms: tuple[float, ...]) -> None:
    """Train in the one group that torchrun starts this process for."""
    group = TorchGroup(options.checkpoint, terms)
    # Not counted there: a rank that came. The process cannot know of the group before it.
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    report_start(group, has_trained=restarts != "0")
    weights = train(group, options, terms)
    print(f"digest {hash_weights(weights)} rank {group.rank}")
    group.finish()


def end_on_sigterm(*_: object) -> NoReturn:
    # A second signal must not break off the checkpoint that the first one asks for.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def hash_weights(weights: Vector) -> str:
    """Return a digest of the weights to nine digits: sums differ in the last bits by the ranks."""
    return hashlib.sha256(",".join(f"{each:.9f}" for each in weights).encode()).hexdigest()[:16]


def main(arguments: Sequence[str]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    # The kernel delivers only handled signals to process 1 of a container.
    signal.signal(signal.SIGTERM, end_on_sigterm)
    options = parse_options(arguments)
    terms = (float(options.steps), options.lr, float(options.seed))
    try:
        if "TORCHELASTIC_RUN_ID" in os.environ:
            train_under_torchrun(options, terms)
        else:
            train_in_groups(options, terms)
    except GroupError as error:
        exit_with(1, f"this rank stops: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
