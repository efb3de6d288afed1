"""How long it takes from a cause in the API to its sentence, and the table of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.core.cache import cache

from tests.cast import Cast
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.injecting import find_diagnosis, list_faults
from workloads.models import Workload
from workloads.queries import WorkloadDiagnosis

PATIENCE = 60.0
POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was said of a cause, and how long after the cause; None where it never was right."""

    name: str
    sentence: str
    seconds: float | None
    faults: Sequence[str] = ()


def wait_for_rows(is_there: Callable[[], bool], describe: Callable[[], object]) -> None:
    """Wait until the follower has written rows; fail with a description."""
    deadline = time.monotonic() + PATIENCE
    while not is_there():
        assert time.monotonic() < deadline, describe()
        time.sleep(POLL_SECONDS)


def measure_sentence(
    cast: Cast, cause: InjectedCause, workload: Workload, since: float
) -> Measurement:
    """Ask until the sentence is right; `since` is the monotonic moment of the cause."""
    return measure_until(
        cause.name, cast, workload, since, lambda found: list_faults(cause, found, workload.name)
    )


def measure_until(
    name: str,
    cast: Cast,
    workload: Workload,
    since: float,
    find_faults: Callable[[WorkloadDiagnosis | None], Sequence[str]],
) -> Measurement:
    """Ask what is said of a workload until nothing is wrong with it."""
    while True:
        # A page may be two seconds behind with the nodes' numbers: they are not what is measured.
        cache.clear()
        found = find_diagnosis(cast, workload)
        faults = find_faults(found)
        now = time.monotonic()
        sentence = found.sentence if found else ""
        if not faults:
            return Measurement(name, sentence, now - since)
        if now - since > PATIENCE:
            return Measurement(name, sentence, None, faults)
        time.sleep(POLL_SECONDS)


def describe_measurements(title: str, measurements: Sequence[Measurement]) -> str:
    """Return a table of all measurements, with the median and the 95th percentile."""
    seconds = sorted(each.seconds for each in measurements if each.seconds is not None)
    lines = [
        f"{each.name:44} {_format_seconds(each.seconds):>6}  {each.sentence[:110]}"
        for each in measurements
    ]
    right = f"{title}: {len(seconds)} of {len(measurements)} sentences are right"
    if seconds:
        median, late = seconds[len(seconds) // 2], seconds[int(0.95 * (len(seconds) - 1))]
        right += f"; seconds: median {median:.2f}, p95 {late:.2f}, most {seconds[-1]:.2f}"
    wrong = [f"  {each.name}: {'; '.join(each.faults)}" for each in measurements if each.faults]
    return "\n".join([*lines, *wrong, right])


def find_percentile(measurements: Sequence[Measurement]) -> float:
    """Return the 95th percentile of the seconds; infinity where too few sentences are right."""
    seconds = sorted(PATIENCE if each.seconds is None else each.seconds for each in measurements)
    return seconds[int(0.95 * (len(seconds) - 1))]


def _format_seconds(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.2f}"
