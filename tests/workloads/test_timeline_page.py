"""The timeline on a workload's page and as a file: what it shows, to whom, and within bounds."""

import re
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters import connections
from projects.models import Project, User
from tests.cast import Cast
from tests.workloads.overview_rows import client_of, html
from tests.workloads.radar_rows import HOSTILE, build_finding, record_findings
from tests.workloads.table_rows import NOON, a_pod, a_workload, an_event
from tests.workloads.timeline_rows import EventfulWorkload, get_workload
from tests.workloads.wide_workloads import MOST_BYTES, PODS, a_wide_workload, add_logs
from workloads.models import Attempt, Event, Log, Pod, Workload
from workloads.queries import load_timeline, timeline_pods
from workloads.queries import timeline as timeline_queries
from workloads.timeline import LaneKind, MarkKind, Timeline, parse_ranks

SVG = "{http://www.w3.org/2000/svg}"
MOST_QUERIES = 12


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return EventfulWorkload(cast.team_a, cast.team_b, cast.bob).workload


def load(workload: Workload, user: User, ranks: str = "") -> Timeline:
    return load_timeline(get_workload(workload), user, parse_ranks(ranks))


def list_marks(timeline: Timeline, key: str) -> list[tuple[MarkKind, str]]:
    lane = next(each for each in timeline.lanes if each.key == key)
    return [(each.kind, each.text) for each in lane.marks]


def test_the_page_shows_all_that_is_known(cast: Cast, workload: Workload) -> None:
    page = html(cast.bob, f"/workloads/{workload.pk}/timeline")
    for words in (
        'aria-current="page"\n        id="tab-timeline"',
        'aria-label="Creating, asked for by bob. It was submitted."',
        'aria-label="Attempt 1, asked for by bob: Failed. PyTorchJob llama is failed',
        'aria-label="6 pods on nodes."',
        'aria-label="Rank 3 has said nothing for 19 min; the 5 others wait."',
        'aria-label="And 1 other at the same time. Rank 5 needs 1.8 times as long',
        'aria-label="Rank 0 saved checkpoint 9."',
        'aria-label="llama-worker-2 failed: Error. exit code 1."',
        "minimum: 4 pods",
        "room in the quota as it is now: ",
    ):
        assert words in page, words
    assert page.count('role="group" aria-label="Rank ') == 6


def test_ranks_have_their_pods_restarts_and_lines(cast: Cast, workload: Workload) -> None:
    timeline = load(workload, cast.bob)
    assert list_marks(timeline, "rank-2") == [
        (MarkKind.REMOVED, "llama-worker-1 was removed."),
        (MarkKind.RESTART, "llama-worker-1: run 2 of container pytorch"),
        (
            MarkKind.RESTART,
            "llama-worker-1: container pytorch ended (exit code 137, OOMKilled) and began again",
        ),
    ]
    assert (MarkKind.LAST_LINE, "Rank 3 said last: 1,285/5,000.") in list_marks(timeline, "rank-3")
    assert list_marks(timeline, "rank-4")[1][0] is MarkKind.TAKEN
    states = [
        each.state for lane in timeline.lanes if lane.key == "rank-0" for each in lane.segments
    ]
    assert states == ["waiting", "starting", "running"] * 2
    assert not timeline.notes


def test_another_project_is_named_only_to_whoever_may_see_it(
    cast: Cast, workload: Workload
) -> None:
    for user, words in ((cast.bob, "another project"), (cast.alice, cast.team_b.name)):
        texts = list_marks(load(workload, user), "pod-changes")
        assert f"Gave 2 GPUs to {words} at " in texts[0][1]
        for path in ("timeline", "timeline-lanes", "timeline.svg"):
            page = html(user, f"/workloads/{workload.pk}/{path}")
            assert (cast.team_b.name in page) == (user == cast.alice), path


@pytest.mark.parametrize("path", ["timeline", "timeline-lanes", "timeline.svg"])
def test_who_may_not_see_the_workload_gets_nothing(cast: Cast, path: str) -> None:
    other = a_workload(cast.team_b, "other")
    assert client_of(cast.bob).get(f"/workloads/{other.pk}/{path}").status_code == 404


def test_the_file_is_an_svg_by_itself(cast: Cast, workload: Workload) -> None:
    answer = client_of(cast.bob).get(f"/workloads/{workload.pk}/timeline.svg")
    assert answer["Content-Type"] == "image/svg+xml"
    assert answer["Content-Disposition"] == 'attachment; filename="llama-timeline.svg"'
    text = answer.content.decode()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    for word in ("href", "url(", "<script", "<style", "foreignObject", "<image"):
        assert word not in text, word
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert {"llama", "Status", "Attempt 2", "Rank 5 · worker 4", "a pod failed"} <= set(words)


def test_hostile_texts_stay_texts(cast: Cast) -> None:
    workload = a_workload(cast.team_a, reason=HOSTILE)
    an_event(workload, HOSTILE, new="Running", old=HOSTILE[:16])
    an_event(workload, HOSTILE, kind="scale", new="", minutes=1)
    pod = a_pod(
        workload,
        role=HOSTILE[:16],
        name=HOSTILE,
        node=HOSTILE,
        reason=HOSTILE,
        status=HOSTILE[:64],
        phase="Failed",
        restarts=1,
        created_at=timezone.now(),
        ended_at=timezone.now(),
    )
    broken = {
        "name": HOSTILE,
        "restartCount": 1,
        "state": [],
        "lastState": {"terminated": {"finishedAt": "2026-11-20T12:00:00Z", "reason": HOSTILE}},
    }
    Pod.objects.filter(pk=pod.pk).update(data={"status": {"containerStatuses": [broken, 7]}})
    Log.objects.create(pod=pod, container=HOSTILE, run=2, first_at=timezone.now())
    record_findings(workload, build_finding(sentence=HOSTILE * 20, rank=pod.rank, node=HOSTILE))
    for path in ("timeline", "timeline-lanes", "timeline.svg"):
        page = html(cast.bob, f"/workloads/{workload.pk}/{path}")
        assert "<script>alert" not in page, path
        assert "<img src=x" not in page, path
        assert "&lt;script&gt;alert(1)" in page, path
    ElementTree.fromstring(page)
    # A control character, and what XML has no name for.
    Pod.objects.filter(pk=pod.pk).update(name="a\x01b\ufffe")
    ElementTree.fromstring(html(cast.bob, f"/workloads/{workload.pk}/timeline.svg"))


@pytest.mark.parametrize(
    "moment", ["", "yesterday", "9999999999999", "2026-11-20T12:00:00", "\x01"]
)
def test_moments_of_a_pod_that_are_none_are_passed_over(cast: Cast, moment: str) -> None:
    workload = a_workload(cast.team_a)
    state = {"running": {"startedAt": moment}, "terminated": moment}
    data = {"status": {"containerStatuses": [{"name": "main", "state": state}]}}
    a_pod(workload, created_at=timezone.now(), data=data)
    assert list_marks(load(workload, cast.bob), "rank-1") == []


@pytest.mark.parametrize(
    "moment",
    [
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2999-01-01T00:00:00Z",
    ],
)
def test_moments_far_from_a_pods_life_are_passed_over(cast: Cast, moment: str) -> None:
    made = timezone.now() - timedelta(minutes=5)
    workload = a_workload(cast.team_a, created_at=made, status_at=made)
    main = {"name": "main", "state": {"terminated": {"startedAt": moment}}}
    again = {
        "name": "again",
        "restartCount": 1,
        "state": {},
        "lastState": {"terminated": {"finishedAt": moment}},
    }
    data = {"status": {"containerStatuses": [main, again]}}
    pod = a_pod(workload, created_at=made, restarts=2, data=data)
    Log.objects.create(pod=pod, container="main", run=1, first_at=made - timedelta(days=9000))
    timeline = load(workload, cast.bob)
    assert timeline.begin == made.timestamp()
    assert list_marks(timeline, "rank-1") == []
    assert "When 2 other restarts happened is not known." in timeline.notes
    for path in ("timeline", "timeline-lanes", "timeline.svg"):
        html(cast.bob, f"/workloads/{workload.pk}/{path}")


def test_moments_of_a_pod_are_those_of_our_clock(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead = timedelta(minutes=20)
    monkeypatch.setattr(connections, "clock_offset", lambda cluster_id: lead)
    made = timezone.now() - timedelta(minutes=5)
    workload = a_workload(cast.team_a, created_at=made, status_at=made)
    began = made + timedelta(minutes=2)
    state = {"running": {"startedAt": (began + lead).isoformat()}}
    data = {"status": {"containerStatuses": [{"name": "main", "state": state}]}}
    a_pod(workload, created_at=made, started_at=made + timedelta(minutes=1), data=data)
    lane = next(each for each in load(workload, cast.bob).lanes if each.key == "rank-1")
    assert lane.segments[-1].begin == began.timestamp()


def test_of_too_many_pods_chosen_ranks_and_the_first_are_found(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline_pods, "MOST_PODS", 50)
    monkeypatch.setattr(timeline_queries, "MOST_PODS", 50)
    workload = a_wide_workload(cast.team_a, 60, attempt=2)
    Attempt.objects.filter(workload=workload).delete()
    for number in (1, 2):
        Attempt.objects.create(
            workload=workload,
            number=number,
            status="Running",
            requested_at=NOON,
            started_at=NOON,
        )
    workload.pods.filter(rank__gte=5).update(attempt=2)
    with CaptureQueriesContext(connection) as captured:
        whole = load(workload, cast.bob)
    assert len(captured) <= MOST_QUERIES
    first = next(each for each in whole.lanes if each.kind is LaneKind.RANK)
    assert (first.title, len(first.segments)) == ("Rank 0", 1)
    assert list(whole.notes)[-3:-1] == [
        "It had more pods: the newest 50 and those of rank 0 are shown.",
        "The other pods of attempt 1 were not read.",
    ]
    assert whole.notes[-1].startswith("Of the 51 ranks that were read, the first and those")
    chosen = load(workload, cast.bob, "0-3")
    ranks = [each.first_rank for each in chosen.lanes if each.kind is LaneKind.RANK]
    assert ranks == [0, 1, 2, 3]
    assert not any(note.startswith("No pod") for note in chosen.notes)
    assert "No pod with rank 77 is known." in load(workload, cast.bob, "77").notes
    monkeypatch.setattr(timeline_pods, "MOST_PODS", 2)
    cut = load(workload, cast.bob, "0-3")
    ranks = [each.first_rank for each in cut.lanes if each.kind is LaneKind.RANK]
    assert ranks == [2, 3]
    assert any(
        note.endswith("as many older ones of the chosen ranks are shown.") for note in cut.notes
    )


def test_a_wide_workload_is_bounded_and_asks_no_more(cast: Cast) -> None:
    few, many = a_wide_workload(cast.team_a, 120), a_wide_workload(cast.team_b)
    add_logs(few, files_from=few.pods.count())
    client = client_of(cast.alice)
    counts = []
    for workload in (few, many):
        with CaptureQueriesContext(connection) as captured:
            timeline = load(workload, cast.alice)
        counts.append(len(captured))
        rows = [each for each in timeline.lanes if each.kind in (LaneKind.RANK, LaneKind.GROUP)]
        assert len(rows) <= 32
    assert counts[0] == counts[1] <= MOST_QUERIES
    for path in ("timeline", "timeline.svg"):
        answer = client.get(f"/workloads/{many.pk}/{path}")
        assert len(answer.content) < MOST_BYTES, path
    page = answer.content.decode()
    assert f"Of its {PODS:,} ranks" in page


def test_very_much_of_everything_is_bounded(cast: Cast) -> None:
    workload = a_wide_workload(cast.team_a, attempt=1)
    now = timezone.now()
    pods = list(workload.pods.all())
    for pod in pods:
        assert pod.created_at is not None
        assert pod.rank is not None
        pod.started_at = pod.created_at + timedelta(seconds=pod.rank % 977)
        pod.ready_at = pod.started_at + timedelta(seconds=pod.rank % 331)
        pod.vanished_at = pod.ready_at + timedelta(minutes=pod.rank % 613)
        pod.restarts = 3
        pod.reason = "x" * 1000
    Pod.objects.bulk_update(
        pods,
        ["started_at", "ready_at", "vanished_at", "restarts", "reason"],
        batch_size=200,
    )
    statuses = ["Running", "Degraded"]
    Event.objects.bulk_create(
        Event(
            workload=workload,
            attempt=1,
            at=now - timedelta(seconds=number),
            kind="scale" if number % 2 else "status",
            new="" if number % 2 else statuses[number // 2 % 2],
            text="y" * 1000,
        )
        for number in range(2000)
    )
    page = html(cast.bob, f"/workloads/{workload.pk}/timeline")
    assert len(page.encode()) < MOST_BYTES
    for note in (
        "It had more changes of status: the newest 120 are shown.",
        "It had more changes of its pods: the newest 60 are shown.",
    ):
        assert note in page


def test_a_rank_of_many_is_found(cast: Cast) -> None:
    workload = a_wide_workload(cast.team_a)
    address = f"/workloads/{workload.pk}/timeline"
    page = html(cast.bob, address)
    group = re.search(r'href="([^"]*\?ranks=[^"]*)"', page)
    assert group is not None
    assert ">Rank 5\n" not in page
    page = html(cast.bob, group[1])
    assert 'aria-label="Rank 0"' not in page
    page = html(cast.bob, f"{address}?ranks=5,1776-1777")
    ranks = re.findall(r'aria-label="Rank (\d+)"', page)
    assert ranks == ["5", "1776", "1777"]
    assert 'value="5,1776-1777"' in page
    assert f"{workload.pk}/timeline.svg?ranks=5%2C1776-1777" in page


def test_ranks_that_are_none_are_refused_in_words(cast: Cast, workload: Workload) -> None:
    page = html(cast.bob, f"/workloads/{workload.pk}/timeline?ranks=%22%3E%3Cb%3E")
    assert "Write ranks as 5, as 64-127, or several of these with commas." in page
    assert 'value="&quot;&gt;&lt;b&gt;"' in page
    assert 'aria-invalid="true"' in page


def test_the_address_follows_a_choice_and_not_a_refresh(cast: Cast, workload: Workload) -> None:
    client = client_of(cast.bob)
    address = f"/workloads/{workload.pk}/timeline-lanes?ranks=1"
    chosen = client.get(address, headers={"HX-Request": "true"})
    assert chosen["HX-Push-Url"] == f"/workloads/{workload.pk}/timeline?ranks=1"
    headers = {"HX-Request": "true", "HX-Trigger": "timeline"}
    assert "HX-Push-Url" not in client.get(address, headers=headers)
    pane = client.get(f"{address}&pane=1", headers={"HX-Request": "true"})
    assert "HX-Push-Url" not in pane
    assert "timeline-lanes?ranks=1&amp;pane=1" in pane.content.decode()


def test_what_is_not_known_any_more_is_said(cast: Cast, workload: Workload) -> None:
    workload.pods.filter(attempt=1).delete()
    workload.events.filter(attempt=1).delete()
    timeline = load(workload, cast.bob)
    assert timeline.lanes[0].segments[0].state == "unknown"
    assert "No pods are known any more of attempt 1." in timeline.notes
    assert any(each.startswith("The beginning of its history is not") for each in timeline.notes)


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped"])
def test_what_is_over_does_not_last(cast: Cast, workload: Workload, status: str) -> None:
    now = timezone.now()
    Workload.objects.filter(pk=workload.pk).update(
        status=status, status_at=now - timedelta(minutes=5), ended_at=now - timedelta(minutes=5)
    )
    workload.pods.filter(vanished_at=None).update(vanished_at=now - timedelta(minutes=5))
    timeline = load(workload, cast.bob)
    assert timeline.is_over
    open_texts = [
        (lane.key, each.text)
        for lane in timeline.lanes
        for each in lane.segments
        if each.is_open and lane.kind is not LaneKind.STATUS
    ]
    assert open_texts == []


def test_a_spec_that_cannot_be_read_has_no_quota(cast: Cast, workload: Workload) -> None:
    Workload.objects.update(spec={"version": 99})
    lanes = load(workload, cast.bob).lanes
    names = [line.name for lane in lanes for line in lane.lines]
    assert names == ["least", "most"]


def test_a_workload_without_anything_has_a_picture(cast: Cast) -> None:
    project: Project = cast.team_a
    workload = a_workload(project, status="Creating", created_at=timezone.now())
    page = html(cast.bob, f"/workloads/{workload.pk}/timeline")
    assert 'aria-label="Creating."' in page
