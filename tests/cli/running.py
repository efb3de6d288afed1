"""`muster` run as a person runs it, against a web server with workloads of every kind."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cast import PASSWORD
from tests.cluster import ROOT
from tests.console_server import WebServer

ROWS = """
import json
from tests.cast import a_spec, make_cast
from workloads import journal
from workloads.logbook import log_paths
from workloads.models import Event, Log, Pod, Workload
from projects.actions import create_service_account
from django.utils import timezone
from datetime import timedelta
cast = make_cast()
ids = {}
def workload(name, status, **changes):
    made = journal.create_workload(a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob)
    Workload.objects.filter(pk=made.pk).update(status=status, next_try_at=None, **changes)
    ids[name] = str(made.pk)
    return made
long_ago = timezone.now() - timedelta(days=40)
running = workload("train1", "Running", running_pods=2)
workload("late", "Creating")
workload("waiting", "Pending", reason="No node has 8 free GPUs.")
from workloads.models import WorkloadForecast
soon = timezone.now() + timedelta(minutes=90)
WorkloadForecast.objects.create(workload_id=ids["waiting"], attempt=1, made_at=timezone.now(),
                                outlook="starts", horizon="6h", likely_at=soon,
                                earliest_at=soon - timedelta(minutes=30),
                                latest_at=soon + timedelta(minutes=30))
workload("old", "Completed", ended_at=long_ago, status_at=long_ago)
workload("failed", "Failed", ended_at=timezone.now(), reason="worker-0 ran out of memory.")
for rank, name in enumerate(("train1-master-0", "train1-worker-0")):
    pod = Pod.objects.create(workload=running, attempt=1, uid=f"u{rank}", name=name, rank=rank,
                             role=name.split("-")[1], phase="Running", status="Running",
                             data={"spec": {"containers": [{"name": "pytorch"}]}})
    path = log_paths.build_log_path(running.pk, pod.uid, "pytorch", 0)
    log_paths.local_path(path).parent.mkdir(parents=True, exist_ok=True)
    text = "".join(
        f"2026-01-01T00:00:{number:02}.{rank:09}Z rank {rank} line {number}\\n"
        for number in range(10)
    )
    log_paths.local_path(path).write_text(text)
    log = Log.objects.create(pod=pod, container="pytorch", run=0, state="complete", path=path,
                             size=len(text))
    ids[name] = [str(log_paths.local_path(path)), log.pk]
from workloads.radar import Certainty, Finding, Kind, Proof
from workloads.models import RadarWatch
def look(made, *found):
    watch = RadarWatch(workload_id=made.pk, attempt=1)
    update = journal.RadarUpdate(made.pk, made.project_id, watch, begun=found)
    journal.record_radar([update], timezone.now())
look(running)
hangs = workload("hangs", "Running", running_pods=2)
look(hangs, Finding(Kind.HANG, Certainty.CERTAIN, "Rank 1 has said nothing for 6 min.",
                    "Stop it to free what it holds.", timezone.now().timestamp() - 360, rank=1,
                    node="node-0", proofs=(Proof("Rank 1 printed last: \\u202e\\x1b[2Jstep 9"),)))
wide = workload("wide", "Completed", ended_at=timezone.now())
for rank in range(20):
    pod = Pod.objects.create(workload=wide, attempt=1, uid=f"w{rank}", name=f"wide-worker-{rank}",
                             rank=rank, role="worker", phase="Succeeded", status="Completed",
                             ended_at=timezone.now(),
                             data={"spec": {"containers": [{"name": "pytorch"}]}})
    path = log_paths.build_log_path(wide.pk, pod.uid, "pytorch", 0)
    log_paths.local_path(path).parent.mkdir(parents=True, exist_ok=True)
    text = f"2026-01-01T00:00:00.{rank:09}Z first\\n2026-01-01T00:00:01.{rank:09}Z second\\n"
    log_paths.local_path(path).write_text(text)
    Log.objects.create(pod=pod, container="pytorch", run=0, state="complete", path=path,
                       size=len(text))
from tests.workloads.ledger_rows import an_entry
from datetime import date
an_entry(cast.team_a, "train1", date(2026, 10, 5), useful=3, idle=1)
an_entry(cast.team_a, "old", date(2026, 10, 6), useful=0.5, user="vera")
an_entry(cast.team_b, "hidden", date(2026, 10, 6), useful=9)
from workloads.recording.turns import record_turn
record_turn(timezone.now())
account, secret = create_service_account(cast.team_a, "ci", by=cast.alice)
print(json.dumps(ids | {"clientId": account.client_id, "secret": secret}))
"""


REPLACED_POD = """
from django.utils import timezone
from projects.models import Project, User
from tests.cast import a_spec
from workloads import journal
from workloads.logbook import log_paths
from workloads.models import Log, Pod, Workload
team, now = Project.objects.get(name="team-a"), timezone.now()
made = journal.create_workload(a_spec(team, "replaced"), project=team,
                               user=User.objects.get(username="bob"))
Workload.objects.filter(pk=made.pk).update(status="Completed", ended_at=now, next_try_at=None)
states = [("lost", "Running", "Running", None), ("new", "Succeeded", "Completed", now)]
for second, (uid, phase, status, ended_at) in enumerate(states):
    pod = Pod.objects.create(workload=made, attempt=1, uid=f"r-{uid}", name="replaced-worker-0",
                             rank=1, role="worker", phase=phase, status=status, ended_at=ended_at,
                             vanished_at=now, data={"spec": {"containers": [{"name": "pytorch"}]}})
    path = log_paths.build_log_path(made.pk, pod.uid, "pytorch", 0)
    log_paths.local_path(path).parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"2026-01-01T00:00:0{second}.{n:09}Z {uid} {n}\\n" for n in range(3))
    log_paths.local_path(path).write_text(text)
    Log.objects.create(pod=pod, container="pytorch", run=0, state="complete", path=path,
                       size=len(text))
"""
"""A workload whose pod was lost and came back under its name, within one attempt."""


@dataclass
class Outcome:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    def parse(self) -> Any:
        return json.loads(self.out)


@dataclass
class CommandLine:
    """A person at a terminal, with a configuration of their own."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MUSTER_", "COV_")) and name != "COLUMNS"
        }
        return inherited | {
            "XDG_CONFIG_HOME": str(self.home),
            "PYTHONPATH": str(ROOT / "cli" / "src"),
            **self.variables,
        }

    @property
    def folder(self) -> Path:
        return self.home / "muster"

    def __call__(self, *arguments: str, stdin: str = "", code: int | None = 0) -> Outcome:
        """Run a command to its end, and check its exit code unless it is None."""
        done = subprocess.run(
            build_command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.home,
            env=self.environment,
            timeout=180,
        )
        outcome = Outcome(done.returncode, done.stdout, done.stderr)
        if code is not None:
            assert outcome.code == code, outcome
        return outcome

    def start(self, *arguments: str, stdout: Any = subprocess.PIPE) -> "subprocess.Popen[str]":
        """Start a command that goes on."""
        return subprocess.Popen(
            build_interruptible_command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self.environment,
        )

    def sign_in(self, server: str, user: str = "bob") -> "CommandLine":
        self("login", server, "--user", user, "--password-stdin", "--name", "here", stdin=PASSWORD)
        return self


def build_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "muster_cli", *arguments]


def build_interruptible_command(*arguments: str) -> list[str]:
    """A command that Ctrl-C reaches: tests that run in the background ignore it, and so would what
    they start.
    """
    heed = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    return [sys.executable, "-c", heed, *build_command(*arguments)[1:]]


@dataclass
class Console:
    """A running web server, and the ids of what is in it."""

    web: WebServer
    ids: dict[str, Any]
