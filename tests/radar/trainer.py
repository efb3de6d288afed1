"""Trains nothing, as several ranks do it: steps, a collective, lines; and has a fault on request.

Pods get this file as the text of `python -c`, so it uses the standard library alone, and only RANK,
WORLD_SIZE, MASTER_ADDR and MASTER_PORT of the environment. Rank 0 is the hub: at each step the
others send it a number and wait for the sum. As with libraries that have no watchdog, nobody
notices that a peer is gone: whoever misses it waits for ever.

The fault's moment is written to --fault-file, not to the log, where it would be a line of the rank.
"""

import argparse
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time
from typing import NoReturn

MESSAGE = struct.Struct("!id")
CHUNK = 0.02
"""Seconds: computing is many short sleeps, so that a process which is stopped gets no further."""
PERIOD = 0.5
"""Seconds in which a throttled process runs and stands once."""
JOIN_SECONDS = 120.0


def wait_for_ever() -> NoReturn:
    while True:
        time.sleep(3600)


class Group:
    """The ranks that meet at each step."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        address = (os.environ.get("MASTER_ADDR", ""), int(os.environ.get("MASTER_PORT", "0")))
        self.peers = [] if world == 1 else self._gather(world, address)

    def _gather(self, world: int, address: tuple[str, int]) -> list[socket.socket]:
        if self.rank:
            return [self._join(address)]
        with socket.create_server(("127.0.0.1", address[1]), backlog=world) as server:
            server.settimeout(JOIN_SECONDS)
            peers = [server.accept()[0] for _ in range(world - 1)]
        for peer in peers:
            peer.settimeout(None)
        return peers

    def _join(self, address: tuple[str, int]) -> socket.socket:
        deadline = time.monotonic() + JOIN_SECONDS
        while True:
            try:
                return socket.create_connection(address)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def meet(self, step: int, number: float) -> float:
        """Wait for all ranks and return the sum of their numbers."""
        if self.peers and self.rank:
            self._send(self.peers[0], step, number)
            return self._receive(self.peers[0])
        total = number + sum(self._receive(peer) for peer in self.peers)
        for peer in self.peers:
            self._send(peer, step, total)
        return total

    def _send(self, peer: socket.socket, step: int, number: float) -> None:
        try:
            peer.sendall(MESSAGE.pack(step, number))
        except OSError:
            wait_for_ever()

    def _receive(self, peer: socket.socket) -> float:
        content = b""
        while len(content) < MESSAGE.size:
            try:
                part = peer.recv(MESSAGE.size - len(content))
            except OSError:
                part = b""
            if not part:
                wait_for_ever()
            content += part
        number: float = MESSAGE.unpack(content)[1]
        return number


class Loader:
    """A child process that loads a batch when it is asked for one.

    This process keeps the writing end of the answers open, as happens: the child's end is no end.
    """

    def __init__(self) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.close(self._requests)
            while os.read(requests, 1):
                os.write(answers, b".")
            os._exit(0)

    def load(self) -> None:
        os.write(self._requests, b".")
        os.read(self._answers, 1)


class Fault:
    """What goes wrong with this rank from a step on; nothing for any other rank."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self.options = options
        self.is_mine = bool(options.fault) and rank == options.fault_rank
        self.is_on = False
        self.loader = Loader() if self.is_mine and options.fault == "loader" else None
        self.kept: list[bytes] = []

    def begin_step(self, step: int) -> None:
        """Begin the fault when its step has come."""
        if self.is_mine and not self.is_on and step >= self.options.fault_step:
            self.is_on = True
            moment = json.dumps({"at": time.time(), "step": step})
            with open(f"{self.options.fault_file}.new", "w") as file:
                file.write(moment)
            os.replace(f"{self.options.fault_file}.new", self.options.fault_file)
            self._strike()
        if self.loader is not None:
            self.loader.load()

    def _strike(self) -> None:
        mode = self.options.fault_mode
        match self.options.fault:
            case "hang" if mode == "spin":
                while True:
                    pass
            case "hang":
                wait_for_ever()
            case "silent" if mode == "sleep":
                wait_for_ever()
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "throttled":
                throttle(self.options.factor)
            case "loader":
                assert self.loader is not None
                how = signal.SIGSTOP if mode == "stop" else signal.SIGKILL
                os.kill(self.loader.pid, how)

    def has(self, kind: str) -> bool:
        return self.is_on and self.options.fault == kind

    def leak(self, seconds: float) -> None:
        """Keep as much memory as it is to grow in so many seconds, every page of it touched."""
        if self.has("leak"):
            self.kept.append(b"x" * int(self.options.leak_rate * seconds))


def throttle(factor: float) -> None:
    """Let a child stop this process again and again, so that all takes `factor` times as long."""
    parent = os.getpid()
    if os.fork():
        return
    while os.getppid() == parent:
        time.sleep(PERIOD / factor)
        os.kill(parent, signal.SIGSTOP)
        time.sleep(PERIOD * (1 - 1 / factor))
        os.kill(parent, signal.SIGCONT)
    os._exit(0)


def compute(seconds: float) -> None:
    for _ in range(max(1, round(seconds / CHUNK))):
        time.sleep(CHUNK)


def flood(seconds: float) -> None:
    """Print thousands of lines a second beside the training."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sys.stdout.write("warning: a sample of the data was skipped, it is broken\n" * 300)
        sys.stdout.flush()
        time.sleep(0.1)


def evaluate(seconds: float, chance: random.Random) -> None:
    for number in range(1, 11):
        compute(seconds / 10)
        print(f"eval batch {number}/10 loss {chance.uniform(1, 2):.4f}", flush=True)


def train(options: argparse.Namespace, rank: int, world: int) -> None:
    chance = random.Random(f"{options.seed} {rank}")
    group = Group(rank, 1 if options.alone else world)
    fault = Fault(options, rank)
    compute(options.compile_seconds)
    saved_at: float = time.monotonic()
    for step in range(1, options.steps + 1):
        begin = time.monotonic()
        fault.begin_step(step)
        own = options.step_seconds * max(0.3, chance.gauss(1, options.jitter))
        if options.uneven and random.Random(f"{options.seed} {step}").randrange(world) == rank:
            own *= 2
        compute(own * (options.factor if fault.has("slow") else 1))
        loss = 2 / step**0.3 + chance.uniform(0, 0.05)
        if fault.has("nan"):
            loss = float("nan")
        speaks = not fault.has("silent") and (rank == 0 or not options.first_only)
        if speaks and not options.prints_after:
            print(f"step {step} of {options.steps} loss {loss:.4f}", flush=True)
        mean = group.meet(step, loss) / (1 if options.alone else world)
        if speaks and options.prints_after:
            print(f"step {step} of {options.steps} loss {mean:.4f}", flush=True)
        fault.leak(time.monotonic() - begin)
        saved_at = save_checkpoint(options, fault, rank, step, saved_at)
        do_extras(options, rank, step, chance)


def save_checkpoint(
    options: argparse.Namespace, fault: Fault, rank: int, step: int, saved_at: float
) -> float:
    """Save one if it is time for that; return when one was saved last."""
    period: float = options.checkpoint_seconds
    is_due = period and rank == 0 and time.monotonic() - saved_at >= period
    if not is_due or fault.has("checkpoints"):
        return saved_at
    compute(0.3)
    print(f"saved checkpoint ckpt-{step}", flush=True)
    return saved_at + period


def do_extras(options: argparse.Namespace, rank: int, step: int, chance: random.Random) -> None:
    """Do what healthy trainings do beside their steps."""
    if options.evaluate_every and step % options.evaluate_every == 0:
        evaluate(options.evaluate_seconds, chance)
    if rank == 0 and step == options.pause_step:
        print(f"saving checkpoint ckpt-{step}", flush=True)
        compute(options.pause_seconds)
        print(f"saved checkpoint ckpt-{step}", flush=True)
    if rank == options.flood_rank and step == options.flood_step:
        threading.Thread(target=flood, args=(options.flood_seconds,), daemon=True).start()


def run_below_shell(options: argparse.Namespace, rank: int, world: int) -> int:
    """Train in a child; when that is killed, stay, as a shell does that waits for more commands."""
    child = os.fork()
    if child == 0:
        train(options, rank, world)
        os._exit(0)

    def end(*_: object) -> NoReturn:
        os.kill(child, signal.SIGKILL)
        os._exit(143)

    signal.signal(signal.SIGTERM, end)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
        wait_for_ever()
    return os.waitstatus_to_exitcode(status)


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name, default in (
        ("seed", 0),
        ("steps", 100_000),
        ("fault-rank", 0),
        ("fault-step", 0),
        ("evaluate-every", 0),
        ("pause-step", 0),
        ("flood-rank", 0),
        ("flood-step", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, number in (
        ("step-seconds", 1.0),
        ("jitter", 0.05),
        ("factor", 2.0),
        ("leak-rate", 4e6),
        ("checkpoint-seconds", 0.0),
        ("compile-seconds", 0.0),
        ("evaluate-seconds", 60.0),
        ("pause-seconds", 0.0),
        ("flood-seconds", 0.0),
    ):
        parser.add_argument(f"--{name}", type=float, default=number)
    for name in ("fault", "fault-mode", "fault-file"):
        parser.add_argument(f"--{name}", default="")
    for name in ("prints-after", "alone", "uneven", "first-only"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args(arguments)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    options = parse_options(sys.argv[1:])
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if options.fault == "killed":
        return run_below_shell(options, rank, world)
    train(options, rank, world)
    return 0


if __name__ == "__main__":
    sys.exit(main())
