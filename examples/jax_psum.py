"""Data-parallel training with JAX over several processes, averaging gradients with `psum`.

Uses only COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID, as the training
operator sets them; without them this is one process alone. Exit codes: 0 trained, 1 JAX is missing
or the group broke, 2 wrong arguments or variables.
"""

import argparse
import hashlib
import os
import sys
import time
from typing import Any

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
except ModuleNotFoundError as missing:
    print(
        f"{missing.name} is missing: pip install jax, then run this with the Python that has it",
        file=sys.stderr,
    )
    sys.exit(1)

FEATURES, SAMPLES = 8, 256
RANKS = "ranks"


def parse_variable(variable: str, default: str) -> int:
    """Return a variable as a whole number; ends the program when it is none."""
    text = os.environ.get(variable, default)
    if not text.isdecimal():
        print(f"{variable} is {text!r}: it must be a whole number", file=sys.stderr)
        sys.exit(2)
    return int(text)


def join_group(rank: int, world: int, timeout: int) -> None:
    """Become one process of the group. Without GPUs the processes talk through gloo."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    address, port = (
        os.environ.get("COORDINATOR_ADDRESS", "127.0.0.1"),
        parse_variable("COORDINATOR_PORT", "0"),
    )
    jax.distributed.initialize(f"{address}:{port}", world, rank, initialization_timeout=timeout)


def train(options: argparse.Namespace, rank: int, world: int) -> None:
    mesh = Mesh(np.array(jax.devices()), (RANKS,))
    rank_sharding, replicated = NamedSharding(mesh, PartitionSpec(RANKS)), PartitionSpec()

    def spread_rows(local: Any) -> Any:
        """Return an array of which each process brings its own part."""
        return jax.make_array_from_process_local_data(rank_sharding, local)

    def over_all(function: Any, inputs: int) -> Any:
        """Return the function over all devices; its last two arguments are spread over them."""
        specs = (replicated,) * (inputs - 2) + (PartitionSpec(RANKS),) * min(inputs, 2)
        return jax.jit(
            jax.shard_map(
                function, mesh=mesh, in_specs=specs, out_specs=replicated, check_vma=False
            )
        )

    devices = jax.local_device_count()
    numbers = np.full(devices, (rank + 1.0) / devices, np.float32)
    summed = over_all(lambda part: jax.lax.psum(jnp.sum(part), RANKS), 1)(spread_rows(numbers))
    print(f"sum {float(summed):g} of {world} ranks rank {rank}", flush=True)

    random = np.random.default_rng([options.seed, rank])
    truth = np.random.default_rng(options.seed).normal(size=FEATURES)
    inputs = random.normal(size=(SAMPLES * devices, FEATURES)).astype(np.float32)
    targets = (inputs @ truth > 0).astype(np.float32)

    def loss_of(weights: Any, part: Any, wanted: Any) -> Any:
        logits = part @ weights
        return jnp.mean(jnp.logaddexp(0.0, logits) - wanted * logits)

    def on_one(weights: Any, part: Any, wanted: Any) -> Any:
        loss, gradient = jax.value_and_grad(loss_of)(weights, part, wanted)
        loss, gradient = (jax.lax.psum(value, RANKS) / mesh.size for value in (loss, gradient))
        return weights - options.lr * gradient, loss

    step, weights = over_all(on_one, 3), np.zeros(FEATURES, np.float32)
    part, wanted = spread_rows(inputs), spread_rows(targets)
    for number in range(1, options.steps + 1):
        time.sleep(options.slow)
        weights, loss = step(weights, part, wanted)
        print(f"step {number} loss {float(loss):.6f} rank {rank}", flush=True)
    digest = hashlib.sha256(np.asarray(weights).tobytes()).hexdigest()[:16]
    print(f"digest {digest} rank {rank}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--slow", type=float, default=0.0, metavar="SECONDS", help="pause before each step"
    )
    parser.add_argument(
        "--timeout", type=int, default=120, help="seconds that the processes wait for each other"
    )
    options = parser.parse_args()
    rank, world = parse_variable("PROCESS_ID", "0"), parse_variable("NUM_PROCESSES", "1")
    try:
        if world > 1:
            join_group(rank, world, options.timeout)
        train(options, rank, world)
    except (jax.errors.JaxRuntimeError, RuntimeError) as error:
        print(f"the group broke: {str(error).splitlines()[0]}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
