"""The step that plays quota trials, one at a time."""

import logging
import time
from datetime import datetime, timedelta

from django.db.models import Exists
from django.utils import timezone

from clusters.tasks import claim_task
from console.celery import step
from workloads.forecasting.simulator_process import SimulatorFailed
from workloads.models import QuotaTrial, TrialStatus
from workloads.trials import ChangesOutdated, play_trial
from workloads.trials.results import encode_result

log = logging.getLogger(__name__)

LOST_AFTER = timedelta(minutes=10)
"""A trial that was begun so long ago has lost its worker: two replays take half of that.

So has one that begins only so much later: the clock of its worker was ahead.
"""
MOST_TRIES = 2


@step
def play_trials() -> None:
    """Play the trial that has waited longest, if none is being played.

    May run twice, late or beside another process: a trial is begun by a guarded update.
    """
    with claim_task("trials", "all") as is_claimed:
        if not is_claimed:
            return
        now = timezone.now()
        _settle_lost_trials(now)
        trial = _begin_next_trial(now)
        if trial is None:
            return
        _play(trial)
    # Not before the claim is given back: the next one would find it taken.
    play_trials.enqueue()


def _settle_lost_trials(now: datetime) -> None:
    """Let trials whose worker died wait again; a second time they have failed."""
    lost_trials = QuotaTrial.objects.filter(status=TrialStatus.RUNNING).exclude(
        began_at__range=(now - LOST_AFTER, now + LOST_AFTER)
    )
    lost_trials.filter(tries__lt=MOST_TRIES).update(status=TrialStatus.WAITING)
    lost_trials.filter(tries__gte=MOST_TRIES).update(
        status=TrialStatus.FAILED,
        trouble="The worker that played it ended before it was done, twice. Try it again; if that "
        "repeats itself, the worker may have too little memory.",
    )


def _begin_next_trial(now: datetime) -> QuotaTrial | None:
    """Begin the trial that has waited longest; None where there is none, or one is played."""
    played = QuotaTrial.objects.filter(status=TrialStatus.RUNNING)
    rows = QuotaTrial.objects.filter(status=TrialStatus.WAITING).order_by("created_at", "pk")
    trial = rows.select_related("cluster").first()
    if trial is None:
        return None
    begun = QuotaTrial.objects.filter(
        ~Exists(played), pk=trial.pk, status=TrialStatus.WAITING
    ).update(status=TrialStatus.RUNNING, began_at=now, tries=trial.tries + 1)
    if begun != 1:
        return None
    trial.began_at = now
    return trial


def _play(trial: QuotaTrial) -> None:
    """Play a trial and write down what came out, unless somebody cancelled it meanwhile."""
    began_at = time.monotonic()
    now = timezone.now()
    result, trouble = {}, ""
    try:
        result = encode_result(play_trial(trial, now))
    except (SimulatorFailed, ChangesOutdated) as error:
        trouble = str(error)
    except Exception:
        # It would wait and fail for ever, and all others behind it.
        log.exception("the quota trial %s failed", trial.pk)
        trouble = "Something went wrong; the worker's log says what."
    QuotaTrial.objects.filter(
        pk=trial.pk, status=TrialStatus.RUNNING, began_at=trial.began_at
    ).update(
        status=TrialStatus.FAILED if trouble else TrialStatus.DONE,
        trouble=trouble[:300],
        result=result,
        computed_at=now,
        took_seconds=time.monotonic() - began_at,
    )
