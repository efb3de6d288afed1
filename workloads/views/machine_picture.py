"""A total of GPUs as a picture: machines with their GPUs, and whether they fit now."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads import fit
from workloads.judgement import Judgement
from workloads.specs import Spec, gpu_totals

MOST_MACHINES = 12
"""Machines that are drawn."""
MOST_GPUS = 16
"""GPUs of a machine that are drawn."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One pod with its GPUs; `squares` are as many as are drawn."""

    title: str
    gpus: str
    squares: range


@dataclass(frozen=True, slots=True)
class MachinePicture:
    """The machines of a total of GPUs in a sentence and drawn, `more` of them not.

    `problems` say why there are none; `checks` whether they fit now.
    """

    sentence: str
    machines: Sequence[Machine] = ()
    more: int = 0
    problems: Sequence[str] = ()
    checks: Sequence[fit.FitCheck] = ()


def build_picture(spec: Spec) -> MachinePicture | None:
    """Return the picture of a spec's machines; None where no total of GPUs was asked for."""
    if spec.total_gpus is None:
        return None
    kinds = [("worker", spec.setup, spec.workers)]
    if spec.has_master:
        leader = spec.framework.master_name if spec.framework else "master"
        kinds.insert(0, (leader, spec.master_setup, 1))
    machines: list[Machine] = []
    for noun, setup, count in kinds:
        gpus = gpu_totals.count_gpus(setup)
        for number in range(1, min(count, MOST_MACHINES - len(machines)) + 1):
            title = noun if count == 1 else f"{noun} {number}"
            squares = range(min(MOST_GPUS, -(-gpus // 1)))
            machines.append(Machine(title, gpu_totals.format_number(gpus), squares))
    more = spec.workers + int(spec.has_master) - len(machines)
    return MachinePicture(gpu_totals.describe_machines(spec), machines, more)


def build_judged_picture(judged: Judgement) -> MachinePicture | None:
    """Return the picture of a submission's machines, with what stands in the way or would fit now.

    The fit is left out while something else is wrong with the submission. At most six queries.
    """
    spec = judged.spec
    if spec.total_gpus is None:
        return None
    if problems := [each.text for each in judged.problems if each.field == gpu_totals.TOTAL_FIELD]:
        return MachinePicture("", problems=problems)
    picture = build_picture(spec)
    if picture is None or judged.problems:
        return picture
    return MachinePicture(
        picture.sentence, picture.machines, picture.more, checks=judged.fit.checks
    )
