"""A property of every history: a scheduler that followed it decides as one that begins anew.

What comes and goes is told to the scheduler change by change, and most passes look only at what has
changed. Whatever it left undone for that, a new scheduler on the same objects would do at once.
"""

import random
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from localkube import clock
from localkube.metadata import Object, is_terminating
from localkube.resources import JOBS, NODES, PODS, QUEUES
from tests.localkube.scheduling import GPU, Bench
from tests.localkube.test_scheduler_evicting import QUEUE, offer_devices

MIN_MEMBER = "kai.scheduler/batch-min-member"
DELAY = "kai.scheduler/preemption-delay"
PREEMPTIBILITY = "kai.scheduler/preemptibility"
PRIORITIES = ("train", "train", "train", "build-preemptible", "build")
PROJECTS = ("project-a", "project-b", "project-c")
NODE_SIZES = (2, 1, 3)
STEPS = (
    "submit",
    "submit",
    "submit",
    "submit_cores",
    "end_pod",
    "let_one_leave",
    "let_all_leave",
    "pass_time",
    "change_quota",
    "change_limit",
    "change_minimum",
    "delete_job",
)


class Story:
    """A cluster of some nodes and projects, and what is drawn to happen to it."""

    def __init__(
        self, folder: Path, number: int, set_clock: Callable[[Callable[[], datetime]], None]
    ) -> None:
        self.draw = random.Random(number)
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        set_clock(lambda: self.now)
        self.bench = Bench(folder, gpus=NODE_SIZES[0])
        self.made = 0
        for index, gpus in enumerate(NODE_SIZES[1:], start=1):
            self.bench.make(NODES, {"metadata": {"name": f"node-{index}"}}, "")
            offer_devices(self.bench, f"node-{index}", gpus)
        self.bench.queue("department", parent="", gpu={"quota": 4})
        for name, quota in zip(PROJECTS, (2, 2, 0), strict=True):
            parent = "default-parent-queue" if name == "project-c" else "department"
            self.bench.queue(name, parent=parent, gpu={"quota": quota})
        self.bench.settle()

    def take_step(self) -> str:
        """Let one thing happen; return its name."""
        name = self.draw.choice(STEPS)
        getattr(self, name)()
        return name

    def look(self) -> dict[str, tuple[object, ...]]:
        """Return what was decided for every unfinished pod."""
        return {
            pod["metadata"]["name"]: (
                pod["spec"].get("nodeName", ""),
                is_terminating(pod),
                (pod.get("status") or {}).get("nominatedNodeName", ""),
            )
            for pod in self.list_pods()
        }

    def list_pods(self) -> Sequence[Object]:
        return [
            pod
            for pod in self.bench.objects.list(PODS)
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]

    def submit(self) -> None:
        """Submit a gang of some pods of one or two devices."""
        self.made += 1
        count = self.draw.randint(1, 4)
        annotations = {MIN_MEMBER: str(self.draw.randint(1, count))}
        if self.draw.random() < 0.2:
            annotations[DELAY] = "2m"
        labels = {QUEUE: self.draw.choice(PROJECTS)}
        if self.draw.random() < 0.2:
            labels[PREEMPTIBILITY] = "semi-preemptible"
        labels["priorityClassName"] = self.draw.choice(PRIORITIES)
        job = self.bench.batch(f"job-{self.made}", annotations=annotations, labels=labels)
        gpus = self.draw.choice((1, 1, 1, 2))
        for _ in range(count):
            self.make_pod(job, gpus)

    def make_pod(self, job: Object, gpus: int) -> None:
        self.made += 1
        name = f"{job['metadata']['name']}-{self.made}"
        self.bench.pod(name, {GPU: gpus}, owner=job, schedulerName="kai-scheduler")

    def submit_cores(self) -> None:
        """Submit a pod that nobody has to give way to."""
        self.made += 1
        self.bench.pod(f"cores-{self.made}", {"cpu": "100m"})

    def end_pod(self) -> None:
        running = [pod for pod in self.list_pods() if pod["spec"].get("nodeName")]
        if running:
            self.bench.end(self.draw.choice(running)["metadata"]["name"])

    def let_one_leave(self) -> None:
        leaving = [pod for pod in self.list_pods() if is_terminating(pod)]
        if leaving:
            self.let_leave(self.draw.choice(leaving))

    def let_all_leave(self) -> None:
        for pod in self.list_pods():
            if is_terminating(pod):
                self.let_leave(pod)

    def let_leave(self, pod: Object) -> None:
        """Let a pod end, and make another in its place where its job is still there."""
        self.bench.remove(pod["metadata"]["name"])
        for reference in pod["metadata"].get("ownerReferences") or ():
            job = self.bench.objects.find(JOBS, "default", reference["name"])
            if job is not None:
                limits = pod["spec"]["containers"][0]["resources"]["limits"]
                self.make_pod(job, int(limits[GPU]))

    def pass_time(self) -> None:
        self.now += timedelta(seconds=self.draw.choice((1, 61, 121)))

    def change_quota(self) -> None:
        self.change_bound(quota=self.draw.choice((0, 1, 2, 3)))

    def change_limit(self) -> None:
        self.change_bound(limit=self.draw.choice((-1, -1, 1, 3)))

    def change_bound(self, **bounds: int) -> None:
        self.bench.objects.modify(
            QUEUES,
            "",
            self.draw.choice(PROJECTS),
            lambda queue: queue["spec"]["resources"]["gpu"].update(bounds),
        )

    def pick_job(self) -> Object | None:
        jobs = self.bench.objects.list(JOBS)
        return self.draw.choice(jobs) if jobs else None

    def change_minimum(self) -> None:
        """Let a job need fewer or more of its pods together."""
        job = self.pick_job()
        if job is not None:
            minimum = str(self.draw.randint(1, 4))
            self.bench.objects.modify(
                JOBS,
                "default",
                job["metadata"]["name"],
                lambda obj: obj["metadata"]["annotations"].update({MIN_MEMBER: minimum}),
            )

    def delete_job(self) -> None:
        """Delete a job and its pods, which is what the garbage collector does."""
        job = self.pick_job()
        if job is None:
            return
        name = job["metadata"]["name"]
        self.bench.objects.delete(JOBS, "default", name)
        for pod in self.list_pods():
            if pod["metadata"]["name"].startswith(f"{name}-"):
                self.bench.remove(pod["metadata"]["name"])

    def settle(self) -> None:
        """Let the scheduler work until it has nothing left to do at this moment."""
        self.bench.run_pass()
        self.bench.settle()


@pytest.mark.parametrize("number", [9, 21, 52, 80, 106, 149])
def test_a_new_scheduler_finds_nothing_left_to_decide(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_story(number, monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(200, 600, 50))
def test_a_new_scheduler_finds_nothing_left_to_decide_in_any_of_fifty_histories(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(first, first + 50):
        live_story(number, monkeypatch)


def live_story(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let things happen, and now and then compare with what a new scheduler does."""
    with tempfile.TemporaryDirectory() as folder:
        story = Story(
            Path(folder), number, lambda read: monkeypatch.setattr(clock, "current_time", read)
        )
        taken: list[str] = []
        for _ in range(40):
            taken.append(story.take_step())
            story.settle()
            before = story.look()
            if story.draw.random() < 0.3:
                story.bench.restart()
                story.settle()
                assert story.look() == before, (number, taken)
        story.bench.store.close()
