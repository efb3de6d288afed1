"""The supervisor with processes that last as long as a test wants them to."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from console import pids, supervisor
from console.supervisor import DidNotStart, Service, Supervisor

PATH = {"PATH": os.environ["PATH"]}


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def supervisor_under_test(tmp_path: Path, messages: list[str]) -> Supervisor:
    return Supervisor(
        tmp_path / "log", pids.ProcessRegister(tmp_path / "processes.json"), messages.append
    )


def shell(name: str, script: str, directory: Path, **more: Any) -> Service:
    return Service(
        name=name, command=["/bin/sh", "-c", script], environment=PATH, directory=directory, **more
    )


async def wait_until(what: Callable[[], object], within: float = 90.0) -> None:
    async with asyncio.timeout(within):
        while not what():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


def exists(file: Path) -> Callable[[], Awaitable[bool]]:
    async def ready() -> bool:
        return file.exists()  # noqa: ASYNC240 - asks a local disk once

    return ready


def test_what_ends_is_started_again_and_told_with_its_last_words(
    supervisor_under_test: Supervisor, messages: list[str], tmp_path: Path
) -> None:
    async def story() -> None:
        supervisor_under_test.start(
            shell("one", "echo start >> starts; echo no more bread; exit 7", tmp_path)
        )
        await supervisor_under_test.wait_until_ready("one", 10)
        await wait_until(lambda: len(messages) == 2)
        await supervisor_under_test.stop("one")

    asyncio.run(story())
    assert (
        messages
        == ['one ended with status 7; it starts again. Its last words: "no more bread"'] * 2
    )
    assert (tmp_path / "starts").read_text().count("start") >= 2


def test_one_that_never_serves_is_reported_with_its_log(
    supervisor_under_test: Supervisor, tmp_path: Path
) -> None:
    async def story() -> None:
        supervisor_under_test.start(
            shell(
                "one",
                "echo 'out of \x1b[31mbread'; exit 3",
                tmp_path,
                is_ready=exists(tmp_path / "never"),
            )
        )
        try:
            await supervisor_under_test.wait_until_ready("one", 30)
        finally:
            await supervisor_under_test.stop("one")

    with pytest.raises(
        DidNotStart, match=r"one ended with status 3\. It said:\s+out of \[31mbread"
    ):
        asyncio.run(story())


def test_one_that_takes_too_long_is_reported(
    supervisor_under_test: Supervisor, tmp_path: Path
) -> None:
    async def story() -> None:
        supervisor_under_test.start(
            shell("one", "exec sleep 60", tmp_path, is_ready=exists(tmp_path / "never"))
        )
        try:
            await supervisor_under_test.wait_until_ready("one", 0.1)
        finally:
            await supervisor_under_test.stop("one")

    with pytest.raises(DidNotStart, match=r"one was not ready after 0\.1 s"):
        asyncio.run(story())


def test_a_program_that_is_not_there_is_named(
    supervisor_under_test: Supervisor, tmp_path: Path
) -> None:
    async def story() -> None:
        missing = Service(
            name="one",
            command=["/no/such/program"],
            environment=PATH,
            directory=tmp_path,
            is_ready=exists(tmp_path / "never"),
        )
        supervisor_under_test.start(missing)
        try:
            await supervisor_under_test.wait_until_ready("one", 30)
        finally:
            await supervisor_under_test.stop("one")

    with pytest.raises(DidNotStart, match="/no/such/program"):
        asyncio.run(story())


def test_what_does_not_stop_is_killed(
    supervisor_under_test: Supervisor, messages: list[str], tmp_path: Path
) -> None:
    async def story() -> None:
        supervisor_under_test.start(
            shell(
                "deaf",
                "trap '' TERM; touch up; while :; do sleep 0.05; done",
                tmp_path,
                stop_seconds=0.3,
            )
        )
        await wait_until((tmp_path / "up").exists)
        await supervisor_under_test.stop("deaf")

    asyncio.run(story())
    assert messages == ["deaf did not stop within 0.3 s and is killed."]


def test_a_stop_while_it_pauses_ends_it(
    supervisor_under_test: Supervisor, messages: list[str], tmp_path: Path
) -> None:
    async def story() -> None:
        supervisor_under_test.start(shell("one", "exit 1", tmp_path))
        await supervisor_under_test.wait_until_ready("one", 10)
        await wait_until(lambda: messages)
        await supervisor_under_test.stop("one", "never started")

    asyncio.run(story())


def test_a_run_gives_what_it_said(supervisor_under_test: Supervisor, tmp_path: Path) -> None:
    assert (
        asyncio.run(
            supervisor_under_test.run(shell("once", "echo hello; echo aside >&2", tmp_path))
        )
        == "hello\n"
    )
    assert (tmp_path / "log" / "once.log").read_text() == "aside\n"
    with pytest.raises(DidNotStart, match="once ended with status 4"):
        asyncio.run(supervisor_under_test.run(shell("once", "exit 4", tmp_path)))


def test_a_run_ends_when_nobody_waits_for_it(
    supervisor_under_test: Supervisor, tmp_path: Path
) -> None:
    async def story() -> None:
        running = asyncio.create_task(
            supervisor_under_test.run(shell("once", "echo $$ > pid; exec sleep 60", tmp_path))
        )
        await wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(story())
    assert pids.find_start_ticks(int((tmp_path / "pid").read_text())) is None


def test_a_log_is_bounded_while_its_process_writes(
    supervisor_under_test: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LOG_BYTES", 10_000)
    current, old = tmp_path / "log" / "loud.log", tmp_path / "log" / "loud.log.1"

    async def story() -> None:
        rotating = asyncio.create_task(supervisor_under_test.rotate_logs(every=0.02))
        supervisor_under_test.start(
            shell(
                "loud",
                "while :; do echo 0123456789012345678901234567890123456789; sleep 0.0005; done",
                tmp_path,
            )
        )
        await wait_until(old.exists)
        before = old.read_bytes()
        await wait_until(lambda: old.read_bytes() != before)
        rotating.cancel()
        await supervisor_under_test.stop("loud")

    asyncio.run(story())
    assert current.read_bytes().lstrip(b"0123456789\n") == b"", (
        "the file has a hole where it was cut"
    )


def test_children_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    story = (
        "import asyncio, os, pathlib, signal\n"
        "from console import pids\nfrom console.supervisor import Service, Supervisor\n"
        "here = pathlib.Path(os.environ['HERE'])\n"
        "async def main():\n"
        "    register = pids.ProcessRegister(here / 'processes.json')\n"
        "    supervisor = Supervisor(here / 'log', register, print)\n"
        "    supervisor.start(Service(name='one', command=['/bin/sleep', '60'], environment={}, "
        "directory=here))\n"
        "    while not (here / 'processes.json').exists(): await asyncio.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", story, env=os.environ | {"HERE": str(tmp_path)}
        )
        assert await process.wait() == -9
        await wait_until(
            lambda: not pids.ProcessRegister(tmp_path / "processes.json").find_orphans()
        )

    asyncio.run(run())


def test_what_was_left_behind_is_found_and_ended(tmp_path: Path) -> None:
    async def story() -> None:
        deaf = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
        left = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", deaf, stdout=asyncio.subprocess.PIPE
        )
        assert left.stdout is not None
        await left.stdout.readline()
        pids.ProcessRegister(tmp_path / "processes.json").add("deaf", left.pid)
        found = pids.ProcessRegister(tmp_path / "processes.json").find_orphans()
        assert found == {"deaf": left.pid}
        await pids.end_processes(found, within=0.2)
        assert await left.wait() == -9
        # Its last sleep has the pipe a moment longer.
        await left.stdout.read()

    asyncio.run(story())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"web": 3}',
        '{"web": [1, 5]}',
        '{"web": [999999999, 5]}',
        '{"web": ["x", "y"]}',
    ],
)
def test_a_register_that_makes_no_sense_names_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "processes.json").write_text(text)
    assert pids.ProcessRegister(tmp_path / "processes.json").find_orphans() == {}


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "ended with status 0"), (-9, "was ended by SIGKILL"), (-64, "was ended by SIGRTMAX")],
)
def test_an_end_in_words(code: int, words: str) -> None:
    assert pids.describe_exit(code) == words
