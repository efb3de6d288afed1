"""What pods print is kept whole, whoever is killed while they print, and whoever removes them
afterwards.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.api import Api
from tests.faults.stories import Killer
from tests.installation import PROCESSES, Installation, all_over, eventually
from tests.rest import Program
from tests.training import PODS

PASSWORD = "correct horse battery"
RECOVERED = 60.0
VICTIMS = ("capture", "follow", "web", "worker", "localkube")
GAPS = """
import json
from workloads.models import Log
print(json.dumps({
    f"{log.pod.name}.{log.run}": [log.state, log.gaps, log.note]
    for log in Log.objects.select_related("pod")
}))
"""


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with Installation(
        tmp_path / "var", admin_password=PASSWORD, poll_seconds=5
    ).migrated() as running:
        eventually(lambda: set(running.pids()) == PROCESSES)
        yield running


def printing(lines: int, seconds: float, place: Path) -> dict[str, Any]:
    """What every pod is to run: numbered lines. The master ends last, for a job is over with it,
    whatever its workers do then.
    """
    prints = (
        f"seq {lines} | while read n; do echo line $n; sleep {seconds / lines:g}; done; printf "
        f"bye; : > {place}/$RANK"
    )
    waits = (
        f"if [ $RANK = 0 ]; then while [ ! -e {place}/1 -o ! -e {place}/2 ]; do sleep 0.2; done; "
        "sleep 2; fi"
    )
    return {
        "command": "/bin/sh",
        "args": f"-c '{prints}; {waits}'",
        "restartPolicy": "Never",
        "cleanPodPolicy": "All",
    }


def build_output(lines: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, lines + 1)) + "bye\n"


def pods_in(installation: Installation) -> list[str]:
    api = Api.from_kubeconfig(installation.data / "localkube" / "kubeconfig")
    try:
        return [
            pod["metadata"]["name"]
            for pod in api.get(PODS.replace("/default/", "/muster-team-a/")).ok()["items"]
        ]
    finally:
        api.close()


def whole_logs_under_kills(
    installation: Installation, lines: int, seconds: float, kills: int
) -> None:
    program = Program(installation.url, PASSWORD)
    chatty = program.submit(
        "chatty", workers=2, **printing(lines, seconds, installation.data.parent)
    )
    eventually(lambda: program.phase(chatty) == "Running")
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    killer = Killer(installation, random.Random(seed), *VICTIMS)
    for _ in range(kills):
        time.sleep(seconds / (kills + 2))
        killer.kill()
    all_over(
        lambda: [now] if (now := program.phase(chatty)) != "Completed" else [],
        within=seconds + RECOVERED,
    )
    eventually(lambda: pods_in(installation) == [], within=RECOVERED)
    names = ["chatty-master-0", "chatty-worker-0", "chatty-worker-1"]
    assert {name: program.log(chatty, name) for name in names} == dict.fromkeys(
        names, build_output(lines)
    )
    rows = json.loads(installation.manage("shell", "--no-imports", "-c", GAPS))
    assert rows == {f"{name}.0": ["complete", [], ""] for name in names}


@pytest.mark.timeout(900)
def test_logs_are_whole_after_each_process_was_killed(installation: Installation) -> None:
    whole_logs_under_kills(installation, 400, 12, len(VICTIMS))


@pytest.mark.long
def test_logs_are_whole_after_many_kills(installation: Installation) -> None:
    whole_logs_under_kills(installation, 4000, 120, 40)
