"""The lanes of a timeline, out of plain facts: statuses, attempts, pods, groups, bounds."""

from collections.abc import Sequence
from typing import Any

import pytest

from workloads.timeline import (
    AttemptFact,
    FindingFact,
    Lane,
    LaneKind,
    LogFact,
    MarkKind,
    Outcome,
    PodBounds,
    PodChange,
    PodFact,
    RankChoice,
    RestartFact,
    StatusChange,
    Timeline,
    TimelineFacts,
    Tint,
    build_timeline,
    parse_ranks,
)
from workloads.timeline.building import (
    MOST_ALONE,
    MOST_GROUPS,
    MOST_LANES,
    MOST_OF_LANE,
    MOST_PARTS,
)
from workloads.timeline.lanes import LONGEST_TEXT
from workloads.timeline.ticks import list_ticks

Parts = list[tuple[float, float, str]]


def build_facts(**fields: Any) -> TimelineFacts:
    given: dict[str, Any] = {
        "created_at": 0.0,
        "now": 100.0,
        "status": "Running",
        "status_at": 10.0,
    }
    return TimelineFacts(**(given | {"is_over": False} | fields))


def build_pod(rank: int | None = None, **fields: Any) -> PodFact:
    given: dict[str, Any] = {
        "key": 1 + (rank or 0),
        "attempt": 1,
        "name": f"train1-worker-{rank}",
        "role": "worker",
        "index": rank,
        "rank": rank,
        "created_at": 10.0,
        "started_at": 20.0,
        "running_at": 30.0,
    }
    return PodFact(**(given | fields))


def find_lane(timeline: Timeline, key: str) -> Lane:
    return next(each for each in timeline.lanes if each.key == key)


def list_segments(lane: Lane) -> Parts:
    return [(each.begin, each.end, each.state) for each in lane.segments]


def list_marks(lane: Lane) -> list[tuple[float, MarkKind]]:
    return [(each.at, each.kind) for each in lane.marks]


SUBMITTED = StatusChange(0.0, "", "Creating", "It was submitted.", "bob")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"changes": [StatusChange(10, "Creating", "Running"), SUBMITTED]},
            [(0, 10, "Creating"), (10, 100, "Running")],
        ),
        # The entry of the submission is not there, but it was Creating from its submission on.
        (
            {"changes": [StatusChange(10, "Creating", "Running")]},
            [(0, 10, "Creating"), (10, 100, "Running")],
        ),
        # Of a later attempt, or of what was deleted, that cannot be said.
        (
            {"changes": [StatusChange(10, "Resuming", "Running")], "attempt": 2},
            [(0, 10, "unknown"), (10, 100, "Running")],
        ),
        (
            {"changes": [StatusChange(10, "Pending", "Running")]},
            [(0, 10, "unknown"), (10, 100, "Running")],
        ),
        ({"changes": []}, [(0, 10, "unknown"), (10, 100, "Running")]),
        ({"changes": [], "status": "Creating", "status_at": 0.0}, [(0, 100, "Creating")]),
        # The newest entry was deleted, or is not written yet.
        (
            {"changes": [SUBMITTED], "status": "Failed", "status_at": 50.0},
            [(0, 50, "Creating"), (50, 100, "Failed")],
        ),
        # Two entries to one status are one segment.
        (
            {
                "changes": [
                    SUBMITTED,
                    StatusChange(10, "Creating", "Running"),
                    StatusChange(20, "Running", "Running"),
                ]
            },
            [(0, 10, "Creating"), (10, 100, "Running")],
        ),
    ],
)
def test_statuses_follow_each_other(fields: dict[str, Any], expected: Parts) -> None:
    lane = find_lane(build_timeline(build_facts(**fields)), "status")
    assert list_segments(lane) == expected
    assert [each.is_open for each in lane.segments][-1] is True
    assert not any(each.is_open for each in lane.segments[:-1])


def test_a_status_says_who_asked_for_it_and_why() -> None:
    changes = [SUBMITTED, StatusChange(10, "Creating", "Preparing", "2 of 9 units.")]
    lane = find_lane(build_timeline(build_facts(changes=changes, status="Preparing")), "status")
    assert [each.text for each in lane.segments] == [
        "Creating, asked for by bob. It was submitted.",
        "Preparing data. 2 of 9 units.",
    ]
    assert [each.look for each in lane.segments] == [Tint.CYAN, Tint.CYAN]


def test_a_status_of_another_release_is_shown_nevertheless() -> None:
    facts = build_facts(changes=[StatusChange(0, "", "Dreaming")], status="Dreaming")
    (segment,) = find_lane(build_timeline(facts), "status").segments
    assert (segment.label, segment.look) == ("Dreaming", Tint.GREY)


def test_attempts_have_a_lane_where_there_are_several() -> None:
    first = AttemptFact(1, "Failed", 0, 10, 40, "bob", "exit code 1")
    second = AttemptFact(2, "Running", 50, 60, None, "alice")
    timeline = build_timeline(build_facts(attempts=[second, first], attempt=2))
    lane = find_lane(timeline, "attempts")
    assert list_segments(lane) == [(0, 40, "Failed"), (50, 100, "Running")]
    assert lane.segments[0].text == "Attempt 1, asked for by bob: Failed. exit code 1."
    assert [each.is_open for each in lane.segments] == [False, True]
    assert "No pods are known any more of attempts 1 and 2." in timeline.notes
    one = build_timeline(build_facts(attempts=[first]))
    assert all(each.key != "attempts" for each in one.lanes)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [(10, 20, "waiting"), (20, 30, "starting"), (30, 100, "running")]),
        ({"started_at": None, "running_at": None}, [(10, 100, "waiting")]),
        ({"running_at": None}, [(10, 20, "waiting"), (20, 100, "starting")]),
        ({"running_at": None, "is_stuck": True}, [(10, 20, "waiting"), (20, 100, "starting")]),
        # It has ended, and nobody knows when its program began.
        (
            {"running_at": None, "ended_at": 50.0, "outcome": Outcome.REMOVED},
            [(10, 20, "waiting"), (20, 50, "running")],
        ),
        (
            {"ended_at": 15.0, "started_at": None, "running_at": None},
            [(10, 15, "waiting")],
        ),
        # Clocks of nodes differ.
        ({"running_at": 18.0}, [(10, 20, "waiting"), (20, 100, "running")]),
        ({"running_at": 1.0}, [(10, 20, "waiting"), (20, 100, "running")]),
        ({"started_at": 1.0}, [(10, 30, "starting"), (30, 100, "running")]),
        ({"created_at": None}, [(20, 30, "starting"), (30, 100, "running")]),
        ({"created_at": None, "started_at": None, "running_at": None}, []),
        ({"created_at": 200.0, "started_at": None, "running_at": None}, []),
    ],
)
def test_a_pod_waits_starts_and_runs(fields: dict[str, Any], expected: Parts) -> None:
    facts = build_facts(pods=[build_pod(0, **fields)])
    assert list_segments(find_lane(build_timeline(facts), "rank-0")) == expected


@pytest.mark.parametrize(
    ("outcome", "kind", "words"),
    [
        (Outcome.SUCCEEDED, MarkKind.SUCCEEDED, "train1-worker-0 ended well."),
        (Outcome.FAILED, MarkKind.FAILED, "train1-worker-0 failed: OOMKilled. exit code 137."),
        (Outcome.TAKEN, MarkKind.TAKEN, "train1-worker-0 was taken away."),
        (Outcome.REMOVED, MarkKind.REMOVED, "train1-worker-0 was removed."),
    ],
)
def test_an_end_is_a_mark(outcome: Outcome, kind: MarkKind, words: str) -> None:
    ended = {"ended_at": 60.0, "status": "OOMKilled", "reason": "exit code 137"}
    facts = build_facts(pods=[build_pod(0, outcome=outcome, **ended)])
    (mark,) = find_lane(build_timeline(facts), "rank-0").marks
    assert (mark.at, mark.kind, mark.text) == (60.0, kind, words)


def test_a_rank_has_its_pods_restarts_findings_and_lines_in_one_lane() -> None:
    restart = RestartFact(45, "run 2 of container main")
    pods = [
        build_pod(3, key=9, attempt=2, created_at=70.0, started_at=80.0, running_at=90.0),
        build_pod(3, ended_at=60.0, outcome=Outcome.FAILED, restart_count=3, restarts=[restart]),
    ]
    timeline = build_timeline(
        build_facts(
            attempt=2,
            pods=pods,
            findings=[FindingFact("hang", "Hangs", 95, None, "It says nothing.", 3)],
            logs=[LogFact(94, MarkKind.LAST_LINE, "Rank 3 said last: 4/9.", 3)],
        )
    )
    lane = find_lane(timeline, "rank-3")
    assert (lane.title, lane.note) == ("Rank 3", "worker 3")
    assert [state for _, _, state in list_segments(lane)] == ["waiting", "starting", "running"] * 2
    assert list_marks(lane) == [
        (45, MarkKind.RESTART),
        (60, MarkKind.FAILED),
        (94, MarkKind.LAST_LINE),
        (95, MarkKind.FINDING),
    ]
    assert "train1-worker-3 of attempt 2 runs." in [each.text for each in lane.segments]
    assert "When 2 other restarts happened is not known." in timeline.notes


def test_a_lane_has_the_pods_of_all_attempts() -> None:
    ended = {"started_at": None, "running_at": None, "outcome": Outcome.FAILED}
    pods = [
        build_pod(1, attempt=number, created_at=10.0 * number, ended_at=10.0 * number + 9, **ended)
        for number in range(1, 61)
    ]
    timeline = build_timeline(build_facts(pods=pods, attempt=60, now=700.0))
    lane = find_lane(timeline, "rank-1")
    assert (len(lane.segments), len(lane.marks)) == (60, 60)
    assert not timeline.notes


@pytest.mark.parametrize(("ranks", "hint"), [(1, False), (MOST_LANES, True)])
def test_what_a_lane_leaves_out_is_counted(ranks: int, hint: bool) -> None:
    restarts = [RestartFact(31.0 + number / 10, "again") for number in range(300)]
    pods = build_wide(ranks, restarts=restarts, restart_count=300)
    timeline = build_timeline(build_facts(pods=pods))
    lanes = [each for each in timeline.lanes if each.kind is LaneKind.RANK]
    drawn = sum(len(each.marks) for each in lanes)
    assert drawn == min(MOST_OF_LANE * ranks, MOST_PARTS)
    assert sum(len(each.segments) for each in lanes) <= MOST_PARTS
    (note,) = timeline.notes
    assert f": {300 * ranks - drawn:,} earlier ones are not." in note
    assert ("Choose fewer ranks" in note) == hint


def test_no_finding_that_was_read_is_left_out() -> None:
    findings = [
        FindingFact("straggler", "Straggler", number, number + 0.5, "Slow.", 1)
        for number in range(100)
    ]
    lane = find_lane(build_timeline(build_facts(findings=findings)), "finding-straggler")
    assert len(lane.segments) == 100


def test_of_what_was_not_read_nothing_is_claimed() -> None:
    attempts = [AttemptFact(number, "Failed", number, number) for number in range(1, 5)]
    facts = build_facts(
        attempt=4,
        attempts=attempts,
        pods=[build_pod(1, attempt=4), build_pod(1, attempt=2)],
        older_pods=[build_pod(0, key=99, attempt=1)],
        are_all_pods=False,
    )
    timeline = build_timeline(facts)
    assert timeline.notes == [
        "The other pods of attempt 1 were not read.",
        "No pods are known any more of attempt 3.",
    ]
    assert list_segments(find_lane(timeline, "rank-0"))
    assert find_lane(timeline, "pod-count").note == "at most 2 of those read"


def test_pods_without_a_rank_share_lanes_where_they_follow_each_other() -> None:
    loose: dict[str, Any] = {"index": None, "role": ""}
    later: dict[str, Any] = {"started_at": None, "running_at": 55.0}
    pods = [
        build_pod(**(loose | {"name": "a", "ended_at": 50.0})),
        build_pod(**(loose | later | {"name": "b", "created_at": 50.0})),
        build_pod(**(loose | {"name": "c", "created_at": 40.0})),
    ]
    timeline = build_timeline(build_facts(pods=pods))
    titles = [each.title for each in timeline.lanes if each.kind is LaneKind.RANK]
    assert titles == ["Pod 1", "Pod 2"]
    names = [each.text.split()[0] for each in find_lane(timeline, "pod-0").segments]
    assert set(names) == {"a", "b"}
    alone = build_timeline(build_facts(pods=pods[:1]))
    assert find_lane(alone, "pod-0").title == "Pod"


def test_data_workers_come_last_and_are_not_counted() -> None:
    data = build_pod(None, key=50, role="data-worker", index=0, is_data_worker=True)
    timeline = build_timeline(build_facts(pods=[data, build_pod(0), build_pod(1)]))
    titles = [each.title for each in timeline.lanes if each.kind is LaneKind.RANK]
    assert titles == ["Rank 0", "Rank 1", "Data worker 0"]
    (counted,) = find_lane(timeline, "pod-count").segments
    assert counted.text == "2 pods on nodes."


def test_the_number_of_pods_is_drawn_against_its_bounds() -> None:
    pods = [build_pod(rank, started_at=20.0 + rank, ended_at=60.0 + rank) for rank in range(4)]
    bounds = PodBounds(requested=4, least=2, most=8, quota=6)
    lane = find_lane(build_timeline(build_facts(pods=pods, bounds=bounds)), "pod-count")
    assert [(each.begin, each.share) for each in lane.segments] == [
        *((20, 0.125), (21, 0.25), (22, 0.375), (23, 0.5)),
        *((60, 0.375), (61, 0.25), (62, 0.125)),
    ]
    assert [(each.name, each.share) for each in lane.lines] == [
        ("least", 0.25),
        ("most", 1.0),
        ("quota", 0.75),
    ]
    fixed = PodBounds(requested=4, quota=100)
    lane = find_lane(build_timeline(build_facts(pods=pods, bounds=fixed)), "pod-count")
    assert [each.text for each in lane.lines] == ["asked for: 4 pods"]
    assert all(each.key != "pod-count" for each in build_timeline(build_facts()).lanes)


def test_taken_pods_and_new_ones_are_marks() -> None:
    changes = [PodChange(60, "It grew.", is_loss=False), PodChange(50, "Gave 2.", is_loss=True)]
    lane = find_lane(build_timeline(build_facts(pod_changes=changes)), "pod-changes")
    assert list_marks(lane) == [(50, MarkKind.TAKEN), (60, MarkKind.GROWN)]


def test_findings_of_a_kind_share_a_lane_and_those_at_once_a_segment() -> None:
    findings = [
        FindingFact("straggler", "Straggler", 10, 30, "Rank 1 is slow.", 1),
        FindingFact("straggler", "Straggler", 20, 40, "Rank 2 is slow.", 2),
        FindingFact("straggler", "Straggler", 60, None, "Rank 3 is slow.", 3),
        FindingFact("hang", "Hangs", 90, 95, "Rank 0 hangs.", 0),
    ]
    timeline = build_timeline(build_facts(findings=findings))
    lane = find_lane(timeline, "finding-straggler")
    assert list_segments(lane) == [(10, 40, "straggler"), (60, 100, "straggler")]
    assert lane.segments[0].text == "And 1 other at the same time. Rank 1 is slow."
    assert [each.is_open for each in lane.segments] == [False, True]
    assert find_lane(timeline, "finding-hang").title == "Hangs"


def build_wide(ranks: int, **fields: Any) -> list[PodFact]:
    return [build_pod(rank, **fields) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [1, MOST_LANES, MOST_LANES + 1, 100, 2000])
def test_the_number_of_lanes_is_bounded(ranks: int) -> None:
    timeline = build_timeline(build_facts(pods=build_wide(ranks)))
    rows = [each for each in timeline.lanes if each.kind in (LaneKind.RANK, LaneKind.GROUP)]
    assert len(rows) <= max(MOST_LANES, MOST_ALONE + MOST_GROUPS)
    assert count_ranks(rows) == ranks
    assert bool([each for each in rows if each.kind is LaneKind.GROUP]) == (ranks > MOST_LANES)


def count_ranks(lanes: Sequence[Lane]) -> int:
    """Count the ranks that lanes are of; groups say how many they are."""
    groups = [each for each in lanes if each.kind is LaneKind.GROUP]
    return len(lanes) - len(groups) + sum(int(each.note.split()[0]) for each in groups)


def test_ranks_with_trouble_have_a_lane_of_their_own_what_failed_first_before_all() -> None:
    pods = build_wide(500)
    for rank in range(100, 140):
        failed = {"ended_at": 90.0 - rank / 100, "outcome": Outcome.FAILED}
        pods[rank] = build_pod(rank, **failed)
    pods[300] = build_pod(300, restart_count=1)
    timeline = build_timeline(build_facts(pods=pods))
    alone = [each.first_rank for each in timeline.lanes if each.kind is LaneKind.RANK]
    assert alone == [0, *range(140 - MOST_ALONE + 1, 140)]
    assert any(
        note.startswith("Of its 500 ranks the first and those with") for note in timeline.notes
    )
    hangs = [FindingFact("hang", "Hangs", 50, None, "It hangs.", 444)]
    timeline = build_timeline(build_facts(pods=build_wide(500), findings=hangs))
    assert [each.first_rank for each in timeline.lanes if each.kind is LaneKind.RANK] == [0, 444]


def test_a_group_says_what_its_ranks_do_together() -> None:
    pods = build_wide(49)
    for rank in range(1, 3):
        pods[rank] = build_pod(rank, ended_at=80.0, outcome=Outcome.REMOVED)
    timeline = build_timeline(build_facts(pods=pods))
    lane = next(each for each in timeline.lanes if each.kind is LaneKind.GROUP)
    assert (lane.title, lane.first_rank, lane.last_rank) == ("Ranks 1 to 4", 1, 4)
    assert [each.text for each in lane.segments] == [
        "All 4 wait for a node.",
        "All 4 start.",
        "All 4 run.",
        "2 run, 2 are not there.",
    ]
    assert [each.share for each in lane.segments] == [1, 1, 1, 0.5]


def list_groups(pods: list[PodFact]) -> list[Lane]:
    timeline = build_timeline(build_facts(pods=pods, attempt=2))
    return [each for each in timeline.lanes if each.kind is LaneKind.GROUP]


def test_of_one_it_is_said_in_the_singular() -> None:
    pods = build_wide(49)
    pods[1] = build_pod(1, ended_at=80.0, outcome=Outcome.REMOVED)
    assert list_groups(pods)[0].segments[-1].text == "3 run, 1 is not there."
    pods[2] = build_pod(2, started_at=None, running_at=None)
    assert list_groups(pods)[0].segments[-1].text == "2 run, 1 waits for a node, 1 is not there."
    # After the first, eleven lanes have three ranks each, and one has the last.
    alone = list_groups(build_wide(35))[-1]
    assert (alone.title, alone.note) == ("Rank 34", "")
    assert [each.text for each in alone.segments] == [
        "It waits for a node.",
        "It starts.",
        "It runs.",
    ]


def test_a_group_counts_the_ends_of_all_attempts() -> None:
    """Of three ranks six pods may fail at nearly the same time."""
    pods = [
        build_pod(rank, attempt=attempt, ended_at=40.0 + attempt, outcome=Outcome.FAILED)
        for rank in range(49)
        for attempt in (1, 2)
    ]
    texts = {mark.text for lane in list_groups(pods) for mark in lane.marks}
    assert texts == {"6 pods failed, the first at this moment."}
    pods = [build_pod(rank, ended_at=50.0, outcome=Outcome.TAKEN) for rank in range(17)]
    pods += [build_pod(rank) for rank in range(17, 49)]
    marks = [mark for lane in list_groups(pods) for mark in lane.marks]
    assert [each.text for each in marks] == ["1 pod was taken away."]


def test_chosen_ranks_alone_have_lanes() -> None:
    facts = build_facts(pods=build_wide(200))
    chosen = build_timeline(facts, RankChoice(((5, 6), (150, 150))))
    ranks = [each.first_rank for each in chosen.lanes if each.kind is LaneKind.RANK]
    assert ranks == [5, 6, 150]
    nothing = build_timeline(facts, RankChoice(((900, 901),)))
    assert "No pod with rank 900-901 is known." in nothing.notes


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("", ()),
        ("  ", ()),
        ("5", ((5, 5),)),
        ("0, 8-15", ((0, 0), (8, 15))),
        ("8–15", ((8, 15),)),
        ("15-8", None),
        ("-1", None),
        ("5,", None),
        ("five", None),
        ("٣", None),
        ("1234567", None),
        (",".join(["1"] * 17), None),
        ("1" * 300, None),
    ],
)
def test_ranks_are_read_as_people_write_them(
    text: str, spans: tuple[tuple[int, int], ...] | None
) -> None:
    choice = parse_ranks(text)
    assert (None if choice is None else tuple(choice.spans)) == spans


def test_what_is_over_ends_soon_after_its_last_moment() -> None:
    pods = [build_pod(0, ended_at=60.0, outcome=Outcome.SUCCEEDED)]
    fields = {"status": "Completed", "status_at": 61.0, "is_over": True, "now": 9e5}
    timeline = build_timeline(build_facts(pods=pods, **fields))
    assert 61 < timeline.end < 65
    status = find_lane(timeline, "status")
    assert status.segments[-1].end == timeline.end


def test_texts_are_one_line_and_cut() -> None:
    changes = [PodChange(5, f"Lost\n\t{'x' * 1000}", is_loss=True)]
    (mark,) = find_lane(build_timeline(build_facts(pod_changes=changes)), "pod-changes").marks
    assert len(mark.text) == LONGEST_TEXT
    assert mark.text.startswith("Lost xxx")
    assert mark.text.endswith("…")


@pytest.mark.parametrize("length", [1, 59, 3600, 86400, 40 * 86400, 5000 * 86400])
def test_an_axis_has_a_few_round_moments(length: int) -> None:
    ticks = list_ticks(1_800_000_123.4, 1_800_000_123.4 + length)
    assert len(ticks) <= 9
    assert [at for at, _ in ticks] == sorted(at for at, _ in ticks)
    assert len(ticks) >= (length >= 2)
