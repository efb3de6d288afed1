"""Asking the simulator, in a process of its own that answers as it finds out.

Few ask at once, since each takes a processor for some seconds; the newer question of a person takes
the place of the older one, unless they have asked for long while others were refused.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from simulation.alternatives import AlternativeStart
from workloads.alternatives.answers import AnswerBoard
from workloads.alternatives.questions import CannotAsk, Question
from workloads.forecasting.simulator_process import FOLDER

log = logging.getLogger(__name__)

SECONDS = 15.0
"""For how long a question is played."""
AT_ONCE = 2
"""People of one process who ask at once."""
TICK_SECONDS = 1.0
"""After so long without an answer the reader has a turn: they may be gone."""
SEED = 1
"""The same state gives the same answers, whoever asks."""
MODULE = "simulation.alternatives_process"

_lock = threading.Lock()


class _Turn:
    """One person's turn to ask; the process is there once the question is built."""

    def __init__(self, since: float) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.is_replaced = False
        self.since = since
        """Since when this person asks, older questions that were replaced included (monotonic)."""

    @property
    def is_over(self) -> bool:
        """Whether its process has ended, though nobody has read that."""
        return self.process is not None and self.process.poll() is not None


class _Turns:
    """Who asks in this process."""

    def __init__(self) -> None:
        self.by_user: dict[int, _Turn] = {}
        self.refused_at = 0.0
        """When somebody was last refused because others asked, as `time.monotonic` has it."""


_turns = _Turns()


def play_question(build: Callable[[], Question], user_id: int) -> Iterator[AnswerBoard]:
    """Yield the board of answers each time that more is known, or a moment has passed.

    Raises CannotAsk where nothing can be played, or it is not played to its end. To build the
    question takes some of the process as well, and so waits for its turn.
    """
    with _take_turn(user_id) as turn:
        board = AnswerBoard(build())
        for answer in _read_answers(turn, board.question):
            if answer is not None:
                board.note(answer)
            yield board
        board.is_over = True
        yield board


def play_to_end(build: Callable[[], Question], user_id: int) -> tuple[AnswerBoard | None, str]:
    """Return the board once all is played, and why it is not all where it is not.

    There is no board where nothing was played.
    """
    board = None
    try:
        for newest in play_question(build, user_id):
            board = newest
    except CannotAsk as error:
        return board, str(error)
    return board, ""


@contextmanager
def _take_turn(user_id: int) -> Iterator[_Turn]:
    """Take a person's turn, also from an older question of theirs. Raises CannotAsk."""
    with _lock:
        turn = _begin_turn(user_id, time.monotonic())
    try:
        yield turn
    finally:
        with _lock:
            if _turns.by_user.get(user_id) is turn:
                del _turns.by_user[user_id]


def _begin_turn(user_id: int, now: float) -> _Turn:
    """Begin a person's turn, and end the older one of theirs. Raises CannotAsk."""
    turns = _turns.by_user
    for key in [key for key, each in turns.items() if each.is_over]:
        del turns[key]
    older = turns.get(user_id)
    if older is None:
        if len(turns) >= AT_ONCE:
            _turns.refused_at = now
            raise CannotAsk("Others are asking just now: ask again in some seconds.")
        turns[user_id] = _Turn(now)
        return turns[user_id]
    if older.process is None:
        raise CannotAsk("Your last question is being prepared: ask again in some seconds.")
    if now - older.since >= SECONDS and _turns.refused_at > older.since:
        raise CannotAsk(
            "Others wait to ask, and your last question is still played: ask again in some seconds."
        )
    older.is_replaced = True
    older.process.kill()
    turns[user_id] = _Turn(older.since)
    return turns[user_id]


def _read_answers(turn: _Turn, question: Question) -> Iterator[AlternativeStart | None]:
    """Yield what the simulator answers, and None where it takes its time. Raises CannotAsk."""
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=FOLDER
    )
    assert process.stdin is not None
    assert process.stdout is not None
    turn.process = process
    places = [(each.state, each.lengths, each.alternatives, each.past) for each in question.places]
    answers = Connection(os.dup(process.stdout.fileno()), writable=False)
    process.stdout.close()
    try:
        with process.stdin:
            pickle.dump((places, SEED, SECONDS), process.stdin)
        # It ends itself in time, and so does what is read.
        while True:
            if not answers.poll(TICK_SECONDS):
                yield None
                continue
            answer = answers.recv()
            if answer is None:
                return
            yield answer
    except (EOFError, OSError) as error:
        raise CannotAsk(_explain_end(turn)) from error
    finally:
        # Nobody may be reading any more.
        process.kill()
        process.wait()
        answers.close()


def _explain_end(turn: _Turn) -> str:
    if turn.is_replaced:
        return "A newer question of yours took its place: ask again to play this one."
    log.warning("the simulator of alternatives ended before it had answered")
    return "The simulator failed; the web server's log says why."
