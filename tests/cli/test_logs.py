"""Logs by the command line: merged, narrowed, and followed through whatever breaks."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from muster_cli.actions.log_lines import LogLine, ResumePoint, parse_line
from muster_cli.actions.logs import choose_pods
from muster_cli.actions.moments import NANOSECONDS
from muster_cli.errors import NotFound
from tests.cli.running import ROWS, CommandLine, Console
from tests.console_server import WebServer
from tests.installation import eventually


def test_all_ranks_are_merged_by_time(bob: CommandLine) -> None:
    lines = bob("logs", "train1").out.splitlines()
    assert lines[:3] == [
        "[train1-master-0] rank 0 line 0",
        "[train1-worker-0] rank 1 line 0",
        "[train1-master-0] rank 0 line 1",
    ]
    assert len(lines) == 20


NARROWED = [
    (("--rank", "1", "--tail", "2"), ["rank 1 line 8", "rank 1 line 9"]),
    (("--pod", "train1-master-0", "--since", "2026-01-01T00:00:09Z"), ["rank 0 line 9"]),
    (("--rank", "0", "--tail", "1", "-i", "1"), ["rank 0 line 9"]),
    (
        ("--rank", "0", "--tail", "1", "--timestamps"),
        ["2026-01-01T00:00:09.000000000Z rank 0 line 9"],
    ),
]


@pytest.mark.parametrize(("options", "lines"), NARROWED)
def test_logs_are_narrowed(bob: CommandLine, options: tuple[str, ...], lines: list[str]) -> None:
    assert bob("logs", "train1", *options).out.splitlines() == lines


@pytest.mark.parametrize("options", [(), ("-f",), ("--pod", "replaced-worker-0"), ("--rank", "1")])
def test_a_pod_whose_name_came_back_has_each_line_once(
    bob: CommandLine, lost_pod_workload: str, options: tuple[str, ...]
) -> None:
    lines = [
        each.partition("] ") for each in bob("logs", lost_pod_workload, *options).out.splitlines()
    ]
    texts = [text or whole for whole, _, text in lines]
    wanted = [f"{uid} {n}" for uid in ("lost", "new") for n in range(3)]
    # Those of several pods that are followed are not sorted by time.
    assert (sorted(texts) if "-f" in options else texts) == wanted


def test_more_pods_than_are_streamed_are_read_in_turn(bob: CommandLine) -> None:
    lines = [f"[wide-worker-{rank}] {text}" for text in ("first", "second") for rank in range(20)]
    kept = bob("logs", "wide")
    assert kept.out.splitlines() == lines
    assert "20 pods" in kept.err
    assert sorted(bob("logs", "wide", "-f").out.splitlines()) == sorted(lines)


def test_a_pod_without_a_rank_is_named_without_one() -> None:
    pods: list[dict[str, Any]] = [
        {"name": "a-worker-0", "rank": 1},
        {"name": "a-data-0-x", "rank": None},
    ]
    with pytest.raises(NotFound) as refusal:
        choose_pods(pods, ranks=[7])
    assert refusal.value.hint == "It has a-worker-0 (rank 1), a-data-0-x."


def test_what_has_no_logs_is_told_in_words(bob: CommandLine) -> None:
    assert "no pods" in bob("logs", "waiting", code=5).err
    assert "rank 0" in bob("logs", "train1", "--rank", "7", code=5).err
    bob("logs", "train1", "--rank", "0", "--previous", code=5)
    bob("logs", "train1", "-f", "--previous", code=2)


@pytest.mark.parametrize("starts_within", [False, True])
def test_a_resumed_log_has_each_line_once(starts_within: bool) -> None:
    stamps = [(1000 + n // 7) * NANOSECONDS + n for n in range(40)]
    for broken_at in range(1, 40):
        point = ResumePoint(starts_within=starts_within)
        # A tail begins anywhere in a second.
        first = 3 if starts_within else 0
        taken = stamps[first : first + broken_at]
        for each in taken:
            point.add(each)
        asked_again = [each for each in stamps if each // NANOSECONDS >= point.second]
        is_new = point.build_filter()
        assert taken + [each for each in asked_again if is_new(each)] == stamps[first:]


def test_a_line_is_split_into_moment_and_text() -> None:
    stamp = b"2026-01-01T00:00:00.000000001Z"
    moment = 1_767_225_600 * NANOSECONDS + 1
    assert parse_line("p", stamp + b" a b") == LogLine("p", stamp.decode(), b"a b", moment)
    assert parse_line("p", b"no stamp here") == LogLine("p", "", b"no stamp here")
    assert parse_line("p", stamp + b" ") == LogLine("p", stamp.decode(), b"", moment)


class Writer:
    """Writes lines into a pod's log as capturing does, until it is told to end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_over = threading.Event()
        self.count = 10
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._is_over.wait(0.01):
            with self._path.open("a") as file:
                for _ in range(5):
                    stamp = f"2026-01-01T00:01:{self.count // 100 % 60:02}.{self.count:09}Z"
                    file.write(f"{stamp} rank 0 line {self.count}\n")
                    self.count += 1


@pytest.mark.timeout(900)
def test_a_follower_loses_and_doubles_nothing_over_restarts_of_the_server(
    tmp_path: Path, stranger: CommandLine
) -> None:
    with WebServer(tmp_path / "web") as web:
        ids = json.loads(web.python(ROWS))
        path, key = ids["train1-master-0"]
        web.python(
            f"from workloads.models import Log; Log.objects.filter(pk={key})"
            ".update(state='capturing')"
        )
        port, bob = web.url.rpartition(":")[2], stranger.sign_in(web.url)
        out = tmp_path / "out"

        def count_lines() -> int:
            return out.read_text().count("\n")

        def interrupt(writer: Writer) -> None:
            wanted = count_lines() + 20
            eventually(lambda: count_lines() > wanted)
            web.kill()
            # Lines go on to be written while nobody answers.
            missed = writer.count + 20
            eventually(lambda: writer.count > missed)
            web.start(arguments=("--no-proxy-headers", "--port", port))

        with (
            out.open("w") as file,
            bob.start("logs", "train1", "-f", "--rank", "0", stdout=file) as followed,
        ):
            with Writer(Path(path)) as writer:
                for _ in range(3):
                    interrupt(writer)
                wanted = writer.count
                eventually(lambda: count_lines() >= wanted)
            web.python(
                f"from workloads.models import Log, Workload; Log.objects.filter(pk={key})"
                f".update(state='complete'); Workload.objects.filter(pk='{ids['train1']}')"
                ".update(status='Completed')"
            )
            assert followed.wait(120) == 0
    prefix = "[train1-master-0] rank 0 line "
    assert out.read_text().splitlines() == [f"{prefix}{n}" for n in range(writer.count)]


def test_a_pod_that_is_not_there_yet_is_waited_for(bob: CommandLine, console: Console) -> None:
    with bob.start("logs", "late", "-f", "--rank", "0") as followed:
        assert followed.stdout is not None
        console.web.python(
            LATE_POD.format(workload=console.ids["late"], log=console.ids["train1-master-0"][1])
        )
        assert followed.stdout.readline() == "[late-master-0] rank 0 line 0\n"
        followed.kill()
        followed.communicate()


LATE_POD = """
from workloads.models import Log, Pod
like = Log.objects.get(pk={log})
for rank in (1, 0):
    role = "worker" if rank else "master"
    pod = Pod.objects.create(workload_id="{workload}", attempt=1, uid=f"late{{rank}}", rank=rank,
                             name=f"late-{{role}}-0", role=role, phase="Running",
                             data={{"spec": {{"containers": [{{"name": "pytorch"}}]}}}})
Log.objects.create(pod=pod, container="pytorch", run=0, state="complete", path=like.path,
                   size=like.size)
"""


def test_ctrl_c_ends_a_follower_without_a_word(bob: CommandLine, console: Console) -> None:
    with bob.start("logs", "train1", "-f", "--tail", "1") as followed:
        assert followed.stdout is not None
        assert followed.stderr is not None
        followed.stdout.readline()
        followed.send_signal(signal.SIGINT)
        assert followed.wait(60) == 130
        assert "Traceback" not in followed.stderr.read()
