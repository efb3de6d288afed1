"""An asset's values as the parts of a Spec, so that one set of rules judges both. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from workloads.specs import BadWords, Compute, Environment, Gpus, PullPolicy, Setup, Variable, pod_problems, split_words

Values = Mapping[str, Any]
Found = Sequence[tuple[str, str]]


def environment_of(values: Values) -> Environment:
    """An environment asset's values as the part of a Spec. Raises BadWords for a command or arguments that cannot be split."""
    return Environment(
        image=values["image"],
        pull_policy=PullPolicy(values["pull_policy"]) if values["pull_policy"] else None,
        command=split_words(values["command"]),
        args=split_words(values["args"]),
        variables=tuple(Variable(str(each.get("name", "")), str(each.get("value", ""))) for each in values["variables"]),
        working_dir=values["working_dir"],
    )


def compute_of(values: Values) -> Compute:
    """A compute resource's values as the part of a Spec."""
    portion = values["gpu_portion"]
    return Compute(
        gpus=Gpus(values["gpu_devices"], None if portion is None else Decimal(portion), values["gpu_memory"]),
        cpu_request=values["cpu_request"],
        cpu_limit=values["cpu_limit"],
        memory_request=values["memory_request"],
        memory_limit=values["memory_limit"],
        large_shm=values["large_shm"],
    )


def judge_environment(values: Values) -> Found:
    """What is wrong with an environment asset: (field, sentence) pairs."""
    bad = [(field, f"{words} {wrong}.") for field, words, wrong in _bad_words(values)]
    if bad:
        return bad
    return _found(Setup(environment_of(values)), "environment.", {})


_COMPUTE_FIELDS = {"gpus.devices": "gpu_devices", "gpus.portion": "gpu_portion", "gpus.memory": "gpu_memory"}


def judge_compute(values: Values) -> Found:
    """What is wrong with a compute resource: (field, sentence) pairs."""
    return _found(Setup(Environment("none"), compute_of(values)), "compute.", _COMPUTE_FIELDS)


JUDGES: Mapping[str, Callable[[Values], Found]] = {"environment": judge_environment, "compute": judge_compute}


def _bad_words(values: Values) -> Iterator[tuple[str, str, str]]:
    for field, words in (("command", "The command"), ("args", "The arguments")):
        try:
            split_words(values[field])
        except BadWords as error:
            yield field, words, str(error)


def _found(setup: Setup, prefix: str, names: Mapping[str, str]) -> Found:
    wrong: Iterable[pod_problems.Wrong] = pod_problems.of_setup(setup)
    pairs = [(field.removeprefix(prefix), f"{words} {text}.") for field, words, text in wrong]
    return [(names.get(field, field), text) for field, text in pairs]
