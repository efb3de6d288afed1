"""Every process of the console is killed at random moments of many submissions: all end where they
should, none is lost, none twice.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.api import Api
from tests.faults.stories import JOBS, PLOTS, Killer, Story, Witness
from tests.installation import PROCESSES, Installation, all_over, eventually
from tests.rest import Program

PASSWORD = "correct horse battery"
RECOVERED = 30.0
"""Seconds after the last restart in which everything has to be where it belongs."""
STARTING = 20.0
"""Seconds that interpreters and pods may take for themselves on a busy machine."""
OUTSTANDING = """
import json
from workloads.models import Workload
print(json.dumps({
    w.name: [w.attempts.count(), w.next_try_at is None, w.trouble] for w in Workload.objects.all()
}))
"""


@pytest.fixture
def chance() -> random.Random:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with Installation(
        tmp_path / "var", admin_password=PASSWORD, localkube_gpus=8
    ).migrated() as running:
        eventually(lambda: set(running.pids()) == PROCESSES)
        yield running


def run_stories(program: Program, killer: Killer, chance: random.Random, count: int) -> list[Story]:
    """The stories, all asked for what there is to ask, while processes are killed."""
    plots = [
        plot for _ in range(-(-count // len(PLOTS))) for plot in chance.sample(PLOTS, len(PLOTS))
    ]
    stories: list[Story] = []
    while len(stories) < count or any(story.wishes for story in stories):
        if len(stories) < count:
            stories.append(Story(program, f"story-{len(stories)}", *plots[len(stories)]))
        time.sleep(chance.uniform(0, 1))
        killer.kill()
        time.sleep(chance.uniform(0, 1))
        for story in chance.sample(stories, len(stories)):
            story.go_on()
    return stories


def kills_while_submitting(installation: Installation, chance: random.Random, count: int) -> None:
    program = Program(installation.url, PASSWORD)
    killer = Killer(
        installation, chance, "worker", "web", "follow", "capture", "beat", "redis", "localkube"
    )
    with Witness(installation.data / "localkube" / "kubeconfig") as witness:
        stories = run_stories(program, killer, chance, count)
        eventually(killer.all_are_back)
        began = time.monotonic()
        all_over(
            lambda: [text for story in stories if (text := story.stuck())],
            within=RECOVERED + STARTING,
        )
        print(f"recovered in {time.monotonic() - began:.1f} s")
    names = [story.name for story in stories]
    assert sorted([*program.listed(), *program.listed(deleted="true")]) == sorted(names)
    assert {key: uids for key, uids in witness.uids.items() if len(uids) > 1} == {}
    rows = json.loads(installation.manage("shell", "--no-imports", "-c", OUTSTANDING))
    assert rows == {story.name: [story.attempts, True, ""] for story in stories}
    ended = {
        name for name, row in program.listed().items() if row["phase"] in ("Completed", "Failed")
    }
    api = Api.from_kubeconfig(installation.data / "localkube" / "kubeconfig")
    assert {job["metadata"]["name"] for job in api.get(JOBS).ok()["items"]} == ended
    api.close()


@pytest.mark.timeout(900)
def test_eight_submissions_survive_the_kills(
    installation: Installation, chance: random.Random
) -> None:
    kills_while_submitting(installation, chance, 8)


@pytest.mark.long
def test_forty_submissions_survive_the_kills(
    installation: Installation, chance: random.Random
) -> None:
    kills_while_submitting(installation, chance, 40)
