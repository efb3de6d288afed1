"""Why a workload failed, in a sentence, and never more of a stranger's text than fits."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.objects import Object, batch_job, condition, ended_pod, pod, pytorch_job
from workloads.diagnosis import Diagnosis, diagnose_failure, find_clue

JOB = pytorch_job(condition("Created"))
FAILED = pytorch_job(condition("Failed", reason="PyTorchJobFailed", message="1 replica failed."))
TRACE = [
    "step 1",
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "    raise ValueError('bad data')",
    "ValueError: bad data",
]


def diagnose(
    *pods: Object, logs: Mapping[str, list[str]] | None = None, job: Object = FAILED
) -> Diagnosis:
    diagnosis = diagnose_failure(job, pods, logs)
    assert diagnosis is not None
    return diagnosis


def test_the_rank_whose_own_error_it_was_is_named_though_another_ended_before_it() -> None:
    pods = [
        ended_pod("master", 0, 1, "2026-11-21T00:00:10Z"),
        ended_pod("worker", 0, 1, "2026-11-21T00:00:11Z"),
        ended_pod("worker", 1, 143, "2026-11-21T00:00:12Z"),
    ]
    logs = {"train1-master-0": ["RuntimeError: Connection reset by peer"], "train1-worker-0": TRACE}
    diagnosis = diagnose(*pods, logs=logs)
    assert (
        diagnosis.sentence == "Worker 0 (rank 1) failed first: the program ended with exit code 1."
    )
    assert (diagnosis.pod, diagnosis.container, diagnosis.line, diagnosis.line_index) == (
        "train1-worker-0",
        "pytorch",
        "ValueError: bad data",
        4,
    )


def test_a_failure_long_before_the_others_is_the_first_whatever_its_log_says() -> None:
    pods = [
        ended_pod("worker", 0, 1, "2026-11-21T00:05:00Z"),
        ended_pod("worker", 1, 1, "2026-11-21T00:00:00Z"),
    ]
    diagnosis = diagnose(
        *pods, logs={"train1-worker-0": TRACE, "train1-worker-1": ["connection refused"]}
    )
    assert diagnosis.pod == "train1-worker-1"
    assert "another pod's log" in diagnosis.help


WORDS = [
    (
        ended_pod(
            "worker", 1, 137, end={"reason": "OOMKilled"}, resources={"limits": {"memory": "1Gi"}}
        ),
        "it was killed for using more memory than its limit of 1 GiB",
    ),
    (ended_pod("worker", 1, 137), "it was killed (SIGKILL, exit code 137)"),
    (ended_pod("worker", 1, 143), "it was asked to end (SIGTERM, exit code 143)"),
    (ended_pod("worker", 1, 139), "it crashed with SIGSEGV (exit code 139)"),
    (ended_pod("worker", 1, 127), "its command was not found (exit code 127)"),
    (ended_pod("worker", 1, 126), "its command cannot be executed (exit code 126)"),
    (ended_pod("worker", 1, 255), "the program ended with exit code 255"),
    (ended_pod("worker", 1, 3, restarts=2), "the program ended with exit code 3, after 2 restarts"),
    (
        ended_pod("worker", 1, 128, end={"reason": "StartError", "message": "no such file"}),
        "its container could not be started: no such file",
    ),
    (
        ended_pod("worker", 1, 137, reason="Evicted", message="low on disk"),
        "the cluster ended it (Evicted): low on disk",
    ),
]


@pytest.mark.parametrize(("obj", "words"), WORDS, ids=[words for _, words in WORDS])
def test_an_end_is_told_in_words(obj: Object, words: str) -> None:
    assert diagnose(pod("master"), obj).sentence == f"Worker 1 (rank 2) failed first: {words}."


def test_the_only_pod_is_not_called_the_first() -> None:
    diagnosis = diagnose(
        ended_pod("", 0, 1, name="solo-x"),
        job=batch_job(condition("Failed", reason="BackoffLimitExceeded")),
    )
    assert diagnosis.sentence == "The pod failed: the program ended with exit code 1."


def test_a_container_that_was_started_again_is_judged_by_its_last_end() -> None:
    again = pod(
        "worker", 0, restarts=1, last={"terminated": {"exitCode": 1, "message": "\n".join(TRACE)}}
    )
    diagnosis = diagnose(pod("master"), again, job=JOB)
    assert (
        diagnosis.sentence
        == "Worker 0 (rank 1) failed first: the program ended with exit code 1, after 1 restart."
    )
    assert diagnosis.line == "ValueError: bad data"


def test_a_run_that_was_asked_to_end_does_not_hide_the_failure_before_it() -> None:
    before = {
        "terminated": {
            "exitCode": 3,
            "message": "\n".join(TRACE),
            "finishedAt": "2026-11-21T00:00:00Z",
        }
    }
    pods = [ended_pod("master", 0, 143, restarts=1, last=before), ended_pod("worker", 0, 143)]
    diagnosis = diagnose(*pods, logs={"train1-master-0": ["step 1 again"]})
    assert (
        diagnosis.sentence
        == "The master (rank 0) failed first: the program ended with exit code 3, after 1 restart."
    )
    assert (diagnosis.line, diagnosis.line_index) == ("ValueError: bad data", None)


@pytest.mark.parametrize(
    ("before", "blamed"), [("2026-11-21T00:00:00Z", 1), ("2026-11-24T00:00:00Z", 0)]
)
def test_a_restart_of_long_ago_does_not_explain_why_a_pod_was_asked_to_end(
    before: str, blamed: int
) -> None:
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": before}}
    pods = [
        ended_pod("worker", 0, 143, "2026-11-24T00:00:12Z", restarts=1, last=killed),
        ended_pod("worker", 1, 1, "2026-11-24T00:00:10Z"),
    ]
    logs = {"train1-worker-0": ["step 100000"], "train1-worker-1": TRACE}
    diagnosis = diagnose(*pods, logs=logs)
    assert diagnosis.pod == f"train1-worker-{blamed}"
    assert diagnosis.cause == ("exit-code" if blamed else "memory")


JOBS = [
    (
        batch_job(condition("Failed", reason="DeadlineExceeded", message="too long")),
        "It ran longer than it was allowed to: too long.",
    ),
    (
        batch_job(condition("Failed", reason="BackoffLimitExceeded")),
        "It was tried as often as its backoff limit allows.",
    ),
    (
        pytorch_job(condition("Failed", reason="PyTorchJobFailedValidation", message="no Worker")),
        "The training operator refused it: no Worker.",
    ),
    (FAILED, "1 replica failed."),
    (pytorch_job(condition("Failed")), "The job failed (no reason is given)."),
]


@pytest.mark.parametrize(("job", "sentence"), JOBS, ids=range(len(JOBS)))
def test_without_a_pod_the_job_says_why(job: Object, sentence: str) -> None:
    assert diagnose(job=job).sentence == sentence


def test_a_job_that_ended_well_did_not_fail() -> None:
    assert (
        diagnose_failure(pytorch_job(condition("Succeeded")), [ended_pod("worker", 0, 1)]) is None
    )


CUDA = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"
NCCL = "[E ProcessGroupNCCL.cpp:1] Watchdog caught collective operation timeout"
CLUES = [
    (TRACE, "ValueError: bad data", True),
    (
        [
            *TRACE,
            "",
            "During handling of the above exception, another exception occurred:",
            *TRACE[1:4],
            "KeyError: 1",
        ],
        "ValueError: bad data",
        True,
    ),
    (
        [f"2026-11-21T00:00:00.123456789Z [rank0]: {line}" for line in TRACE],
        "ValueError: bad data",
        True,
    ),
    (
        ["\x1b[31mTraceback (most recent call last):\x1b[0m", "  x", "my.pkg.Oops: no"],
        "my.pkg.Oops: no",
        True,
    ),
    (["error: retrying", CUDA], CUDA, True),
    (
        ["NCCL WARN watchdog timeout", "bash: trian: command not found"],
        "bash: trian: command not found",
        True,
    ),
    (["fine", NCCL], NCCL, True),
    (["start", "Killed"], "Killed", True),
    (["one", "FATAL: nothing works", "two"], "FATAL: nothing works", True),
    (["one", "two", "", "  "], "two", False),
]


@pytest.mark.parametrize(("lines", "line", "sure"), CLUES, ids=[line[:40] for _, line, _ in CLUES])
def test_the_line_that_started_it_is_found(lines: list[str], line: str, sure: bool) -> None:
    clue = find_clue(lines)
    assert clue is not None
    assert (clue.line, clue.is_sure) == (line, sure)
    assert line in lines[clue.index].replace("\x1b[0m", "")


def test_no_lines_have_no_clue() -> None:
    assert find_clue([]) is None
    assert find_clue(["", "\x00"]) is None


def test_help_fits_what_the_log_says() -> None:
    diagnosis = diagnose(
        ended_pod("worker", 0, 1),
        pod("master"),
        logs={"train1-worker-0": ["ModuleNotFoundError: No module named 'x'"]},
    )
    assert diagnosis.help == (
        "The image lacks a module that the program needs: add it to the image, or choose "
        "another image."
    )


def test_a_huge_hostile_log_is_cut() -> None:
    lines = ["nccl" * 100_000, "<script>error</script>" + "\x1b[31m" * 1000 + "x" * 10_000] * 3000
    clue = find_clue(lines)
    assert clue is not None
    assert clue.line.startswith("<script>error</script>")
    assert len(clue.line) <= 500


@settings(max_examples=100)
@given(st.lists(st.text(max_size=60), max_size=20), st.integers(0, 255))
def test_any_log_and_exit_code_give_bounded_text(lines: list[str], code: int) -> None:
    diagnosis = diagnose_failure(FAILED, [ended_pod("worker", 0, code)], {"train1-worker-0": lines})
    assert diagnosis is not None
    assert len(diagnosis.sentence) < 2000
    assert "\x1b" not in diagnosis.sentence + diagnosis.line
    assert diagnosis.line_index is None or diagnosis.line_index < len(lines)


BARRIER = "RuntimeError: [Rank 0]: Rank {} failed to pass monitoredBarrier in 30000 ms"


def test_the_rank_that_did_not_come_is_named_and_not_the_one_that_waited() -> None:
    pods = [
        ended_pod("master", 0, 1, "2026-11-21T00:00:40Z"),
        ended_pod("worker", 1, 137, "2026-11-21T00:00:50Z"),
    ]
    found = diagnose(*pods, logs={"train1-master-0": [*TRACE[:4], BARRIER.format(2)]})
    assert found.sentence == (
        "The master (rank 0) failed first: rank 2 did not come to the collective in which it "
        "waited."
    )
    assert (found.cause, found.rank, found.confidence) == ("missing-rank", 2, "certain")
    assert (found.pod, found.line, found.line_index) == (
        "train1-master-0",
        BARRIER.format(2),
        4,
    )


def test_a_process_of_each_gpu_is_counted_to_its_pod() -> None:
    waiting = ended_pod("master", 0, 1, resources={"limits": {"nvidia.com/gpu": "8"}})
    assert diagnose(waiting, logs={"train1-master-0": [BARRIER.format(17)]}).rank == 2


def test_what_the_cluster_says_counts_for_more_than_who_was_missed() -> None:
    killed = ended_pod("master", 0, 137, end={"reason": "OOMKilled"})
    found = diagnose(killed, logs={"train1-master-0": [BARRIER.format(1)]})
    assert (found.cause, found.rank, found.confidence) == ("memory", 0, "certain")


@pytest.mark.parametrize(
    ("code", "line", "cause", "confidence"),
    [
        (1, "torch.OutOfMemoryError: CUDA out of memory.", "gpu-memory", "likely"),
        (1, "ModuleNotFoundError: No module named 'apex'", "missing-module", "likely"),
        (1, "RuntimeError: Connection reset by peer", "lost-peers", "possible"),
        (1, "ValueError: bad data", "exit-code", "likely"),
        (1, "step 7 of 10", "exit-code", "possible"),
        (127, "sh: 1: trian: not found", "missing-command", "certain"),
        (137, "step 7 of 10", "killed", "possible"),
        (139, "step 7 of 10", "crash", "possible"),
    ],
)
def test_a_failure_has_a_cause_for_programs(
    code: int, line: str, cause: str, confidence: str
) -> None:
    found = diagnose(ended_pod("worker", 0, code), logs={"train1-worker-0": [line]})
    assert (found.cause, found.confidence) == (cause, confidence)
