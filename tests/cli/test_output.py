"""Tables at every width, formats, and text that would take a terminal over."""

import contextlib
import csv
import io
import json
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path

import pytest

from muster_cli.actions import moments
from muster_cli.errors import UsageProblem
from muster_cli.output.formats import OutputFormat, dump_yaml, write_items
from muster_cli.output.tables import (
    TableColumn,
    count_columns,
    fit_widths,
    format_value,
    render_table,
)
from muster_cli.output.terminal import (
    Terminal,
    clean_log_line,
    clean_text,
    cut_text,
    measure_text,
)
from muster_cli.output.workload_columns import HOLDER_COLUMNS, read_status
from muster_cli.output.yaml_format import load_yaml
from tests.cli.running import CommandLine, build_command, build_interruptible_command

ROWS = [
    ["train1", "Running", "x" * 200],
    ["日本語のなまえ", "Pending", "No node has room."],
    ["a", "Failed", ""],
]
COLUMNS = [
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("NOTE", lambda item: item["note"], is_wide=True),
]


@pytest.mark.parametrize("width", [20, 21, 40, 79, 80, 120, 300])
def test_a_table_is_never_wider_than_the_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = render_table(["NAME", "STATUS", "MESSAGE"], ROWS, Terminal(io.StringIO()))
    assert max(map(measure_text, lines)) <= width
    assert len(lines) == 4
    if width >= 40:
        assert "Pending" in lines[2]


def test_a_table_in_a_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = render_table(["NAME", "STATUS", "MESSAGE"], ROWS, Terminal(io.StringIO()))
    assert "x" * 200 in lines[1]


def test_who_holds_gpus_is_shown_with_how_they_are_used() -> None:
    cells = {column.title: column.read for column in HOLDER_COLUMNS}
    item = {"gpuUse": {"percent": 41.4, "at": "2026-11-27T12:00:00Z"}, "idleSince": None}
    assert (cells["GPU USE"](item), cells["IDLE FOR"](item)) == ("41%", "")
    idle = {"gpuUse": {"percent": 0.0}, "idleSince": "2026-11-27T12:00:00Z"}
    assert cells["GPU USE"](idle) == "0%"
    assert cells["IDLE FOR"](idle)
    # A server that knows nothing of it.
    assert (cells["GPU USE"]({}), cells["IDLE FOR"]({})) == ("", "")


def test_the_widest_columns_give_way_first() -> None:
    assert fit_widths([10, 100, 5], 50, [9, 9, 5]) == [10, 35, 5]
    assert fit_widths([40, 40, 5], 45, [9, 9, 5]) == [20, 20, 5]
    assert fit_widths([40, 40, 5], 65, [30, 9, 5]) == [30, 30, 5]
    assert fit_widths([40, 40, 5], 55, [30, 9, 5]) == [30, 20, 5]
    assert fit_widths([10, 10], 30, [9, 9]) == [10, 10]
    assert fit_widths([10, 10], 2, [9, 9]) == [9, 9]
    assert count_columns([9, 9, 3], 24) == 2
    assert count_columns([50], 20) == 1


def test_rows_can_be_told_apart_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"distributed-training-{each}" for each in ("pytorch", "tf")]
    titles = ["NAME", "FRAMEWORK", "STATUS", "PODS", "GPUS", "AGE", "PROJECT", "BY", "MESSAGE"]
    rows = [
        [each, "PyTorch", "Failed", "0/2", "0/2", "10m46s", "team-a", "", "x"] for each in names
    ]
    lines = render_table(titles, rows, Terminal(io.StringIO()))
    assert [each.split()[0] for each in lines[1:]] == names
    assert max(map(measure_text, lines)) <= 80


def test_what_is_not_known_is_not_shown() -> None:
    assert format_value({"request": None, "limit": None}) == ""
    assert format_value({"request": 0.5, "limit": None}) == "request=0.5"


def test_what_prepares_data_is_called_as_on_pages() -> None:
    workload = {"phase": "Initializing", "dataDelivery": {"percent": 61}}
    assert read_status(workload) == "Preparing data"
    assert read_status(workload | {"dataDelivery": None}) == "Initializing"


def test_text_is_cut_by_the_columns_that_it_takes() -> None:
    assert cut_text("abcdef", 4) == "abc…"
    assert cut_text("日本語", 5) == "日本…"
    assert measure_text("e\u0301") == 1


HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x1b[31mred\x1b[0m\x9b5n\u202ed\x1bc"


def test_what_a_pod_wrote_does_not_take_the_terminal_over() -> None:
    assert clean_log_line(HOSTILE) == "abc\x1b[31mred\x1b[0m5nd\x1b[0m"
    assert "\x1b" not in clean_text(HOSTILE)
    assert clean_text("a\nb\tc") == "a b c"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (OutputFormat.NAME, "a\n"),
        (OutputFormat.TABLE, "NAME\na\n"),
        (OutputFormat.WIDE, "NAME  NOTE\na     =1+1\n"),
        (OutputFormat.CSV, "NAME,NOTE\na,'=1+1\n"),
        (OutputFormat.YAML, "- name: a\n  note: =1+1\n"),
        (OutputFormat.JSON, '[\n  {\n    "name": "a",\n    "note": "=1+1"\n  }\n]\n'),
    ],
)
def test_items_are_written_in_the_format_that_is_asked_for(
    output: OutputFormat, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    write_items([{"name": "a", "note": "=1+1"}], COLUMNS, output, Terminal(stream))
    assert stream.getvalue() == text


def test_yaml_has_texts_of_several_lines_as_blocks() -> None:
    assert dump_yaml({"a": "x\ny\n"}) == "a: |\n  x\n  y\n"


@pytest.mark.parametrize("text", ["1e3", "8e12345", "0o17", "+.5e3", "12", ".5", "1_000", "1:30"])
def test_a_text_that_another_program_would_read_as_a_number_is_quoted(text: str) -> None:
    """`yq` and `kubectl` read YAML 1.2, in which 1e3 is a thousand."""
    assert dump_yaml({"sha": text}) == f"sha: '{text}'\n"


@pytest.mark.parametrize("text", ["a\x85b", "a\u2028b\nc", "a\u2029", "\u202eabc\n", "x\u2066y"])
def test_yaml_keeps_every_character_and_turns_no_line_around(text: str) -> None:
    written = dump_yaml({"note": text, text: 1})
    assert load_yaml(written, 1 << 20) == {"note": text, text: 1}
    assert not set(written) & set("\x85\u2028\u2029\u202e\u2066")


def test_dates_in_yaml_are_texts_and_objects_are_merged() -> None:
    text = "a: 2026-01-31\nb: [{c: &c {<<: &d {e: 1, f: 2}, e: 3}}]\ng: {<<: *c, f: 4}\n"
    inner = {"e": 3, "f": 2}
    assert load_yaml(text, 1 << 20) == {
        "a": "2026-01-31",
        "b": [{"c": inner}],
        "g": inner | {"f": 4},
    }


@pytest.mark.parametrize("cell", ["-2+3+cmd|' /C calc'!D2", "+1+1", "-1-A1", " =1", "@a", "-a"])
def test_what_begins_as_a_number_can_be_a_formula(cell: str) -> None:
    assert _write_csv(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-5", "+3", "-0.25", "-1e-7", "a-b", "1+1"])
def test_a_number_stays_one_in_a_csv_file(cell: str) -> None:
    assert _write_csv(cell) == cell


def _write_csv(cell: str) -> str:
    stream = io.StringIO()
    write_items([{"name": "a", "note": cell}], COLUMNS, OutputFormat.CSV, Terminal(stream))
    [_, row] = csv.reader(io.StringIO(stream.getvalue()))
    return row[1]


@pytest.mark.parametrize("text", ["²", "٣s", "-1", "1e3", "s", ""])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        moments.parse_duration(text)


def test_nothing_is_longer_ago_than_1970() -> None:
    assert moments.format_ago(moments.parse_duration("999999999w"), 2e9) == "1970-01-01T00:00:00Z"


def test_durations_are_read_and_written() -> None:
    assert [moments.parse_duration(each) for each in ("90", "2h30m", "7d")] == [90, 9000, 604800]
    assert [moments.describe_duration(each) for each in (0, 61, 3600, 90061)] == [
        "0s",
        "1m1s",
        "1h",
        "1d1h",
    ]
    for text in ("", "7x", "1" * 40, "-1d"):
        with pytest.raises(UsageProblem):
            moments.parse_duration(text)


def run_in_terminal(who: CommandLine, *arguments: str, **variables: str) -> str:
    """What a command writes to a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    subprocess.run(
        build_command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        cwd=who.home,
        env=who.environment | {"COLUMNS": "60", "TERM": "xterm"} | variables,
        timeout=360,
        check=True,
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 1 << 16):
            written += chunk
    os.close(ours)
    return written.decode()


def test_colours_are_for_terminals_that_want_them(bob: CommandLine) -> None:
    assert "\x1b[32mRunning" in run_in_terminal(bob, "list")
    assert "\x1b" not in run_in_terminal(bob, "--no-color", "list")
    assert "\x1b" not in run_in_terminal(bob, "list", NO_COLOR="1")
    assert "\x1b" not in bob("list").out
    plain = run_in_terminal(bob, "list", "-o", "wide", NO_COLOR="1").splitlines()
    assert max(map(measure_text, plain)) <= 60


@pytest.mark.parametrize("reader", ["true", "head -1"])
@pytest.mark.parametrize("command", ["logs train1 -f", "list --watch", "events train1", "--help"])
def test_an_answer_that_nobody_reads_to_its_end_is_no_failure(
    bob: CommandLine, command: str, reader: str
) -> None:
    text = " ".join(build_command(*command.split()))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {text} | {reader}"],
        env=bob.environment,
        cwd=bob.home,
        capture_output=True,
        text=True,
        timeout=360,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == (reader == "head -1")


def test_what_fails_unexpectedly_is_told_without_a_traceback(
    bob: CommandLine, tmp_path: Path
) -> None:
    (bob.folder / "config.json").write_text(json.dumps([]))
    failed = bob("list", code=1)
    assert "not a file of muster's" in failed.err
    assert "Traceback" not in failed.err


@pytest.mark.parametrize("command", [("list", "--watch"), ("logs", "train1", "-f")])
def test_ctrl_c_leaves_the_terminal_as_it_was(bob: CommandLine, command: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        build_interruptible_command(*command),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=bob.home,
        env=bob.environment | {"COLUMNS": "80", "TERM": "xterm"},
    )
    written = b""
    while b"train1" not in written:
        written += os.read(ours, 1 << 16)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 1 << 16):
            written += chunk
    os.close(ours)
    # What was painted is reset, and neither the cursor nor another screen was switched.
    assert written.count(b"\x1b[0m") >= written.count(b"\x1b[1m")
    assert b"\x1b[?" not in written
    assert b"Traceback" not in written
