"""`muster mcp`, by the client of the protocol's own SDK, against a running server."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from muster_cli.actions.answer_size import LARGEST_ANSWER
from muster_cli.commands.tool_server import LONGEST_ERROR, MOST_CALLS
from muster_cli.http_client import TIMEOUT_SECONDS
from tests.cli.log_server import Answer, Query, serve_answers
from tests.cli.running import CommandLine, Console, build_command, build_interruptible_command
from tests.installation import eventually

READING = ["list", "get", "why", "logs", "nodes", "quotas"]
CHANGING = ["submit", "stop", "delete"]
MOST_SECONDS = 120


class Answers:
    """What the tools answered, and all that the server wrote on standard error."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.texts: list[str] = []

    async def list_names(self) -> list[str]:
        listed = (await self._client.list_tools()).tools
        self.texts.append(str(listed))
        return [each.name for each in listed]

    async def call(self, name: str, **arguments: Any) -> tuple[str, bool]:
        result = await self._client.call_tool(name, arguments)
        [content] = result.content
        assert content.type == "text"
        self.texts.append(content.text)
        return content.text, result.is_error

    async def read(self, name: str, **arguments: Any) -> Any:
        text, is_error = await self.call(name, **arguments)
        assert not is_error, text
        return json.loads(text)

    async def read_error(self, name: str, **arguments: Any) -> str:
        text, is_error = await self.call(name, **arguments)
        assert is_error, text
        return text


Steps = Callable[[Answers], Awaitable[None]]


def run_client(person: CommandLine, steps: Steps, *options: str) -> str:
    """Start `muster mcp` as the person, take the steps, and return all that it wrote."""
    command, *arguments = build_command("mcp", *options)
    errors = person.home / "errors"
    parameters = StdioServerParameters(
        command=command, args=arguments, env=person.environment, cwd=person.home
    )

    async def walk() -> str:
        with errors.open("w") as file, anyio.fail_after(MOST_SECONDS):
            async with Client(stdio_client(parameters, errlog=file)) as client:
                answers = Answers(client)
                await steps(answers)
        return "\n".join(answers.texts)

    return anyio.run(walk) + errors.read_text()


def read_token(person: CommandLine) -> str:
    [entry] = json.loads((person.folder / "credentials.json").read_text())["tokens"].values()
    token: str = entry["token"]
    assert len(token) > 20
    return token


def test_tools_that_change_something_are_listed_only_where_allowed(bob: CommandLine) -> None:
    async def refuse_changes(answers: Answers) -> None:
        assert await answers.list_names() == READING
        for name in CHANGING:
            text = await answers.read_error(name, workload="train1", body={})
            assert "--allow-write" in text
        assert (await answers.read("get", workload="train1"))["workload"]["phase"] == "Running"

    async def list_all(answers: Answers) -> None:
        assert await answers.list_names() == READING + CHANGING

    written = run_client(bob, refuse_changes) + run_client(bob, list_all, "--allow-write")
    assert read_token(bob) not in written


def test_each_tool_that_reads_answers(bob: CommandLine) -> None:
    async def read_all(answers: Answers) -> None:
        listed = await answers.read("list", limit=3)
        assert len(listed["workloads"]) == 3
        assert listed["hasMore"] is True
        waiting = await answers.read("list", phase="Pending", search="wait")
        assert [each["name"] for each in waiting["workloads"]] == ["waiting"]
        assert waiting["hasMore"] is False
        details = await answers.read("get", workload="team-a/train1")
        assert [each["name"] for each in details["pods"]] == ["train1-master-0", "train1-worker-0"]
        assert details["podCount"] == 2
        assert details["attemptCount"] == 1
        reason = await answers.read("why", workload="waiting")
        assert reason["message"] == "No node has 8 free GPUs."
        trouble = await answers.read("why", workload="hangs")
        assert [each["kind"] for each in trouble["findings"]] == ["hang"]
        logs = await answers.read("logs", workload="train1", tail=2)
        assert logs["text"].splitlines() == [
            "[train1-master-0] rank 0 line 8",
            "[train1-worker-0] rank 1 line 8",
            "[train1-master-0] rank 0 line 9",
            "[train1-worker-0] rank 1 line 9",
        ]
        logs = await answers.read("logs", workload="train1", rank=1, tail=1)
        assert logs["text"] == "[train1-worker-0] rank 1 line 9"
        many = await answers.read("logs", workload="wide")
        assert (len(many["pods"]), many["podCount"]) == (16, 20)
        assert set(await answers.read("nodes")) == {"nodes", "hasMore"}
        quotas = await answers.read("quotas", project="team-a")
        assert [each["name"] for each in quotas["projects"]] == ["team-a"]
        assert "gpuQuota" in str(quotas["projects"])
        assert len(quotas["departments"]) <= 1

    assert read_token(bob) not in run_client(bob, read_all)


def test_each_tool_that_changes_something_does(bob: CommandLine) -> None:
    body = {
        "name": "by-model",
        "spec": {
            "distributedFramework": "PyTorch",
            "numWorkers": 1,
            "image": "muster/allreduce",
            "compute": {"gpuDevicesRequest": 1},
        },
    }

    async def change(answers: Answers) -> None:
        answer = await answers.read("submit", body=body, dry_run=True, project="team-a")
        assert "PyTorchJob" in answer["manifest"]
        assert "no workload by-model" in await answers.read_error("get", workload="by-model")
        made = await answers.read("submit", body=body, project="team-a")
        assert made["name"] == "by-model"
        assert "Error: " in await answers.read_error("submit", body=body, project="team-a")
        assert (await answers.read("stop", workload=made["workloadId"]))["message"]
        assert (await answers.read("delete", workload="by-model"))["message"]
        answer = await answers.read("get", workload=made["workloadId"])
        assert answer["workload"]["phase"] in ("Deleting", "Stopping", "Stopped")

    assert read_token(bob) not in run_client(bob, change, "--allow-write")


HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("get", {}, "missing"),
    ("get", {"workload": ""}, "not a name"),
    ("get", {"workload": "a,phase==Failed"}, "not a name"),
    ("get", {"workload": "../../me"}, "not a name"),
    ("get", {"workload": "nobody-has-it"}, "There is no workload"),
    ("get", {"workload": "train1", "project": "p,phase==Failed"}, "not a name"),
    ("get", {"workload": ["train1"]}, "is a text"),
    ("get", {"workload": {"a": 1}}, "is a text"),
    ("get", {"workload": "train1\n"}, "one line"),
    ("get", {"workload": "a" * 100_000}, "at most"),
    ("get", {"workload": "train1", "token": "x"}, "no argument"),
    ("list", {"limit": 0}, "between"),
    ("list", {"limit": 10**6}, "between"),
    ("list", {"limit": 10**1000}, "between"),
    ("list", {"limit": True}, "whole number"),
    ("list", {"limit": "5"}, "whole number"),
    ("list", {"limit": 1.5}, "whole number"),
    ("list", {"phase": "x,name==y"}, "one of"),
    ("list", {"project": "a,name==b"}, "not a name"),
    ("list", {"all_projects": "yes"}, "boolean"),
    ("logs", {"workload": "train1", "tail": 10**9}, "between"),
    ("logs", {"workload": "train1", "rank": -1}, "between"),
    ("logs", {"workload": "train1", "rank": 7}, "no such pod"),
    ("logs", {"workload": "train1", "pod": "../x"}, "no such pod"),
    ("logs", {"workload": "waiting"}, "no pods"),
    ("nodes", {"cluster": "a,name==b"}, "not a name"),
    ("quotas", {"project": "a,name==b"}, "not a name"),
    ("quotas", {"project": "nobody-has-it"}, "There is no project"),
    ("submit", {"body": "x"}, "is an object"),
    ("submit", {"body": {}}, "no name"),
    ("submit", {"body": {"name": "x", "spec": [1]}}, "spec"),
    ("submit", {"body": {"name": "x", "spec": {}}, "project": "a/../b"}, "There is no project"),
    ("submit", {"body": {"name": "x" * 70_000}}, "too large"),
    ("delete", {"workload": " "}, "not a name"),
    ("no-such-tool\n", {}, "no such tool"),
]


def test_what_is_hostile_is_refused_in_words(bob: CommandLine) -> None:
    async def try_all(answers: Answers) -> None:
        for name, arguments, words in HOSTILE:
            text = await answers.read_error(name, **arguments)
            assert words in text, (name, arguments, text)
            assert "unexpectedly" not in text, (name, arguments, text)
            assert len(text) < 2000
        assert (await answers.read("list", limit=1))["workloads"]

    written = run_client(bob, try_all, "--allow-write")
    assert read_token(bob) not in written
    assert "Traceback" not in written


@pytest.mark.parametrize("token", ["secret-token", "secret-token\nx", "secret-token é"])
def test_no_answer_repeats_the_token(stranger: CommandLine, token: str) -> None:
    refusal = json.dumps({"message": "No."})
    with serve_answers(lambda *request: Answer(401, refusal)) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": token}

        async def ask(answers: Answers) -> None:
            for name, arguments in (("list", {}), ("get", {"workload": "a"}), ("nodes", {})):
                assert "Error: " in await answers.read_error(name, **arguments)

        assert "secret-token" not in run_client(stranger, ask)
        outcome = stranger("list", code=3)
        assert "secret-token" not in outcome.out + outcome.err


def test_the_newest_lines_of_a_long_log_are_answered_whole(stranger: CommandLine) -> None:
    lines = [f'"step {number}" \\ of a long log' for number in range(3000)]

    def answer(path: str, query: Query, token: str) -> Answer:
        if path.endswith("/logs"):
            return Answer(200, "".join(f"{line}\n" for line in lines))
        if path.endswith("/pods"):
            return Answer(200, json.dumps({"pods": [{"id": "p0", "name": "a-0", "rank": 0}]}))
        workload = {"id": "1", "name": "a", "phase": "Running", "type": "Distributed"}
        return Answer(200, json.dumps({"workloads": [workload]}))

    async def read_logs(answers: Answers) -> None:
        text, is_error = await answers.call("logs", workload="a", tail=1000)
        assert not is_error
        assert len(text) <= LARGEST_ANSWER
        logs = json.loads(text)
        assert "shortened" not in logs
        kept = logs["text"].splitlines()
        assert kept == [f"[a-0] {line}" for line in lines[-len(kept) :]]
        assert len(kept) + logs["earlierLinesLeftOut"] == len(lines)
        assert len(kept) > 800
        assert "data" in logs["note"]

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "a-token"}
        run_client(stranger, read_logs)


def test_quotas_of_a_project_have_its_department_among_however_many(stranger: CommandLine) -> None:
    def answer(path: str, query: Query, token: str) -> Answer:
        name = query.get("filterBy", "").removeprefix("name==")
        if path.endswith("/projects"):
            return Answer(
                200,
                json.dumps({"projects": [{"name": name, "departmentName": "Vision, and more"}]}),
            )
        names = ["audio", "text", "Vision, and more"][: int(query["limit"])]
        return Answer(200, json.dumps({"departments": [{"name": each} for each in names]}))

    async def read_quotas(answers: Answers) -> None:
        quotas = await answers.read("quotas", project="team-v", limit=1)
        assert (quotas["departments"], quotas["hasMore"]) == (
            [{"name": "Vision, and more"}],
            False,
        )
        quotas = await answers.read("quotas", limit=2)
        assert ([each["name"] for each in quotas["departments"]], quotas["hasMore"]) == (
            ["audio", "text"],
            True,
        )

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "a-token"}
        run_client(stranger, read_quotas)


def test_an_error_of_the_server_is_cut(stranger: CommandLine) -> None:
    async def ask(answers: Answers) -> None:
        text = await answers.read_error("list")
        assert text.startswith("Error: No. No. ")
        assert len(text) <= LONGEST_ERROR + 1

    with serve_answers(
        lambda *request: Answer(400, json.dumps({"message": "No. " * 50_000}))
    ) as it:
        stranger.variables = {"MUSTER_SERVER": it.url, "MUSTER_TOKEN": "a-token"}
        run_client(stranger, ask)


class SlowServer:
    """Answers nothing until it may, and counts how many wait at once."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.waiting = self.most_waiting = 0
        self._lock = threading.Lock()

    def answer(self, path: str, query: Query, token: str) -> Answer:
        with self._lock:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
        self.may_answer.wait(MOST_SECONDS)
        with self._lock:
            self.waiting -= 1
        return Answer(200, json.dumps({"workloads": []}))


def write_message(process: "subprocess.Popen[str]", **message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    process.stdin.flush()


def read_answer(process: "subprocess.Popen[str]", number: int) -> Any:
    """Return the answer to the request of this number; those before it are passed over."""
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message
    raise AssertionError("The server has ended.")


def call_list(process: "subprocess.Popen[str]", number: int) -> None:
    parameters = {"name": "list", "arguments": {}}
    write_message(process, id=number, method="tools/call", params=parameters)


def start_raw(person: CommandLine) -> "subprocess.Popen[str]":
    """Start `muster mcp` and shake hands with it."""
    process = subprocess.Popen(
        build_command("mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=person.environment,
    )
    about = {"name": "test", "version": "1"}
    parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    write_message(process, id=0, method="initialize", params=parameters)
    assert "result" in read_answer(process, 0)
    write_message(process, method="notifications/initialized")
    return process


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        ("{", -32700, None),
        ("not JSON", -32700, None),
        ("[" * 100_000, -32700, None),
        ("[]", -32600, None),
        ("5", -32600, None),
        ('{"jsonrpc":"2.0","id":5,"method":7}', -32600, 5),
        ('{"id":"a","method":"ping"}', -32600, "a"),
        ('{"jsonrpc":"2.0","id":true,"method":7}', -32600, None),
        ('{"jsonrpc":"2.0","id":6,"method":"ping","params":[1]}', -32600, 6),
        ('{"jsonrpc":"2.0","id":9,"result":5}', -32600, None),
        ('{"jsonrpc":"2.0","id":9,"error":"x"}', -32600, None),
        ('{"jsonrpc":"2.0","id":9}', -32600, 9),
    ],
)
def test_a_line_that_is_no_message_is_refused(
    stranger: CommandLine, line: str, code: int, number: int | str | None
) -> None:
    stranger.variables = {"MUSTER_SERVER": "http://127.0.0.1:1", "MUSTER_TOKEN": "a-token"}
    with start_raw(stranger) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        refusal = json.loads(process.stdout.readline())
        assert refusal["jsonrpc"] == "2.0"
        assert "id" in refusal
        assert refusal["id"] == number
        assert refusal["error"]["code"] == code
        assert "Send " in refusal["error"]["message"]
        write_message(process, id=7, method="ping")
        assert json.loads(process.stdout.readline())["id"] == 7
        process.stdin.close()
    assert process.returncode == 0


def test_blank_lines_are_passed_over(stranger: CommandLine) -> None:
    stranger.variables = {"MUSTER_SERVER": "http://127.0.0.1:1", "MUSTER_TOKEN": "a-token"}
    with start_raw(stranger) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n \t\r\n\n")
        write_message(process, id=7, method="ping")
        assert json.loads(process.stdout.readline())["id"] == 7
        process.stdin.close()
    assert process.returncode == 0


def test_calls_that_were_cancelled_do_not_pile_up_at_the_server(stranger: CommandLine) -> None:
    slow = SlowServer()
    with serve_answers(slow.answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "a-token"}
        with start_raw(stranger) as process:
            for number in range(1, 5 * MOST_CALLS):
                call_list(process, number)
                cancelled = {"requestId": number}
                write_message(process, method="notifications/cancelled", params=cancelled)
                write_message(process, id=1000 + number, method="ping")
                read_answer(process, 1000 + number)
            eventually(lambda: slow.waiting >= MOST_CALLS)
            slow.may_answer.set()
            call_list(process, 999)
            assert "result" in read_answer(process, 999)
            assert process.stdin is not None
            process.stdin.close()
    assert slow.most_waiting == MOST_CALLS


def test_it_ends_with_its_input_while_a_call_waits(stranger: CommandLine) -> None:
    slow = SlowServer()
    with serve_answers(slow.answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "a-token"}
        try:
            with start_raw(stranger) as process:
                call_list(process, 1)
                eventually(lambda: slow.waiting == 1)
                assert process.stdin is not None
                process.stdin.close()
                # Sooner than the call itself would give up.
                eventually(lambda: process.poll() is not None, TIMEOUT_SECONDS / 2)
                assert process.returncode == 0
        finally:
            slow.may_answer.set()


def test_who_is_not_signed_in_is_told_so(stranger: CommandLine, console: Console) -> None:
    assert "No server is known" in stranger("mcp", code=3).err
    stranger.variables = {"MUSTER_SERVER": console.web.url}

    async def ask(answers: Answers) -> None:
        assert "muster login" in await answers.read_error("list")
        # Signing in while it runs is enough.
        stranger.sign_in(console.web.url)

    run_client(stranger, ask)


def test_calls_at_once_are_all_answered(bob: CommandLine) -> None:
    async def ask(answers: Answers) -> None:
        found: list[str] = []

        async def get(name: str) -> None:
            found.append((await answers.read("get", workload=name))["workload"]["name"])

        async with anyio.create_task_group() as group:
            for name in ("train1", "waiting", "failed", "old") * 5:
                group.start_soon(get, name)
        assert sorted(found) == sorted(("train1", "waiting", "failed", "old") * 5)

    run_client(bob, ask)


def test_it_ends_with_its_input_and_with_ctrl_c(bob: CommandLine) -> None:
    environment = bob.environment
    ended = subprocess.run(
        build_command("mcp"),
        input="no json\n{}\n[1]\n",
        capture_output=True,
        text=True,
        env=environment,
        timeout=180,
    )
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr
    with subprocess.Popen(
        build_interruptible_command("mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(2)
        eventually(lambda: process.poll() is not None)
        assert process.returncode == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_without_the_package_it_says_what_to_install(bob: CommandLine, tmp_path: Path) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    path = os.pathsep.join([str(lacking), bob.environment["PYTHONPATH"]])
    bob.variables = {"PYTHONPATH": path}
    error = bob("mcp", code=1).err
    assert "needs the package mcp" in error
    assert "muster-cli[mcp]" in error
    assert "--allow-write" in bob("mcp", "--help").out


def test_other_commands_load_nothing_of_it(bob: CommandLine) -> None:
    program = (
        "import sys; sys.argv = ['muster', 'list'];"
        "from muster_cli.commands.root import root;"
        "from muster_cli.program import run_command; assert run_command(root, 'muster') == 0;"
        "print(sorted(sys.modules.keys() & {'mcp', 'anyio', 'pydantic', 'asyncio'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=bob.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    assert done.stdout.splitlines()[-1] == "[]"
