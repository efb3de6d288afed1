"""Compare transports of data delivery: elements and MB a second, and processor time for each GB.

One process serves, one asks for the next element while others are on their way, on loopback:
`python benchmarks/delivery_transport.py`. `muster_delivery` is the product's own path: ZeroMQ with
its mutual authentication and the encoding of a batch. gRPC and torch are measured where they are
installed (`pip install grpcio`, `make .venv-frameworks/.installed`), and skipped aloud elsewhere.
"""

import argparse
import hashlib
import importlib
import importlib.util
import multiprocessing
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

SIZES = {"1 KB": 1 << 10, "64 KB": 64 << 10, "1 MB": 1 << 20, "16 MB": 16 << 20}
LARGEST_RUN = 1 << 30
MOST_ELEMENTS = 20_000
WINDOW = 8
"""Elements that are asked for at once, as a rank prefetches them."""
MOST_SECONDS = 60.0
"""How long a transport may take for the elements of one size."""
KEY = hashlib.sha256(b"benchmark").digest()


@dataclass(frozen=True)
class Figures:
    """What moving elements of one size took."""

    elements: int
    megabytes: float
    cpu: float


def count_elements(size: int, scale: float) -> int:
    """Return how many elements of a size a run moves."""
    return max(2 * WINDOW, int(scale * min(MOST_ELEMENTS, LARGEST_RUN // size)))


def measure_cpu() -> float:
    """Return this process's processor seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def receive_exactly(link: socket.socket, view: memoryview) -> None:
    """Fill a buffer from a socket."""
    while len(view):
        count = link.recv_into(view)
        assert count, "the other end has gone"
        view = view[count:]


def serve_socket(control: Connection, size: int, count: int) -> None:
    """Copy the same buffer into a socket, as fast as it takes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        control.send(server.getsockname()[1])
        link, _ = server.accept()
        element = memoryview(bytes(size))
        with link:
            for _ in range(count):
                link.sendall(element)
            control.recv()


def fetch_socket(port: int, size: int, count: int) -> Iterator[None]:
    """Take elements out of a socket, each into memory of its own, as a rank needs them."""
    import numpy as np

    with socket.create_connection(("127.0.0.1", port)) as link:
        for _ in range(count):
            receive_exactly(link, memoryview(np.empty(size, dtype=np.uint8)))
            yield


def fetch_overwriting(port: int, size: int, count: int) -> Iterator[None]:
    """Take elements out of a socket, each over the one before: the most that there can be."""
    element = memoryview(bytearray(size))
    with socket.create_connection(("127.0.0.1", port)) as link:
        for _ in range(count):
            receive_exactly(link, element)
            yield


def serve_delivery(control: Connection, size: int, count: int) -> None:
    """Serve as a data worker does."""
    import numpy as np

    from muster_delivery.authentication import Key
    from muster_delivery.server import Server
    from muster_delivery.wire import encode

    element = np.zeros(size, dtype=np.uint8)
    server = Server(("127.0.0.1", 0), Key(KEY), lambda _, reply: reply.send({}, encode(element)))
    server.start()
    control.send(server.port)
    control.recv()
    server.close()


def fetch_delivery(port: int, size: int, count: int) -> Iterator[None]:
    """Fetch as a rank does."""
    from muster_delivery.authentication import Key
    from muster_delivery.client import Answer, ClientGroup
    from muster_delivery.wire import decode

    group = ClientGroup([("127.0.0.1", port)], Key(KEY))
    group.start()
    group.receive(30)
    for _ in range(WINDOW):
        group.send(0, {"get": 1})
    for _ in range(count):
        answer = group.receive(30)
        assert isinstance(answer, Answer)
        assert len(decode(answer.frames)) == size
        group.send(0, {"get": 1})
        yield
    group.close()


def serve_zeromq(control: Connection, size: int, count: int) -> None:
    """Serve over ZeroMQ alone: nothing is authenticated or encoded."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.SNDHWM, 0)
        control.send(router.bind_to_random_port("tcp://127.0.0.1"))
        element = bytes(size)
        for _ in range(count + WINDOW):
            router.send_multipart([router.recv_multipart()[0], element], copy=False)
        control.recv()


def fetch_zeromq(port: int, size: int, count: int) -> Iterator[None]:
    """Fetch over ZeroMQ alone."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.connect(f"tcp://127.0.0.1:{port}")
        for _ in range(WINDOW):
            dealer.send(b"")
        for _ in range(count):
            assert len(dealer.recv(copy=False)) == size
            dealer.send(b"")
            yield
        # What was asked for beyond the measured elements.
        for _ in range(WINDOW):
            dealer.recv(copy=False)


def serve_grpc(control: Connection, size: int, count: int) -> None:
    """Serve over gRPC, with messages that are plain bytes."""
    import grpc

    element = bytes(size)

    class Elements(grpc.GenericRpcHandler):  # type: ignore[misc, unused-ignore]
        """Answers every method with the element."""

        def service(self, handler_call_details: object) -> Any:
            return grpc.unary_unary_rpc_method_handler(lambda request, context: element)

    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(WINDOW), (Elements(),), options=options)
    control.send(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    control.recv()
    server.stop(0)


def fetch_grpc(port: int, size: int, count: int) -> Iterator[None]:
    """Fetch over gRPC."""
    import grpc

    with grpc.insecure_channel(
        f"127.0.0.1:{port}", [("grpc.max_receive_message_length", -1)]
    ) as channel:
        call = channel.unary_unary("/delivery/get")
        waiting = [call.future(b"") for _ in range(WINDOW)]
        for _ in range(count):
            assert len(waiting.pop(0).result()) == size
            waiting.append(call.future(b""))
            yield
        for each in waiting:
            each.result()


def start_torch(name: str, rank: int, port: int) -> Any:
    """Join torch's RPC over TensorPipe, and return the module."""
    from torch.distributed import rpc

    options = rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://127.0.0.1:{port}", _transports=["uv"]
    )
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=options)
    return rpc


def get_tensor(size: int) -> Any:
    """Return an element of torch's RPC."""
    import torch

    return torch.zeros(size, dtype=torch.uint8)


def serve_torch(control: Connection, size: int, count: int) -> None:
    """Serve over torch's RPC."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    control.send(port)
    start_torch("worker", 0, port).shutdown()


def fetch_torch(port: int, size: int, count: int) -> Iterator[None]:
    """Fetch over torch's RPC."""
    rpc = start_torch("rank", 1, port)
    waiting = [rpc.rpc_async("worker", get_tensor, (size,)) for _ in range(WINDOW)]
    for _ in range(count):
        assert len(waiting.pop(0).wait()) == size
        waiting.append(rpc.rpc_async("worker", get_tensor, (size,)))
        yield
    for each in waiting:
        each.wait()
    rpc.shutdown()


Serve = Callable[[Connection, int, int], None]
Fetch = Callable[[int, int, int], Iterator[None]]
TRANSPORTS: dict[str, tuple[str, Serve, Fetch]] = {
    "plain socket copy": ("socket", serve_socket, fetch_socket),
    "overwriting socket": ("socket", serve_socket, fetch_overwriting),
    "muster_delivery": ("zmq", serve_delivery, fetch_delivery),
    "ZeroMQ alone": ("zmq", serve_zeromq, fetch_zeromq),
    "gRPC": ("grpc", serve_grpc, fetch_grpc),
    "torch RPC": ("torch", serve_torch, fetch_torch),
}
"""Each with the package that it needs."""


def run_server(package: str, serve: Serve, control: Connection, size: int, count: int) -> None:
    """Serve in a process of its own, and say what it took without the imports."""
    for name in (package, *(["muster_delivery.client", "numpy"] * (package == "zmq"))):
        importlib.import_module(name)
    before = measure_cpu()
    serve(control, size, count)
    control.send(measure_cpu() - before)


def measure_transport(package: str, serve: Serve, fetch: Fetch, size: int, count: int) -> Figures:
    """Move elements from one process to another."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run_server, args=(package, serve, theirs, size, count))
    process.start()
    elements = fetch(ours.recv(), size, count)
    # The first ones pay for connections and imports.
    for _ in range(WINDOW):
        next(elements)
    began, cpu = time.perf_counter(), measure_cpu()
    for _ in range(count - WINDOW):
        next(elements)
    seconds, cpu = time.perf_counter() - began, measure_cpu() - cpu
    for _ in elements:
        pass
    ours.send(None)
    cpu += ours.recv()
    process.join()
    moved = (count - WINDOW) * size
    return Figures(round((count - WINDOW) / seconds), moved / seconds / 1e6, cpu / (moved / 1e9))


def report_transport(results: Connection, name: str, size: int, count: int) -> None:
    """Send the figures of a transport, in a process group that can be ended as a whole."""
    os.setsid()
    results.send(measure_transport(*TRANSPORTS[name], size, count))


def measure_in_time(name: str, size: int, count: int) -> Figures | None:
    """Return the figures of a transport; None for one that stands still."""
    context = multiprocessing.get_context("spawn")
    results, theirs = context.Pipe(duplex=False)
    process = context.Process(target=report_transport, args=(theirs, name, size, count))
    process.start()
    figures: Figures | None = results.recv() if results.poll(MOST_SECONDS) else None
    if figures is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return figures


def measure_all(size: int, count: int, rounds: int) -> dict[str, Figures | None]:
    """Return the best round of each transport; they take turns, so that load hurts all alike."""
    best: dict[str, Figures | None] = {}
    for _ in range(rounds):
        for name, (package, *_others) in TRANSPORTS.items():
            if importlib.util.find_spec(package) is None or best.get(name, True) is None:
                continue
            figures, before = measure_in_time(name, size, count), best.get(name)
            if figures is None or before is None or figures.megabytes > before.megabytes:
                best[name] = figures
    return best


def main() -> int:
    """Print one table; 1 where the product moves less than half of what a socket does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the elements")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {WINDOW} elements on their way")
    print(
        f"{'':6} {'transport':18} {'elements/s':>10} {'MB/s':>8} {'of socket':>9} {'CPU s/GB':>9}"
    )
    is_enough = True
    for name, (package, *_) in TRANSPORTS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{name} is skipped: {package} is not installed")
    for label, size in SIZES.items():
        best = measure_all(size, count_elements(size, options.scale), options.rounds)
        socket_copy = best["plain socket copy"]
        assert socket_copy is not None, "a plain socket stands still"
        plain = socket_copy.megabytes
        for name, figures in best.items():
            if figures is None:
                print(f"{label:6} {name:18} stood still for {MOST_SECONDS:.0f} s", flush=True)
                continue
            share = figures.megabytes / plain
            if size == 1 << 20 and name == "muster_delivery":
                is_enough = share >= 0.5
            print(
                f"{label:6} {name:18} {figures.elements:10,} {figures.megabytes:8,.0f} {share:9.0%}"
                f" {figures.cpu:9.2f}",
                flush=True,
            )
    return 0 if is_enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
