"""The addresses of logs: windows, searches, streams and downloads, and that what a program wrote is
text in all of them.
"""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.cast import Cast
from tests.workloads import pods
from tests.workloads.log_rows import HOSTILE, START, a_log, number_lines, texts, window
from workloads import logbook
from workloads.logbook import plain_text, stamps
from workloads.models import Log, Workload
from workloads.views.logs import build_line_link


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return pods.a_workload(cast.team_a)


@pytest.fixture
def bob(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.bob)
    return client


def test_it_opens_at_the_end_and_goes_up_to_the_start(bob: Client, workload: Workload) -> None:
    log = a_log(workload, number_lines(1234))
    head, items = window(bob, workload, log=log.pk)
    found = texts(items)
    assert (len(found), head["at_end"], head["at_start"]) == (500, True, False)
    while not head["at_start"]:
        head, items = window(bob, workload, log=log.pk, before=head["start"])
        found = texts(items) + found
    assert found == [f"line {number}" for number in range(1234)]


@pytest.mark.parametrize(
    ("state", "missing"),
    [
        (Log.State.COMPLETE, "The cluster was removed. Dropped. Full."),
        (Log.State.CAPTURING, "Dropped. Full."),
    ],
)
def test_a_download_says_first_what_was_not_captured(
    workload: Workload, state: str, missing: str
) -> None:
    gaps = [{"at": "", "cause": cause, "offset": 0} for cause in ("Dropped.", "Dropped.", "Full.")]
    log = a_log(workload, [b"text"], state=state, note="The cluster was removed.", gaps=gaps)
    text = b"".join(plain_text.read_chunks(log, timestamps=False)).decode()
    assert text == f"[Muster: {missing}]\ntext\n"


def test_all_pods_are_merged_by_time(bob: Client, workload: Workload) -> None:
    for rank in range(3):
        a_log(workload, [b"%d" % number for number in range(rank, 30, 3)], rank=rank, step=3)
    head, items = window(bob, workload, attempt=1)
    assert texts(items) == [str(number) for number in range(30)]
    assert sorted(who["rank"] for who in head["logs"].values()) == [0, 1, 2]


def test_what_a_program_wrote_is_text(bob: Client, workload: Workload) -> None:
    answer = bob.get(
        reverse("log-window", args=[workload.pk]), {"log": a_log(workload, HOSTILE).pk}
    )
    assert answer["Content-Type"].startswith("application/jsonl")
    assert answer["X-Content-Type-Options"] == "nosniff"
    _, *items = [json.loads(line) for line in answer.content.splitlines()]
    assert texts(items)[:5] == [
        "<script>alert(1)</script>",
        "red and plain",
        "nul ␀ bell ␇",
        "\ufffd\ufffd bad",
        "rtl \u202e \U0001f600",
    ]
    assert items[1]["s"] == [[0, 3, "ansi-fg-1"]]
    assert texts(items)[6] == "progress␍done"


def test_a_long_line_is_shown_in_part(bob: Client, workload: Workload) -> None:
    _, items = window(bob, workload, log=a_log(workload, [b"x" * 100_000, b"after"]).pk)
    assert (len(items[0]["x"]), items[0]["cut"]) == (16384, 100_000 - 16384)
    assert items[1]["x"] == "after"


@pytest.mark.parametrize("where", ["offset", "time", "line"])
def test_a_link_to_a_line_shows_it_among_its_neighbours(
    bob: Client, workload: Workload, where: str
) -> None:
    log = a_log(workload, number_lines(3000))
    data = logbook.read_tail(log, 1 << 20)
    line = data.splitlines()[1500]
    at = {
        "offset": data.index(line),
        "time": line.split()[0].decode(),
        "line": f"{log.pk}.{data.index(line)}",
    }[where]
    head, items = window(bob, workload, log=log.pk, at=at)
    assert head["target"] == f"{log.pk}.{data.index(line)}"
    assert "line 1499" in texts(items)
    assert build_line_link(log, line).endswith(
        f"/logs?log={log.pk}&at={line.split()[0].decode().replace(':', '%3A')}"
    )


def test_the_last_lines_and_the_last_minutes_are_a_floor(bob: Client, workload: Workload) -> None:
    log = a_log(workload, number_lines(3000))
    head, items = window(bob, workload, log=log.pk, tail=700)
    above, more = window(bob, workload, log=log.pk, before=head["start"], floor=head["floor"])
    assert texts(more)[0] == "line 2300"
    assert (above["at_start"], len(items) + len(more)) == (True, 700)
    past = int((timezone.now().timestamp()) - START / stamps.SECOND) - 3600
    assert texts(window(bob, workload, log=log.pk, since=max(0, past))[1]) == [] or past < 0


def test_a_gap_stands_where_something_is_missing(bob: Client, workload: Workload) -> None:
    log = a_log(workload, number_lines(3))
    line = log.size // 3
    Log.objects.filter(pk=log.pk).update(
        gaps=[
            {"at": "", "cause": "dropped", "offset": line},
            {"at": "", "cause": "cut", "offset": log.size},
        ]
    )
    _, items = window(bob, workload, log=log.pk)
    assert [item.get("x") or item.get("gap") for item in items] == [
        "line 0",
        "dropped",
        "line 1",
        "line 2",
        "cut",
    ]


def test_a_removed_log_says_why(bob: Client, workload: Workload) -> None:
    log = a_log(workload, number_lines(3))
    Log.objects.filter(pk=log.pk).update(state=Log.State.REMOVED, note="It was too old.")
    head, items = window(bob, workload, log=log.pk)
    assert (items, head["notes"]) == ([], ["It was too old."])


def test_a_log_that_is_read_to_its_end_says_what_it_lacks(bob: Client, workload: Workload) -> None:
    log = a_log(workload, number_lines(3))
    Log.objects.filter(pk=log.pk).update(note="The cluster was removed.")
    head, items = window(bob, workload, log=log.pk)
    assert (len(items), head["notes"]) == (3, ["The cluster was removed."])


def search(client: Client, workload: Workload, **query: Any) -> dict[str, Any]:
    answer = client.get(reverse("log-search", args=[workload.pk]), query)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_a_search_goes_from_hit_to_hit_and_back(bob: Client, workload: Workload) -> None:
    log = a_log(workload, number_lines(2000))
    first = search(bob, workload, log=log.pk, q="LINE 10", case="")
    second = search(bob, workload, log=log.pk, q="line 10\\d$", regex="1", after=first["cursor"])
    back = search(bob, workload, log=log.pk, q="line 10", before=second["cursor"])
    assert first["hit"]["o"] < back["hit"]["o"] < second["hit"]["o"] or back["hit"] == second["hit"]
    none = search(bob, workload, log=log.pk, q="nowhere")
    assert (none["hit"], none["finished"], none["searched"]) == (None, True, log.size)


@pytest.mark.parametrize(
    "bad", ["(", "a{1001}", "x" * 201, "(?=a)"], ids=["open", "repeat", "long", "look"]
)
def test_an_expression_that_cannot_be_used_is_refused(
    bob: Client, workload: Workload, bad: str
) -> None:
    log = a_log(workload, number_lines(1))
    query: dict[str, Any] = {"log": log.pk, "q": bad, "regex": "1"}
    assert bob.get(reverse("log-search", args=[workload.pk]), query).status_code == 422


@pytest.mark.parametrize(
    "cursor", ["x", "1", "1.", "-1.2", "1.-5", "1.ffffffffffffffffffff", "zz.zz"]
)
def test_a_made_up_cursor_is_refused_or_harmless(
    bob: Client, workload: Workload, cursor: str
) -> None:
    log = a_log(workload, number_lines(5))
    query: dict[str, Any] = {"log": log.pk, "after": cursor}
    answer = bob.get(reverse("log-window", args=[workload.pk]), query)
    assert answer.status_code in (200, 400)


def test_a_cursor_in_mid_line_begins_at_the_line(bob: Client, workload: Workload) -> None:
    log = a_log(workload, number_lines(5))
    assert texts(window(bob, workload, log=log.pk, after=f"{log.pk:x}.3")[1])[0] == "line 0"


@pytest.mark.parametrize("name", ["log-window", "log-search", "log-stream", "log-download"])
def test_another_teams_logs_are_not_there(cast: Cast, workload: Workload, name: str) -> None:
    log, mallory = a_log(workload, number_lines(1)), Client()
    mallory.force_login(cast.mallory)
    for query in ({"log": log.pk}, {"attempt": 1}):
        assert mallory.get(reverse(name, args=[workload.pk]), query | {"q": "x"}).status_code == 404


def test_a_log_is_only_shown_with_its_own_workload(
    bob: Client, cast: Cast, workload: Workload
) -> None:
    other = a_log(pods.a_workload(cast.team_b), number_lines(1))
    assert bob.get(reverse("log-window", args=[workload.pk]), {"log": other.pk}).status_code == 404


def test_the_number_of_queries_does_not_depend_on_the_pods(
    bob: Client, workload: Workload, django_assert_max_num_queries: Any
) -> None:
    for rank in range(20):
        a_log(workload, number_lines(2), rank=rank)
    with django_assert_max_num_queries(7):
        window(bob, workload, attempt=1)
