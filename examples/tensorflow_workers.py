"""Data-parallel training with TensorFlow: all workers average their gradients at each step.

The strategy is MultiWorkerMirroredStrategy. Uses only TF_CONFIG, as the training operator sets it;
without it this is one worker alone. A chief trains as the first worker; a parameter server, which
this way of training has no use for, waits until it is ended. Every rank has data of its own. Exit
codes: 0 trained, 1 TensorFlow is missing or the group broke, 2 wrong arguments or variables.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

try:
    import numpy as np
    import tensorflow as tf
except ModuleNotFoundError as missing:
    print(
        (
            f"{missing.name} is missing: pip install tensorflow-cpu, then run this with the "
            "Python that has it"
        ),
        file=sys.stderr,
    )
    sys.exit(1)

FEATURES, SAMPLES = 8, 256
TRAINERS = ("chief", "master", "worker")
"""The roles that train, in the order of their ranks."""


def parse_config() -> dict[str, Any]:
    """Return TF_CONFIG without the roles that do not train; ends the program when it is malformed.

    TensorFlow takes all roles for members of the group.
    """
    try:
        config = json.loads(os.environ.get("TF_CONFIG", "{}"))
        cluster, task = (
            config.get("cluster", {}),
            config.get("task", {"type": "worker", "index": 0}),
        )
        trainers = {role: cluster[role] for role in TRAINERS if cluster.get(role)}
        return {
            "cluster": trainers,
            "task": {"type": str(task["type"]), "index": int(task["index"])},
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        print(
            (
                "TF_CONFIG is not what TensorFlow understands: it must be JSON with a cluster "
                "and a task"
            ),
            file=sys.stderr,
        )
        sys.exit(2)


def compute_rank(config: dict[str, Any]) -> tuple[int, int]:
    """Return the rank of this task among those that train, and how many they are."""
    sizes = [(role, len(members)) for role, members in config["cluster"].items()]
    before = 0
    for role, size in sizes:
        if role == config["task"]["type"]:
            break
        before += size
    return before + config["task"]["index"], max(1, sum(size for _, size in sizes))


def wait_forever() -> None:
    """Wait until the job ends: this role does not train."""
    print("this role has nothing to train: it waits", flush=True)
    while True:
        time.sleep(3600)


def train(options: argparse.Namespace, rank: int, world: int) -> None:
    ring = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=ring)
    random = np.random.default_rng([options.seed, rank])
    truth = np.random.default_rng(options.seed).normal(size=FEATURES)
    inputs = random.normal(size=(SAMPLES, FEATURES)).astype(np.float32)
    targets = (inputs @ truth > 0).astype(np.float32)
    with strategy.scope():
        weights = tf.Variable(tf.zeros(FEATURES))

    @tf.function  # type: ignore[untyped-decorator]
    def total(number: Any) -> Any:
        def on_one() -> Any:
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, tf.identity(number)
            )

        return strategy.run(on_one)

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> Any:
        def on_one() -> Any:
            with tf.GradientTape() as tape:
                logits = tf.linalg.matvec(tf.constant(inputs), weights)
                loss = tf.reduce_mean(
                    tf.nn.sigmoid_cross_entropy_with_logits(
                        labels=tf.constant(targets), logits=logits
                    )
                )
            group = tf.distribute.get_replica_context()
            gradient = group.all_reduce(tf.distribute.ReduceOp.MEAN, tape.gradient(loss, weights))
            weights.assign_sub(options.lr * gradient)
            return group.all_reduce(tf.distribute.ReduceOp.MEAN, loss)

        return strategy.run(on_one)

    print(f"sum {float(total(tf.constant(rank + 1.0))):g} of {world} ranks rank {rank}", flush=True)
    for number in range(1, options.steps + 1):
        time.sleep(options.slow)
        print(f"step {number} loss {float(step()):.6f} rank {rank}", flush=True)
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:16]
    print(f"digest {digest} rank {rank}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--slow", type=float, default=0.0, metavar="SECONDS", help="pause before each step"
    )
    options = parser.parse_args()
    config = parse_config()
    if config["task"]["type"] not in TRAINERS:
        wait_forever()
    if config["cluster"]:
        os.environ["TF_CONFIG"] = json.dumps(config)
    try:
        train(options, *compute_rank(config))
    except tf.errors.OpError as error:
        print(f"the group broke: {error.message.splitlines()[0]}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
