"""Runs the campaign's trainings on an installation with an embedded cluster, many at once, and
compares what the radar finds in them with what was wrong.

Findings are read from the database's rows, for what counts is when each was written.
"""

import contextlib
import json
import shlex
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tests.installation import Installation
from tests.migrated import NAME as DATABASE
from tests.radar import trainer
from tests.radar.plans import DEADLINE, Plan
from tests.rest import COMPUTE, Program

PASSWORD = "correct horse battery"
SOURCE = Path(trainer.__file__).read_text()
LIMIT = "2G"
POLL_SECONDS = 2.0
STARTED = 900.0
"""Seconds within which a training begins and its fault comes, on a busy machine."""
FINDINGS = """
SELECT kind, rank, sentence, found_at FROM workloads_radarfinding
WHERE workload_id = ? ORDER BY found_at, id
"""


@dataclass(frozen=True, slots=True)
class FoundTrouble:
    """A row of the radar."""

    kind: str
    rank: int | None
    sentence: str
    at: float


@dataclass(slots=True)
class Run:
    """A workload of the campaign, and what came of it."""

    plan: Plan
    id: str
    fault_file: Path
    submitted_at: float
    running_at: float | None = None
    fault_at: float | None = None
    found: Sequence[FoundTrouble] = ()
    trouble: str = ""
    """Why it could not be judged, "" where it could."""

    @property
    def early(self) -> Sequence[FoundTrouble]:
        """What was found before anything was wrong: false alarms."""
        if self.plan.expected is None:
            return self.found
        return [each for each in self.found if self.fault_at is None or each.at < self.fault_at]

    @property
    def first(self) -> FoundTrouble | None:
        """What was found first after the fault."""
        return next((each for each in self.found if each not in self.early), None)

    @property
    def is_right(self) -> bool:
        """Whether the first finding is of the fault's kind and of its rank."""
        first = self.first
        if self.plan.expected is None or first is None:
            return self.plan.expected is None and not self.found and not self.trouble
        is_of_rank = first.rank == self.plan.rank
        is_of_rank |= self.plan.may_be_unknown and first.rank is None
        return first.kind == self.plan.expected and is_of_rank

    @property
    def is_found(self) -> bool:
        """Whether any finding after the fault is of its kind and of its rank."""
        return any(
            each.kind == self.plan.expected and each.rank == self.plan.rank
            for each in self.found
            if each not in self.early
        )

    @property
    def delay(self) -> float | None:
        if self.first is None or self.fault_at is None:
            return None
        return self.first.at - self.fault_at

    @property
    def is_in_time(self) -> bool:
        return self.delay is not None and self.delay <= self.plan.bound

    def is_over(self, now: float) -> bool:
        """Return whether nothing more is to be learned from it."""
        plan = self.plan
        if self.trouble:
            return True
        if plan.expected is None:
            return self.running_at is not None and now - self.running_at >= plan.lasts
        if self.fault_at is None:
            if now - self.submitted_at > STARTED:
                self.trouble = "its fault never came"
            return bool(self.trouble)
        has_answer = self.is_found or (self.first is not None and plan.may_be_unknown)
        return has_answer or now - self.fault_at > max(DEADLINE, plan.bound + 60)

    def describe(self) -> str:
        """Return its line of the table."""
        plan, first = self.plan, self.first
        wanted = "nothing" if plan.expected is None else f"{plan.expected} {_name(plan.rank)}"
        if plan.may_be_unknown:
            wanted += "/?"
        finding = "nothing" if first is None else f"{first.kind} {_name(first.rank)}"
        if plan.expected is None and self.found:
            finding = ", ".join(f"{each.kind} {_name(each.rank)}" for each in self.found)
        verdict = "right" if self.is_right else "WRONG"
        delay = "" if self.delay is None else f"{self.delay:.0f}"
        late = "" if plan.expected is None or self.is_in_time else " LATE"
        sentence = self.trouble or (first.sentence if first is not None else "")
        if self.early:
            sentence += " FALSE ALARM: " + "; ".join(
                f"{each.kind} {_name(each.rank)}: {each.sentence}" for each in self.early
            )
        where = "after" if plan.prints_after else "before"
        return (
            f"{plan.seed:>5} {plan.title:<12} {plan.mode:<6} {where:<7} {plan.step_seconds:>4} s "
            f"{wanted:<14} {finding:<14} {verdict} {delay:>4}/{plan.bound:.0f}{late}  {sentence}"
        )


def _name(rank: int | None) -> str:
    return "?" if rank is None else str(rank)


def describe_runs(runs: Sequence[Run]) -> str:
    """Return the table of what was found, those with faults first."""
    faulty = [each for each in runs if each.plan.expected is not None]
    healthy = [each for each in runs if each.plan.expected is None]
    head = " seed what         mode   prints  step   wanted         found          verdict delay s"
    right = sum(each.is_right for each in faulty)
    in_time = sum(each.is_in_time for each in faulty)
    alarms = sum(len(each.early) for each in runs)
    ordered = sorted(faulty, key=lambda each: (each.plan.title, each.plan.seed)) + healthy
    return "\n".join(
        [
            head,
            *(each.describe() for each in ordered),
            f"{right} of {len(faulty)} right, {in_time} in time; "
            f"{alarms} false alarms in {len(healthy)} healthy runs and before faults",
        ]
    )


@dataclass(slots=True)
class RadarStage:
    """Starts and ends everything; see the module."""

    folder: Path
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of the installation, beside those that it needs here."""
    muster: Installation = field(init=False)
    program: Program = field(init=False)
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        self.muster = Installation(
            self.folder / "var", admin_password=PASSWORD, poll_seconds=5, **self.options
        ).migrated()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.muster)
            self.program = Program(self.muster.url, PASSWORD)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def run_plans(self, plans: Sequence[Plan], at_once: int) -> Sequence[Run]:
        """Run these plans, so many side by side, and return what came of each."""
        waiting, active, over = list(plans), list[Run](), list[Run]()
        while waiting or active:
            while len(active) < at_once and (plan := _take_next(waiting, active)) is not None:
                active.append(self.submit_plan(plan))
            time.sleep(POLL_SECONDS)
            for run in list(active):
                self._follow(run)
                if run.is_over(time.time()):
                    active.remove(run)
                    over.append(run)
                    print(run.describe(), flush=True)
                    self.program.delete(run.id)
        return over

    def submit_plan(self, plan: Plan) -> Run:
        """Submit the workload of a plan."""
        fault_file = self.folder / f"{plan.name}.json"
        arguments = [*plan.arguments, f"--fault-file={fault_file}"]
        workload = self.program.submit(
            plan.name,
            workers=plan.world - 1,
            command=shlex.join(["python", "-c", SOURCE]),
            args=shlex.join(arguments),
            compute=COMPUTE | {"cpuMemoryLimit": LIMIT},
        )
        return Run(plan, workload, fault_file, time.time())

    def _follow(self, run: Run) -> None:
        """Bring a run up to date."""
        phase = self.program.phase(run.id)
        if phase == "Running" and run.running_at is None:
            run.running_at = time.time()
        if phase in ("Failed", "Completed", "Stopped"):
            run.trouble = f"it is {phase}"
        if run.fault_at is None and run.fault_file.exists():
            run.fault_at = float(json.loads(run.fault_file.read_text())["at"])
        run.found = self._load_findings(run.id)

    def _load_findings(self, workload: str) -> Sequence[FoundTrouble]:
        path = f"file:{self.muster.data / DATABASE}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True, timeout=60)) as database:
            rows = database.execute(FINDINGS, (workload.replace("-", ""),)).fetchall()
        return [
            FoundTrouble(kind, rank, sentence, _parse_moment(found_at))
            for kind, rank, sentence, found_at in rows
        ]


def _take_next(waiting: list[Plan], active: Sequence[Run]) -> Plan | None:
    """Take the next plan that may run beside those that do."""
    is_full = any(run.plan.is_hungry for run in active)
    plan = next((each for each in waiting if not (is_full and each.is_hungry)), None)
    if plan is not None:
        waiting.remove(plan)
    return plan


def _parse_moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
