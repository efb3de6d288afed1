"""Asking the simulator, in a process of its own that answers as it finds out.

Few are asked at once, since each takes a processor for some seconds; the newer question of a person
takes the place of their older one.
"""

import logging
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
_playing: "dict[int, subprocess.Popen[bytes]]" = {}
"""The simulators that play, by the number of the user who asked."""


def ask_simulator(question: Question, user_id: int) -> Iterator[AlternativeStart]:
    """Yield the simulator's answers as they come. Raises CannotAsk, before the first of them."""
    with _start_simulator(user_id) as process:
        yield from _read_answers(process, question)


@contextmanager
def _start_simulator(user_id: int) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a simulator, and end it when it is not read any more. Raises CannotAsk."""
    with _lock:
        before = _playing.pop(user_id, None)
        if before is not None:
            # Who reads it finds its end.
            before.kill()
        if len(_playing) >= AT_ONCE:
            raise CannotAsk("Others are asking just now: ask again in some seconds.")
        process = _playing[user_id] = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=FOLDER,
        )
    try:
        with process:
            try:
                yield process
            finally:
                # Nobody may be reading any more; leaving `process` waits for its end.
                process.kill()
    finally:
        with _lock:
            if _playing.get(user_id) is process:
                del _playing[user_id]
    if process.returncode not in (0, -signal.SIGKILL):
        log.warning("the simulator of alternatives ended with %d", process.returncode)


def _read_answers(
    process: "subprocess.Popen[bytes]", question: Question
) -> Iterator[AlternativeStart]:
    assert process.stdin is not None
    assert process.stdout is not None
    places = [(each.state, each.lengths, each.alternatives) for each in question.places]
    try:
        with process.stdin:
            pickle.dump((places, SEED, SECONDS), process.stdin)
        # It ends itself in time, and so does what is read.
        while True:
            yield pickle.load(process.stdout)  # noqa: S301 - of the process that was started
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        # It has ended, or was ended in the middle of an answer.
        return
