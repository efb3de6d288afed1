"""One trial: its past is loaded, played again twice, and summed up."""

import time
import uuid
from datetime import UTC, datetime
from functools import partial

from scheduling import ClusterState
from simulation.history import Replay
from workloads.elastic.cluster_state import load_queue_projects
from workloads.forecasting.simulator_process import SimulatorStopped, replay_apart
from workloads.models import OPEN_TRIALS, TRIAL_WINDOW, QuotaTrial
from workloads.past_work import load_past_work
from workloads.trials.changes import (
    change_projects,
    decode_changes,
    list_node_counts,
    require_targets,
)
from workloads.trials.node_kinds import load_node_kinds, resize_kinds
from workloads.trials.replays import Replayer, build_state, measure_lengths
from workloads.trials.results import Ends, TrialResult, summarize_trial


def play_trial(trial: QuotaTrial, now: datetime, replay: Replayer | None = None) -> TrialResult:
    """Play the last 30 days of a trial's cluster again, as it is and as tried.

    Both are replays, so that like is compared with like; each in a process of its own, unless
    `replay` is given. Raises SimulatorFailed, also where the trial is cancelled meanwhile, and
    ChangesOutdated where something that is changed is not there any more.
    """
    changes = decode_changes(trial.changes)
    projects = load_queue_projects(trial.cluster)
    kinds = load_node_kinds(trial.cluster)
    require_targets(changes, projects, (kind.key for kind in kinds))
    past = load_past_work(trial.cluster, now - TRIAL_WINDOW, now)
    begin = past.begin
    lengths = measure_lengths(past.runs, begin)
    seconds: list[float] = []
    is_wanted = partial(_is_wanted, trial.pk)
    replay = replay or partial(replay_apart, is_wanted=is_wanted)

    def play(state: ClusterState) -> Replay:
        if not is_wanted():
            raise SimulatorStopped
        began_at = time.monotonic()
        outcome = replay(state, lengths, end=now.timestamp())
        seconds.append(time.monotonic() - began_at)
        return outcome

    names = {project.pk: project.name for project in projects}
    before = play(build_state(past.runs, resize_kinds(kinds, {}), projects, begin))
    change_projects(projects, changes)
    nodes = resize_kinds(kinds, list_node_counts(changes))
    after = play(build_state(past.runs, nodes, projects, begin))
    # Where one did not come as far as the other, both count as far as that one came.
    reached = min(before.until, after.until)
    until = min(now, max(begin, datetime.fromtimestamp(reached, UTC)))
    ends = Ends(begin, until, is_whole=reached >= now.timestamp())
    return summarize_trial(past, names, ends, before.starts, after.starts, seconds)


def _is_wanted(key: uuid.UUID) -> bool:
    """Return whether nobody has cancelled a trial, or deleted its cluster."""
    return QuotaTrial.objects.filter(pk=key, status__in=OPEN_TRIALS).exists()
