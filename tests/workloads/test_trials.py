"""Quota trials: rows of the past as a question, two replays of it, and what is made of them."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import NodePool
from scheduling import CPU, GPU, MEMORY, ClusterState, Gang, Preemptibility
from simulation.history import Replay, replay_history
from tests.cast import Cast, a_spec
from tests.workloads.table_rows import NOON, an_event
from tests.workloads.trial_rows import (
    RecordingReplayer,
    add_nodes,
    add_run,
    add_trial,
    build_spec,
    change_quota,
)
from workloads import past_work
from workloads.forecasting import simulator_process
from workloads.forecasting.simulator_process import SimulatorFailed, SimulatorStopped
from workloads.models import TRIAL_WINDOW, LedgerEntry, QuotaTrial, TrialStatus, Workload
from workloads.past_work import load_past_work
from workloads.specs import Gpus
from workloads.tasks import retain
from workloads.tasks import trials as steps
from workloads.trials import ChangesOutdated, TrialResult, play_trial, playing
from workloads.trials.changes import Change, ChangeKind, require_targets
from workloads.trials.node_kinds import load_node_kinds, resize_kinds
from workloads.trials.results import decode_result, encode_result

BEGIN = NOON - TRIAL_WINDOW
HOUR = 3600.0


def find_gang(state: ClusterState, attempt: object) -> Gang:
    return next(gang for gang in state.gangs if gang.key == str(attempt))


def play(cast: Cast, *changes: Change) -> RecordingReplayer:
    replayer = RecordingReplayer()
    play_trial(add_trial(cast, *changes), NOON, replayer)
    return replayer


def test_what_ran_in_the_window_comes_as_it_came(cast: Cast) -> None:
    at = NOON - timedelta(days=2)
    spec = replace(
        a_spec(cast.team_a, "gang"),
        setup=build_spec(cast.team_a, "x", 4).setup,
    )
    workload = add_run(cast.team_a, "gang", at, waited=60, ran=HOUR, spec=spec, preemptible=False)
    key = str(workload.attempts.get().pk)
    replayer = play(cast)
    (gang,) = replayer.states[0].gangs
    assert (gang.key, gang.queue, gang.min_member) == (key, "team-a", 3)
    assert gang.created_at == at.timestamp()
    assert gang.preemptibility is Preemptibility.NON_PREEMPTIBLE
    assert {pod.shape.amounts[GPU] for pod in gang.pods} == {4}
    assert gang.pods[0].shape.amounts[CPU] == 1
    assert gang.pods[0].shape.amounts[MEMORY] == 10**9
    assert replayer.lengths == {key: HOUR}


def test_what_ran_at_the_begin_runs_on_for_the_rest(cast: Cast) -> None:
    add_run(cast.team_a, "old", BEGIN - timedelta(hours=2), ran=3 * HOUR)
    replayer = play(cast)
    (gang,) = replayer.states[0].gangs
    [length] = replayer.lengths.values()
    assert replayer.states[0].now + length == BEGIN.timestamp() + HOUR
    assert gang.created_at < replayer.states[0].now


def add_changes(workload: Workload, *changes: tuple[timedelta, str]) -> None:
    """Add changes of the status of a workload, so long before NOON."""
    for ago, new in changes:
        an_event(workload, new=new, at=NOON - ago)


def test_what_waited_again_counts_with_what_it_ran(cast: Cast) -> None:
    day = timedelta(days=1)
    workload = add_run(cast.team_a, "w", NOON - 20 * day, ran=10 * day.total_seconds())
    add_changes(
        workload,
        (20 * day + timedelta(seconds=60), "Pending"),
        (20 * day, "Running"),
        (19 * day, "Degraded"),
        (18 * day, "Pending"),
        (15 * day, "Initializing"),
        (14 * day, "Running"),
        (10 * day, "Completed"),
    )
    twin = add_run(cast.team_b, "twin", NOON - 20 * day, ran=10 * day.total_seconds())
    add_changes(twin, (20 * day, "Running"), (10 * day, "Completed"))
    key, other = (str(each.attempts.get().pk) for each in (workload, twin))
    assert play(cast).lengths == {
        key: 6 * day.total_seconds(),
        other: 10 * day.total_seconds(),
    }


def test_what_waits_again_now_does_not_run_for_ever(cast: Cast) -> None:
    workload = add_run(cast.team_a, "w", NOON - timedelta(days=9), ran=None, status="Pending")
    add_changes(workload, (timedelta(days=9), "Running"), (timedelta(days=8), "Pending"))
    assert list(play(cast).lengths.values()) == [24 * HOUR]


def test_what_waited_again_at_the_begin_has_no_node_then(cast: Cast) -> None:
    workload = add_run(cast.team_a, "w", BEGIN - timedelta(days=9), ran=14 * 24 * HOUR)
    window = NOON - BEGIN
    add_changes(
        workload,
        (window + timedelta(days=2), "Pending"),
        (window - timedelta(days=1), "Running"),
        (window - timedelta(days=5), "Completed"),
    )
    replayer = play(cast)
    (gang,) = replayer.states[0].gangs
    assert replayer.states[0].now < gang.created_at < BEGIN.timestamp()
    assert list(replayer.lengths.values()) == [4 * 24 * HOUR]


def test_changes_beyond_the_bound_are_as_if_there_were_no_break(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_work, "MOST_CHANGES", 3)
    day = timedelta(days=1)
    for name in ("a", "b"):
        workload = add_run(cast.team_a, name, NOON - 9 * day, ran=3 * day.total_seconds())
        add_changes(workload, (8 * day, "Pending"), (7 * day, "Running"), (6 * day, "Completed"))
    assert sorted(play(cast).lengths.values()) == [2 * 24 * HOUR, 3 * 24 * HOUR]


def test_who_waited_at_the_begin_comes_after_those_who_ran(cast: Cast) -> None:
    add_run(cast.team_a, "waited", BEGIN - timedelta(hours=9), waited=10 * HOUR)
    add_run(cast.team_a, "later", BEGIN - timedelta(hours=1), waited=3 * HOUR)
    state = play(cast).states[0]
    moments = [gang.created_at for gang in state.gangs]
    assert state.now < moments[0] < moments[1] < BEGIN.timestamp()


def test_what_goes_on_has_no_length(cast: Cast) -> None:
    add_run(cast.team_a, "runs", NOON - timedelta(hours=2), ran=None)
    add_run(cast.team_a, "waits", NOON - timedelta(hours=1), waited=None)
    replayer = play(cast)
    assert len(replayer.states[0].gangs) == 2
    assert replayer.lengths == {}


def test_what_is_not_played_is_counted(cast: Cast) -> None:
    at = NOON - timedelta(days=1)
    add_run(cast.team_a, "over", BEGIN - timedelta(days=1), ran=60)
    add_run(cast.team_a, "given-up", at, waited=None, ended_at=NOON, status="Stopped")
    add_run(cast.team_a, "unreadable", at, spec_version=77)
    kept = add_run(cast.team_a, "kept", at)
    for workload in (kept.pk, uuid.uuid4()):
        LedgerEntry.objects.create(
            day=at.date(), project=cast.team_a, workload=workload, workload_name="w"
        )
    past = load_past_work(cast.cluster, BEGIN, NOON)
    assert len(past.runs) == 1
    assert (past.never_started, past.left_out, past.deleted, past.is_cut) == (1, 1, 1, False)


def test_the_newest_are_played_where_there_are_too_many(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        add_run(cast.team_a, f"w{number}", NOON - timedelta(hours=9 - number))
    monkeypatch.setattr(past_work, "MOST_ATTEMPTS", 3)
    past = load_past_work(cast.cluster, BEGIN, NOON)
    assert [run.came_at.hour for run in past.runs] == [4, 5, 6]
    assert past.is_cut
    monkeypatch.setattr(past_work, "MOST_PODS", 2)
    past = load_past_work(cast.cluster, BEGIN, NOON)
    assert [run.came_at.hour for run in past.runs] == [5, 6]
    # What ran before the first of them is not known, so no time before it is played.
    began_at = play(cast).states[0].now
    assert 0 <= past.runs[0].came_at.timestamp() - began_at < 300


def test_what_held_the_nodes_when_the_newest_began_is_played(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_work, "MOST_ATTEMPTS", 3)
    at = NOON - timedelta(days=9)
    runs = add_run(cast.team_a, "runs", at, ran=None)
    ended = add_run(cast.team_a, "ended", at, ran=(NOON - at).total_seconds() - HOUR)
    add_run(cast.team_a, "over", at, ran=HOUR)
    add_run(cast.team_a, "waited", at, waited=(NOON - at).total_seconds() - 60)
    for number in range(3):
        add_run(cast.team_b, f"w{number}", NOON - timedelta(hours=9 - number))
    replayer = play(cast)
    state = replayer.states[0]
    began_at = (NOON - timedelta(hours=9)).timestamp()
    assert 0 < began_at - state.now < 300
    keys = [str(each.attempts.get().pk) for each in (runs, ended)]
    assert [gang.key for gang in state.gangs][:2] == keys
    assert len(state.gangs) == 5
    assert keys[0] not in replayer.lengths
    assert state.now + replayer.lengths[keys[1]] == (NOON - timedelta(hours=1)).timestamp()


def test_a_cut_does_not_begin_before_the_window(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_work, "MOST_ATTEMPTS", 2)
    for days in (3, 2, 1):
        add_run(cast.team_a, f"w{days}", BEGIN - timedelta(days=days), ran=None)
    past = load_past_work(cast.cluster, BEGIN, NOON)
    assert (past.is_cut, past.begin, len(past.runs)) == (True, BEGIN, 3)


@pytest.mark.parametrize("status", ["Creating", "Resuming", "Preparing", "Pending", "Initializing"])
def test_whatever_is_going_to_start_waits(cast: Cast, status: str) -> None:
    add_run(cast.team_a, "w", NOON - timedelta(hours=1), waited=None, status=status)
    replayer = play(cast)
    assert len(replayer.states[0].gangs) == 1
    assert replayer.lengths == {}


def test_one_run_of_very_many_pods_does_not_crowd_out_the_others(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_work, "MOST_PODS", 5)
    monkeypatch.setattr(past_work, "MOST_PODS_OF_RUN", 3)
    add_run(cast.team_a, "usual", NOON - timedelta(hours=2))
    spec = replace(a_spec(cast.team_a, "huge"), workers=9)
    add_run(cast.team_a, "huge", NOON - timedelta(hours=1), spec=spec)
    past = load_past_work(cast.cluster, BEGIN, NOON)
    assert [run.came_at.hour for run in past.runs] == [10]
    assert (past.left_out, past.is_cut) == (1, False)


def test_a_workload_keeps_to_its_nodes(cast: Cast) -> None:
    pool = NodePool.objects.create(
        cluster=cast.cluster, name="big", label_key="pool", label_value="big"
    )
    add_nodes(cast, 8, labels={"pool": "big"})
    cast.cluster.nodes.create(name="other", is_ready=True, gpus=8, cpu=8, memory=1 << 36)
    cast.team_a.node_pools.add(pool)
    at = NOON - timedelta(days=1)
    limited = add_run(cast.team_a, "limited", at).attempts.get().pk
    free = add_run(cast.team_b, "free", at).attempts.get().pk
    state = play(cast).states[0]
    assert list(find_gang(state, limited).pods[0].shape.mismatches) == ["other"]
    assert not find_gang(state, free).pods[0].shape.mismatches


def test_a_shared_device_counts_as_a_whole_one(cast: Cast) -> None:
    compute = replace(
        build_spec(cast.team_a, "x").setup.compute, gpus=Gpus(devices=1, memory="10G")
    )
    setup = replace(build_spec(cast.team_a, "x").setup, compute=compute)
    spec = build_spec(cast.team_a, "share", setup=setup)
    add_run(cast.team_a, "share", NOON - timedelta(days=1), spec=spec)
    (run,) = load_past_work(cast.cluster, BEGIN, NOON).runs
    assert run.gpus == 1


def test_the_queries_do_not_grow_with_the_past(cast: Cast) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            load_past_work(cast.cluster, BEGIN, NOON)
        return len(queries)

    add_run(cast.team_a, "first", NOON - timedelta(hours=1))
    before = count()
    for number in range(10):
        add_run(cast.team_b, f"w{number}", NOON - timedelta(hours=1))
    assert count() == before


def test_the_tried_quota_is_that_of_the_second_replay_alone(cast: Cast) -> None:
    add_nodes(cast, 8)
    add_run(cast.team_a, "w", NOON - timedelta(hours=1))
    replayer = play(
        cast,
        change_quota(cast.team_a, "6"),
        change_quota(cast.team_b, "", "gpu_limit"),
        Change(ChangeKind.DEPARTMENT, str(cast.research.pk), "research", "gpu_limit", "", "7"),
    )
    before, after = (
        {queue.name: queue.bounds[GPU] for queue in state.queues} for state in replayer.states
    )
    assert (before["team-a"].quota, after["team-a"].quota) == (2, 6)
    assert before["team-b"] == after["team-b"]
    (parent,) = before.keys() - {"team-a", "team-b"}
    assert (before[parent].quota, after[parent].quota, after[parent].limit) == (4, 8, 7)
    cast.team_a.refresh_from_db()
    assert cast.team_a.gpu_quota == 2


def test_nodes_are_of_one_kind_by_gpus_type_and_pools(cast: Cast) -> None:
    NodePool.objects.create(cluster=cast.cluster, name="big", label_key="p", label_value="1")
    add_nodes(cast, 8, 8, 4, 0)
    cast.cluster.nodes.filter(name="node-1").update(labels={"p": "1"})
    cast.cluster.nodes.create(name="closed", is_ready=True, is_schedulable=False, gpus=8)
    kinds = load_node_kinds(cast.cluster)
    assert [(kind.label, kind.count) for kind in kinds] == [
        ("8 × H100", 1),
        ("8 × H100 (big)", 1),
        ("4 × H100", 1),
        ("no GPU, 64 cores", 1),
    ]


def test_nodes_are_added_and_removed(cast: Cast) -> None:
    add_nodes(cast, 8, 8, 4, labels={"kubernetes.io/hostname": "x", "zone": "a"})
    (large, small) = load_node_kinds(cast.cluster)
    nodes = resize_kinds([large, small], {large.key: 1, small.key: 3})
    assert [node.name for node in nodes] == ["node-0", "node-2", "node-2+1", "node-2+2"]
    assert nodes[-1].labels == {"kubernetes.io/hostname": "node-2+2", "zone": "a"}
    assert nodes[1].labels["kubernetes.io/hostname"] == "x"
    assert cast.cluster.nodes.count() == 3
    add_run(cast.team_a, "w", NOON - timedelta(hours=1))
    change = Change(ChangeKind.NODES, small.key, small.label, "count", "1", "3")
    states = play(cast, change).states
    assert [len(state.nodes) for state in states] == [3, 5]


def test_nodes_are_of_one_kind_by_their_lasting_taints(cast: Cast) -> None:
    add_nodes(cast, 8, 8, 8)
    for name, key in (("node-0", "node.kubernetes.io/disk-pressure"), ("node-1", "mine")):
        taint = {"key": key, "value": "x", "effect": "NoSchedule"}
        cast.cluster.nodes.filter(name=name).update(taints=[taint])
    kinds = load_node_kinds(cast.cluster)
    assert [(kind.label, kind.count) for kind in kinds] == [
        ("8 × H100", 2),
        ("8 × H100, tainted mine=x:NoSchedule", 1),
    ]
    nodes = resize_kinds(kinds, {kind.key: kind.count + 1 for kind in kinds})
    assert {node.name: len(node.taints) for node in nodes if "+" in node.name} == {
        "node-0+1": 0,
        "node-1+1": 1,
    }


def test_an_added_node_has_the_least_of_others(cast: Cast) -> None:
    add_nodes(cast, 8, 8, used_gpus=6, used_cpu=9, used_memory=1 << 33, used_pods=20)
    cast.cluster.nodes.filter(name="node-1").update(used_cpu=2, used_memory=5, used_pods=7)
    (kind,) = load_node_kinds(cast.cluster)
    added = resize_kinds([kind], {kind.key: 3})[-1]
    assert added.name == "node-0+1"
    assert (added.used_gpus, added.used_cpu, added.used_memory, added.used_pods) == (0, 2, 5, 7)
    assert kind.nodes[0].used_gpus == 6


def test_more_quota_shortens_the_wait_of_one_and_lengthens_that_of_another(cast: Cast) -> None:
    """A whole trial with the simulator itself: 12 runs of an hour on 4 GPUs."""
    add_nodes(cast, 4)
    for project in (cast.team_a, cast.team_b):
        for number in range(6):
            add_run(
                project,
                f"w{number}",
                NOON - timedelta(days=1) + timedelta(seconds=number),
                waited=5 * HOUR,
                gpus=2,
                preemptible=False,
            )
    changes = (change_quota(cast.team_a, "4"), change_quota(cast.team_b, "0"))
    result = play_trial(add_trial(cast, *changes), NOON, replay_history)
    team_a, team_b = sorted(result.projects, key=lambda each: each.name)
    assert team_a.truth.median == team_b.truth.median == 5 * HOUR
    assert team_a.after.median < team_a.before.median == pytest.approx(2.5 * HOUR, abs=90)
    assert (team_b.before.unstarted, team_b.after.unstarted) == (0, 6)
    assert team_b.after.median > team_b.before.median
    assert result.total.count == 12
    assert result.is_whole
    assert decode_result(encode_result(result)) == result


def test_both_replays_count_as_far_as_the_shorter_came(cast: Cast) -> None:
    add_run(cast.team_a, "early", NOON - timedelta(days=20), waited=60)
    add_run(cast.team_a, "late", NOON - timedelta(days=2), waited=60)
    until = NOON - timedelta(days=10)
    result = play_trial(add_trial(cast), NOON, RecordingReplayer(until))
    assert (result.until, result.is_whole, result.total.count) == (until, False, 1)


def test_who_waits_still_counts_for_as_long_as_it_has(cast: Cast) -> None:
    add_run(cast.team_a, "waits", NOON - timedelta(hours=3), waited=None, gpus=2)
    result = play_trial(add_trial(cast), NOON, RecordingReplayer())
    (team_a,) = result.projects
    assert (team_a.truth.median, team_a.truth.unstarted) == (3 * HOUR, 1)
    assert (team_a.truth.gpu_hours, team_a.before.gpu_hours) == (6.0, 0.0)


def test_the_step_plays_the_oldest_and_keeps_the_result(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    add_run(cast.team_a, "w", now - timedelta(hours=3))
    first = add_trial(cast, created_at=now - timedelta(minutes=2))
    second = add_trial(cast, asked_by=cast.bob)
    monkeypatch.setattr(
        steps, "play_trial", lambda trial, at: play_trial(trial, at, RecordingReplayer())
    )
    steps.play_trials()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, first.trouble, second.status) == (TrialStatus.DONE, "", "waiting")
    assert decode_result(first.result).total.count == 1
    assert first.computed_at is not None
    steps.play_trials()
    second.refresh_from_db()
    assert second.status == TrialStatus.DONE


def test_a_replay_in_a_process_of_its_own_answers(cast: Cast) -> None:
    add_nodes(cast, 4)
    add_run(cast.team_a, "w", NOON - timedelta(hours=1), waited=60)
    result = play_trial(add_trial(cast), NOON)
    assert (result.total.count, result.total.after.unstarted) == (1, 0)


@pytest.mark.parametrize(
    ("error", "words"),
    [(SimulatorFailed("It took too long."), "It took too long."), (KeyError("x"), "log says what")],
)
def test_one_that_fails_says_so(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(trial: QuotaTrial, now: datetime) -> None:
        raise error

    monkeypatch.setattr(steps, "play_trial", fail)
    trial = add_trial(cast)
    steps.play_trials()
    trial.refresh_from_db()
    assert trial.status == TrialStatus.FAILED
    assert words in trial.trouble


def test_one_whose_rows_are_gone_fails_and_says_which(cast: Cast) -> None:
    add_nodes(cast, 8)
    (kind,) = load_node_kinds(cast.cluster)
    changes = [
        change_quota(cast.team_a, "3"),
        change_quota(cast.team_b, "4"),
        change_quota(cast.team_b, "5", "gpu_limit"),
        Change(ChangeKind.DEPARTMENT, str(cast.research.pk), "research", "gpu_quota", "", "7"),
        Change(ChangeKind.NODES, kind.key, kind.label, "count", "1", "3"),
    ]
    trial = add_trial(cast, *changes)
    cast.cluster.nodes.update(is_ready=False)
    type(cast.team_b).objects.filter(pk=cast.team_b.pk).update(removed_at=NOON)
    steps.play_trials()
    trial.refresh_from_db()
    assert (trial.status, trial.result) == (TrialStatus.FAILED, {})
    assert "was asked: project team-b, nodes 8 × H100. Change it further" in trial.trouble


def test_what_is_gone_is_said_in_few_words(cast: Cast) -> None:
    changes = [replace(change_quota(cast.team_a, "3"), id=str(n), name="n" * 63) for n in range(9)]
    with pytest.raises(ChangesOutdated) as caught:
        require_targets(changes, [], [])
    assert len(str(caught.value)) <= 300


def test_a_cancelled_one_stays_cancelled(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel(trial: QuotaTrial, now: datetime) -> TrialResult:
        QuotaTrial.objects.filter(pk=trial.pk).update(
            status="failed", trouble="alice cancelled it."
        )
        return play_trial(trial, now, RecordingReplayer())

    monkeypatch.setattr(steps, "play_trial", cancel)
    trial = add_trial(cast)
    steps.play_trials()
    trial.refresh_from_db()
    assert (trial.status, trial.trouble, trial.result) == ("failed", "alice cancelled it.", {})


def test_a_cancelled_one_is_not_played_on(cast: Cast) -> None:
    class CancellingReplayer(RecordingReplayer):
        def __call__(
            self, state: ClusterState, lengths: Mapping[str, float], *, end: float
        ) -> Replay:
            QuotaTrial.objects.update(status="failed")
            return super().__call__(state, lengths, end=end)

    replayer = CancellingReplayer()
    with pytest.raises(SimulatorStopped):
        play_trial(add_trial(cast), NOON, replayer)
    assert len(replayer.states) == 1


def test_the_simulator_of_a_cancelled_one_is_stopped(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator_process, "LOOK_SECONDS", 0.001)
    trial = add_trial(cast)
    answers = iter((True, False))
    monkeypatch.setattr(playing, "_is_wanted", lambda key: key == trial.pk and next(answers))
    with pytest.raises(SimulatorStopped):
        play_trial(trial, NOON)


@pytest.mark.parametrize("is_clock_ahead", [False, True])
def test_one_whose_worker_died_is_played_again_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, is_clock_ahead: bool
) -> None:
    monkeypatch.setattr(
        steps, "play_trial", lambda trial, at: play_trial(trial, at, RecordingReplayer())
    )
    passed = timedelta(minutes=11)
    far_off = timezone.now() + (passed if is_clock_ahead else -passed)
    trial = add_trial(cast, status="running", began_at=far_off, tries=1)
    steps.play_trials()
    trial.refresh_from_db()
    assert (trial.status, trial.tries) == (TrialStatus.DONE, 2)
    QuotaTrial.objects.update(status="running", began_at=far_off)
    steps.play_trials()
    trial.refresh_from_db()
    assert trial.status == TrialStatus.FAILED
    assert "twice" in trial.trouble


@pytest.mark.parametrize("minutes_ahead", [0, 9])
def test_no_second_one_is_played_beside_the_first(cast: Cast, minutes_ahead: int) -> None:
    began_at = timezone.now() + timedelta(minutes=minutes_ahead)
    add_trial(cast, status="running", began_at=began_at)
    waiting = add_trial(cast, asked_by=cast.bob)
    steps.play_trials()
    waiting.refresh_from_db()
    assert waiting.status == TrialStatus.WAITING


def test_old_trials_are_forgotten(cast: Cast) -> None:
    add_trial(cast, status="done", created_at=timezone.now() - timedelta(days=31))
    kept = add_trial(cast, status="done", created_at=timezone.now() - timedelta(days=29))
    retain()
    assert list(QuotaTrial.objects.all()) == [kept]
