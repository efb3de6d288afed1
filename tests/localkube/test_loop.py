"""The work loop: each key once, timers, retries, one transaction a reconcile, and room for others
in between.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from localkube.controllers.loop import ControllerLoop, Key, Trigger
from localkube.resources import CONFIGMAPS
from localkube.resources.resource import Resource
from tests.localkube.stage import SPACE, Stage


class Watcher:
    """Follows config maps and does with each what the test says."""

    name = "watcher"

    def __init__(self, act: Callable[[Key], float | None]) -> None:
        self._act = act
        self.names: list[str] = []

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {CONFIGMAPS: lambda change: [(change.record.namespace, change.record.name)]}

    def reconcile(self, key: Key) -> float | None:
        self.names.append(key[1])
        return self._act(key)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path / "state.db", monkeypatch, lambda objects: [])
    yield made
    made.close()


def config(stage: Stage, name: str) -> None:
    stage.objects.create(CONFIGMAPS, SPACE, {"metadata": {"name": name}})


def set_data(stage: Stage, name: str, value: str) -> None:
    stage.objects.modify(CONFIGMAPS, SPACE, name, lambda obj: obj.update(data={"k": value}))


def test_what_exists_is_looked_at_first_and_each_change_after(stage: Stage) -> None:
    config(stage, "old")
    watcher = Watcher(lambda key: None)
    stage.loop.add_controller(watcher)
    config(stage, "new")
    stage.settle()
    assert watcher.names == ["old", "new"]


def test_many_changes_of_one_object_are_one_look(stage: Stage) -> None:
    watcher = Watcher(lambda key: None)
    stage.loop.add_controller(watcher)
    config(stage, "one")
    for value in "abc":
        set_data(stage, "one", value)
    stage.settle()
    assert watcher.names == ["one"]


def test_a_key_is_looked_at_again_when_it_asks_for_it(stage: Stage) -> None:
    watcher = Watcher(lambda key: 10)
    stage.loop.add_controller(watcher)
    config(stage, "one")
    for seconds, looks in ((0, 1), (9.9, 1), (0.1, 2), (10, 3)):
        stage.settle(seconds)
        assert len(watcher.names) == looks


def test_a_look_in_between_sets_the_timer_anew(stage: Stage) -> None:
    watcher = Watcher(lambda key: 10)
    stage.loop.add_controller(watcher)
    config(stage, "one")
    stage.settle()
    stage.settle(6)
    stage.loop.enqueue(watcher, (SPACE, "one"))
    stage.settle()
    stage.settle(6)
    assert len(watcher.names) == 2


def test_a_loop_that_never_settles_is_found_out(stage: Stage) -> None:
    stage.loop.add_controller(Watcher(lambda key: 0))
    config(stage, "one")
    with pytest.raises(RuntimeError, match=r"watcher.*one"):
        stage.loop.run_until_idle(limit=50)


def test_what_a_failed_look_wrote_is_taken_back(stage: Stage) -> None:
    def fail(key: Key) -> None:
        config(stage, "half")
        raise ValueError

    stage.loop.add_controller(Watcher(fail))
    config(stage, "one")
    with pytest.raises(ValueError):
        stage.settle()
    assert stage.names(CONFIGMAPS) == ["one"]


def test_a_failing_key_is_logged_and_tried_again_later_and_later(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        passed = 0.0
        loop = ControllerLoop(stage.objects, elapsed=lambda: passed)

        def act(key: Key) -> None:
            if len(failing.names) < 4:
                raise ValueError("bad luck")
            loop.stop()

        failing, idle = Watcher(act), Watcher(lambda key: None)
        loop.add_controller(failing)
        config(stage, "bad")
        running = asyncio.create_task(loop.run())
        while not running.done():
            passed += 0.1
            # Another key wakes the loop, which then sees that time has passed.
            loop.enqueue(idle, ("", ""))
            await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        asyncio.run(asyncio.wait_for(scenario(), 10))
    message = "watcher could not reconcile team/bad: bad luck; next try in {} s"
    assert caplog.messages == [message.format(pause) for pause in ("0.1", "0.2", "0.4")]


def test_others_get_their_turn_while_there_is_much_to_do(stage: Stage) -> None:
    async def scenario() -> int:
        loop = ControllerLoop(stage.objects)
        busy = Watcher(lambda key: 0)
        loop.add_controller(busy)
        config(stage, "busy")
        running = asyncio.create_task(loop.run())
        turns = 0
        while turns < 5:
            await asyncio.sleep(0)
            turns += 1
        loop.stop()
        await running
        return len(busy.names)

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) > 5


def test_a_change_wakes_the_loop(stage: Stage) -> None:
    async def scenario() -> None:
        loop = ControllerLoop(stage.objects)
        done = asyncio.Event()
        loop.add_controller(Watcher(lambda key: done.set()))
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(0)
        config(stage, "late")
        await done.wait()
        loop.stop()
        await running

    asyncio.run(asyncio.wait_for(scenario(), 10))
