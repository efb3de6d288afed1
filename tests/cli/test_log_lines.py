"""Following one log through proxies that fail, ended tokens, time zones and restarts."""

import heapq
import json
from collections.abc import Callable

import pytest

from muster_cli.actions import moments
from muster_cli.actions.identity import DeviceCode, wait_for_token
from muster_cli.actions.log_lines import (
    ContainerFollower,
    LogRequest,
    RunFollower,
    parse_line,
)
from muster_cli.credentials import Secret
from muster_cli.errors import Refused
from tests.cli.log_server import Answer, Query, ScriptedServer, serve_answers
from tests.cli.running import CommandLine


@pytest.fixture(autouse=True)
def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass between two tries."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


REQUEST = LogRequest("w", "p", "p")
SIGNED_IN = {"token": Secret("t")}
LINES = "".join(f"2026-01-01T00:00:0{n}Z line {n}\n" for n in range(3))


def follow(
    server: ScriptedServer, request: LogRequest = REQUEST, patience: float = 60.0
) -> list[str]:
    """Return the lines of a pod that has ended."""
    session = server.open_session(**SIGNED_IN)
    follower = ContainerFollower(session, request, lambda: True, patience)
    return [line.text.decode() for line in follower.read_all()]


def answer_kept(text: str, query: Query, run: int = 0) -> Answer:
    """Answer as the server does: from a second on, the last lines, nothing of another run."""
    if query.get("run", str(run)) != str(run):
        return Answer(404)
    lines = text.splitlines(keepends=True)
    since = query.get("sinceTime")
    if since:
        second = (moments.parse_nanoseconds(since) or 0) // 10**9 * 10**9
        moment_of = [parse_line("", line.encode()).moment for line in lines]
        # What has no moment belongs to the line before it.
        first = next((n for n, moment in enumerate(moment_of) if moment >= second), len(lines))
        lines = lines[first:]
    if "tailLines" in query:
        lines = lines[-int(query["tailLines"]) :] if query["tailLines"] != "0" else []
    return Answer(200, "".join(lines), run)


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_without_a_server_is_waited_for(status: int) -> None:
    failures = iter([status, 200, status, status])

    def answer(path: str, query: Query, token: str) -> Answer:
        failed = next(failures, 200)
        return answer_kept(LINES, query) if failed == 200 else Answer(failed, "bad gateway")

    with serve_answers(answer) as server:
        assert follow(server) == ["line 0", "line 1", "line 2"]
    with serve_answers(lambda *request: Answer(status)) as server, pytest.raises(Refused):
        follow(server, patience=0.1)


def test_a_code_is_asked_for_through_a_restart() -> None:
    answers = iter([Answer(503), Answer(200, '{"accessToken": "good", "expiresIn": 60}')])
    with serve_answers(lambda *request: next(answers)) as server:
        code = DeviceCode("A", "", Secret("s"), 60, 0.01)
        assert wait_for_token(server.open_session(), code).token.reveal() == "good"


def test_a_program_goes_on_with_a_new_token(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    made: list[str] = []

    def answer(path: str, query: Query, token: str) -> Answer:
        if path.endswith("/token"):
            made.append(f"t{len(made)}")
            return Answer(200, f'{{"accessToken": "{made[-1]}", "expiresIn": 3600}}')
        if token != "Bearer t1":
            return Answer(401, '{"message": "The token has ended."}')
        return answer_kept(LINES, query)

    with serve_answers(answer) as server:
        session = server.open_session(client_id="ci", client_secret=Secret("s"))
        follower = RunFollower(session, REQUEST, None)
        assert len(list(follower.read_lines(follow=True))) == 3
        assert made == ["t0", "t1"]
        person = server.open_session(token=Secret("t"))
        with pytest.raises(Refused):
            list(RunFollower(person, REQUEST, None).read_lines(follow=True))


STAMPS = [
    ("2026-01-01T14:00:00.7+02:00", "2026-01-01T12:00:00.700000000Z"),
    ("2026-01-01T12:00:00z", "2026-01-01T12:00:00Z"),
    ("2025-12-31T23:30:00.000000001-05:30", "2026-01-01T05:00:00.000000001Z"),
]


@pytest.mark.parametrize(("left", "right"), STAMPS)
def test_one_moment_is_written_in_many_ways(left: str, right: str) -> None:
    assert moments.parse_nanoseconds(left) == moments.parse_nanoseconds(right) is not None


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "٢026-01-01T00:00:00Z"],
)
def test_what_is_no_moment_has_none(text: str) -> None:
    assert moments.parse_nanoseconds(text) is None


def test_moments_are_compared_as_numbers() -> None:
    later, earlier = b"2026-01-01T00:00:00.10001Z a", b"2026-01-01T00:00:00.1Z b"
    in_a_zone = b"2026-01-01T02:00:00.05+02:00 c"
    lines = [parse_line("p", each) for each in (later, earlier, in_a_zone)]
    merged = heapq.merge(*([each] for each in lines), key=lambda it: it.moment)
    assert [each.text for each in merged] == [b"c", b"b", b"a"]


ZONED = "".join(f"2026-01-01T02:00:0{n // 4}.{n % 4}+02:00 line {n}\n" for n in range(12))


@pytest.mark.parametrize(
    "request_changes", [{}, {"tail": 7}, {"since": "2026-01-01T00:00:00.5Z"}, {"tail": 0}]
)
@pytest.mark.parametrize("has_stamps", [True, False])
def test_a_log_that_grows_is_read_once_at_every_break(
    request_changes: dict[str, int], has_stamps: bool
) -> None:
    """Every answer ends after some more bytes: also in lines, and before their ends."""
    text = ZONED
    if not has_stamps:
        # A line that was wrapped has no stamp of its own.
        text = "".join(
            each if n % 3 else each.partition(" ")[2]
            for n, each in enumerate(ZONED.splitlines(keepends=True), 1)
        )
    for start in (len(text) // 2, len(text) // 2 + 9, len(text) // 2 + 36):
        sizes = iter(range(start, len(text), 11))

        def answer(path: str, query: Query, token: str) -> Answer:
            size = next(sizes, len(text))  # noqa: B023
            return answer_kept(text[:size], query)

        with serve_answers(answer) as server:
            session = server.open_session(**SIGNED_IN)
            request = LogRequest("w", "p", "p", **request_changes)  # type: ignore[arg-type]
            is_whole: Callable[[], bool] = lambda: next(sizes, None) is None  # noqa: B023, E731
            follower = ContainerFollower(session, request, is_whole, 60.0)
            taken = [line.text.decode() for line in follower.read_all()]
        every = [f"line {n}" for n in range(12)]
        assert taken == every[-len(taken) :], (start, request_changes)
        assert len(taken) >= (2 if "tail" in request_changes else 12)


def test_a_torn_last_line_is_taken_when_the_pod_has_ended() -> None:
    with serve_answers(lambda path, query, token: answer_kept(LINES[:-2], query)) as server:
        assert follow(server) == ["line 0", "line 1", "line "]


def test_runs_without_a_log_hide_none_after_them() -> None:
    runs = {0: LINES, 3: LINES.replace("line", "again"), 4: "2026-01-01T00:01:00Z last\n"}
    refusals = iter([200, 503, 429, 200, 502])

    def answer(path: str, query: Query, token: str) -> Answer:
        if query.get("tailLines") == "0" and (status := next(refusals, 200)) != 200:
            return Answer(status)
        run = int(query.get("run", 4 if query.get("tailLines") == "0" else 0))
        return answer_kept(runs[run], query, run) if run in runs else Answer(404)

    with serve_answers(answer) as server:
        assert follow(server) == [
            *(f"line {n}" for n in range(3)),
            *(f"again {n}" for n in range(3)),
            "last",
        ]


def test_a_tail_leaves_nothing_out_of_a_pod_that_comes_later(stranger: CommandLine) -> None:
    lists: list[str] = []

    def answer(path: str, query: Query, token: str) -> Answer:
        if path.endswith("/pods"):
            # The command lists them, and then its follower, which knows one pod at first.
            lists.append(path)
            names = ["early"] if len(lists) < 3 else ["early", "late"]
            pods = [{"id": n, "name": n, "rank": 0, "completedAt": "x"} for n in names]
            return Answer(200, json.dumps({"pods": pods}))
        if "/pods/" in path:
            return answer_kept(LINES, query)
        phase = "Running" if len(lists) < 3 else "Completed"
        return Answer(200, json.dumps({"id": WORKLOAD, "name": "w", "phase": phase}))

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        lines = stranger("logs", WORKLOAD, "-f", "--tail", "1").out.splitlines()
    assert [each for each in lines if "early" in each] == ["[early] line 2"]
    late = [f"[late] line {number}" for number in range(3)]
    assert [each for each in lines if "late" in each] == late


WORKLOAD = "00000000-0000-4000-8000-000000000000"
