"""What the campaign runs: a training with one fault, or a healthy one, each drawn from a seed."""

import random
from dataclasses import dataclass, field
from enum import StrEnum

from workloads.radar import Kind

SLOWEST_LOOK = 90.0
"""Seconds within which a fault is found that lines tell."""
CHECKPOINT_SECONDS = 20.0
LEAK_SECONDS = 340.0
"""A leak takes longer: 150 s of figures, two looks at them that are 50 s apart, and those 90 s."""
NO_TRACE_SECONDS = 720.0
"""Where all ranks fall silent at once, ten minutes have to pass: a checkpoint may take as long."""
DEADLINE = 600.0
"""Seconds after which nobody waits for a finding any more, on a busy machine too."""


class Fault(StrEnum):
    """What goes wrong; `tests.radar.trainer` knows each by its name."""

    HANG = "hang"
    SLOW = "slow"
    SILENT = "silent"
    LOADER = "loader"
    NAN = "nan"
    LEAK = "leak"
    KILLED = "killed"
    THROTTLED = "throttled"
    STOPPED = "stopped"
    CHECKPOINTS = "checkpoints"


class Health(StrEnum):
    """What is healthy and looks odd."""

    COMPILE = "compile"
    EVALUATION = "evaluation"
    PAUSE = "pause"
    FLOOD = "flood"
    UNEVEN = "uneven"
    FIRST_ONLY = "first-only"


EXPECTED = {
    Fault.HANG: Kind.HANG,
    Fault.SLOW: Kind.STRAGGLER,
    Fault.SILENT: Kind.HANG,
    Fault.LOADER: Kind.HANG,
    Fault.NAN: Kind.LOSS,
    Fault.LEAK: Kind.MEMORY,
    Fault.KILLED: Kind.HANG,
    Fault.THROTTLED: Kind.STRAGGLER,
    Fault.STOPPED: Kind.HANG,
    Fault.CHECKPOINTS: Kind.CHECKPOINTS,
}
MODES = {
    Fault.HANG: ("sleep", "spin"),
    Fault.SILENT: ("sleep", "quiet"),
    Fault.LOADER: ("stop", "kill"),
}
MEETING = frozenset({Fault.HANG, Fault.LOADER, Fault.KILLED, Fault.STOPPED})
"""Faults that stop all ranks: those that print after they met leave no trace of which one did."""
BEFORE_ONLY = frozenset({Fault.SLOW, Fault.THROTTLED})
"""Faults that nothing tells where ranks print after they met: all print at once, only later."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One workload: the trainer's arguments, and what is to be found in it.

    `expected` is None where anything that is found is a false alarm. With `may_be_unknown` a
    finding without a rank is right as well, and a few minutes late.
    """

    seed: int
    title: str
    arguments: tuple[str, ...]
    world: int
    step_seconds: float
    expected: Kind | None = None
    rank: int | None = None
    mode: str = ""
    may_be_unknown: bool = False
    prints_after: bool = False
    bound: float = SLOWEST_LOOK
    """Seconds from the fault within which it is to be found."""
    lasts: float = 0.0
    """Seconds for which a healthy one runs."""
    fault: Fault | None = field(default=None)

    @property
    def name(self) -> str:
        return f"{self.title}-{self.seed}"

    @property
    def is_hungry(self) -> bool:
        """Whether it takes a whole processor: of such only one runs at a time."""
        return self.mode == "spin"


def draw_fault(fault: Fault, seed: int, *, world: int = 4, prints_after: bool = False) -> Plan:
    """Draw a training with a fault."""
    chance = random.Random(f"{fault} {seed}")
    step_seconds = round(chance.uniform(0.5, 3.0), 2)
    rank = chance.randrange(world)
    mode = chance.choice(MODES.get(fault, ("",)))
    begin = max(8, round(chance.uniform(40, 70) / step_seconds))
    factor = chance.uniform(1.7, 3.0)
    arguments = {
        "seed": seed,
        "step-seconds": step_seconds,
        "jitter": chance.choice((0.02, 0.05, 0.1)),
        "fault": fault,
        "fault-rank": rank,
        "fault-mode": mode,
        "fault-step": begin,
        "factor": round(factor, 2),
        "leak-rate": round(chance.uniform(3e6, 8e6)),
    }
    flags = []
    expected_rank: int | None = rank
    bound = max(SLOWEST_LOOK, 5 * step_seconds * (factor if fault in BEFORE_ONLY else 1))
    if fault is Fault.CHECKPOINTS:
        # It is rank 0 that saves; three checkpoints have to come before one is missed.
        expected_rank = 0
        arguments |= {"fault-rank": 0, "checkpoint-seconds": CHECKPOINT_SECONDS}
        arguments["fault-step"] = max(begin, round(4.5 * CHECKPOINT_SECONDS / step_seconds))
        bound += 2 * CHECKPOINT_SECONDS
    elif fault is Fault.LEAK:
        bound = LEAK_SECONDS
    elif fault is Fault.SILENT:
        flags.append("--alone")
    is_untraced = prints_after and fault in MEETING
    if prints_after and fault not in BEFORE_ONLY | {Fault.SILENT}:
        flags.append("--prints-after")
        if fault is Fault.NAN:
            # What they print then is the mean of all ranks.
            expected_rank = None
    return Plan(
        seed,
        fault,
        (*(f"--{name}={value}" for name, value in arguments.items()), *flags),
        world,
        step_seconds,
        expected=EXPECTED[fault],
        rank=expected_rank,
        mode=mode,
        may_be_unknown=is_untraced,
        prints_after="--prints-after" in flags,
        bound=NO_TRACE_SECONDS if is_untraced else bound,
        fault=fault,
    )


def draw_healthy(health: Health, seed: int, *, world: int = 4, is_short: bool = False) -> Plan:
    """Draw a healthy training; a short one for a test that nobody waits for."""
    chance = random.Random(f"{health} {seed}")
    step_seconds = round(chance.uniform(0.5, 2.0), 2)
    long = 100.0 if is_short else chance.uniform(120, 280)
    arguments = {"seed": seed, "step-seconds": step_seconds, "jitter": 0.1}
    flags = ["--prints-after"] if chance.random() < 0.3 else []
    lasts = 180.0 if is_short else 360.0
    match health:
        case Health.COMPILE:
            arguments["compile-seconds"] = long
            lasts = max(lasts, long + 120)
        case Health.EVALUATION:
            arguments |= {"evaluate-every": round(40 / step_seconds), "evaluate-seconds": long / 2}
        case Health.PAUSE:
            arguments |= {"pause-step": round(30 / step_seconds), "pause-seconds": long}
            lasts = max(lasts, long + 120)
        case Health.FLOOD:
            arguments |= {"flood-step": round(40 / step_seconds), "flood-seconds": 40}
            arguments["flood-rank"] = chance.randrange(world)
        case Health.UNEVEN:
            flags.append("--uneven")
        case Health.FIRST_ONLY:
            flags.append("--first-only")
    return Plan(
        seed,
        health,
        (*(f"--{name}={value}" for name, value in arguments.items()), *flags),
        world,
        step_seconds,
        prints_after="--prints-after" in flags,
        lasts=lasts,
    )
