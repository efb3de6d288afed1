"""Asking the simulator, in a process of its own that answers as it finds out.

Few are asked at once, since each takes a processor for some seconds; nobody asks twice at once.
"""

import logging
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from console.streams import StreamCounter
from simulation.alternatives import AlternativeStart
from workloads.alternatives.questions import CannotAsk, Question
from workloads.forecasting.simulator_process import FOLDER

log = logging.getLogger(__name__)

SECONDS = 15.0
"""For how long a question is played."""
AT_ONCE = 2
"""Questions of one process at once."""
SEED = 1
"""The same state gives the same answers, whoever asks."""
MODULE = "simulation.alternatives_process"

_lock = threading.Lock()
_everybody = StreamCounter(AT_ONCE)
_askers = StreamCounter(1)
_ALL = 0
"""The key by which all questions are counted together."""


def ask_simulator(question: Question, user_id: int) -> Iterator[AlternativeStart]:
    """Yield the simulator's answers as they come. Raises CannotAsk, before the first of them."""
    with _take_turn(user_id):
        yield from _read_answers(question)


@contextmanager
def _take_turn(user_id: int) -> Iterator[None]:
    """Take a place among the questions that are played. Raises CannotAsk where there is none."""
    with ExitStack() as places:
        with _lock:
            if _askers.is_full(user_id):
                raise CannotAsk("Your last question is still played: ask again in some seconds.")
            if _everybody.is_full(_ALL):
                raise CannotAsk("Others are asking just now: ask again in some seconds.")
            places.enter_context(_askers.count_stream(user_id))
            places.enter_context(_everybody.count_stream(_ALL))
        yield


def _read_answers(question: Question) -> Iterator[AlternativeStart]:
    places = [(each.state, each.lengths, each.alternatives) for each in question.places]
    with subprocess.Popen(
        [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=FOLDER
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with process.stdin:
                pickle.dump((places, SEED, SECONDS), process.stdin)
            # It ends itself in time, and so does what is read.
            while True:
                yield pickle.load(process.stdout)  # noqa: S301 - of the process that was started
        except (EOFError, BrokenPipeError):
            pass
        finally:
            # Nobody may be reading any more.
            process.kill()
    if process.returncode not in (0, -signal.SIGKILL):
        log.warning("the simulator of alternatives ended with %d", process.returncode)
