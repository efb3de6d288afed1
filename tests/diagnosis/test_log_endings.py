"""The line that says why is found in the endings of logs as launchers and libraries write them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.workloads.objects import Object, condition, ended_pod, pytorch_job
from workloads.diagnosis import Diagnosis, diagnose_failure, find_clue

HEADER = "Traceback (most recent call last):"
FRAME = '  File "train.py", line 27, in <module>'
GPU_FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
LOST = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, remote error"
ENDED = "W0430 23:50:38.337000 134 torch/distributed/elastic/multiprocessing/api.py:851] Sending"
LAUNCHER = (
    "E0430 23:50:38.551000 134 torch/distributed/elastic/multiprocessing/api.py:826] failed "
    "(exitcode: 1) local_rank: 1 (pid: 346) of binary: /usr/bin/python",
    HEADER,
    '  File "/usr/local/bin/torchrun", line 8, in <module>',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "============================================================",
)
STEPS = tuple(
    f" {step}%|█▌        | {step}/100 [00:{step}<01:22,  2.83s/it]" for step in range(10, 30)
)


@dataclass(frozen=True, slots=True)
class LogEnding:
    """The end of a log, and the beginning of the line that says why; `cause` is None for none."""

    name: str
    lines: Sequence[str]
    line: str
    cause: str | None = None


def _number_lines(rank: int, *lines: str) -> Sequence[str]:
    """Return lines as torchrun writes those of a rank."""
    return [f"[rank{rank}]: {line}" for line in lines]


ENDINGS: Sequence[LogEnding] = (
    LogEnding(
        "the ranks of a pod alternate",
        [
            *_number_lines(1, HEADER, FRAME),
            *_number_lines(3, HEADER, FRAME, LOST),
            *_number_lines(1, GPU_FULL),
            ENDED,
            *LAUNCHER,
        ],
        GPU_FULL,
        "gpu-memory",
    ),
    LogEnding(
        "a rank that lost the other ends first",
        [
            *_number_lines(0, HEADER, FRAME, LOST),
            *_number_lines(1, HEADER, FRAME, "KeyError: 'input_ids'"),
            *LAUNCHER,
        ],
        "KeyError: 'input_ids'",
    ),
    LogEnding(
        "a rank that was interrupted",
        [
            *_number_lines(2, HEADER, FRAME, "KeyboardInterrupt"),
            *_number_lines(1, HEADER, FRAME, "ValueError: bad shape"),
        ],
        "ValueError: bad shape",
    ),
    LogEnding(
        "mpirun's prefix",
        [
            "[1,3]<stderr>:Horovod has been shut down. This was caused by an exception on a rank",
            f"[1,1]<stderr>:{HEADER}",
            f"[1,1]<stderr>:{FRAME}",
            "[1,1]<stderr>:ValueError: Input 0 of layer dense is incompatible",
            "Primary job  terminated normally, but 1 process returned",
        ],
        "ValueError: Input 0",
    ),
    LogEnding(
        "Ray's error around another one",
        [
            HEADER,
            FRAME,
            "ray.exceptions.RayTaskError(OutOfMemoryError): \x1b[36mray::Worker.step()\x1b[39m",
            '  File "worker.py", line 42, in step',
            GPU_FULL,
        ],
        GPU_FULL,
        "gpu-memory",
    ),
    LogEnding(
        "the error of a process that was spawned",
        [
            HEADER,
            FRAME,
            "torch.multiprocessing.spawn.ProcessRaisedException:",
            "",
            "-- Process 0 terminated with the following error:",
            HEADER,
            FRAME,
            "IndexError: list index out of range",
        ],
        "IndexError",
    ),
    LogEnding(
        "torchrun's report with the traceback of the rank",
        [
            *LAUNCHER,
            f"  traceback : {HEADER}",
            '    File "train.py", line 3, in main',
            "      raise ValueError",
            "  ValueError: bad rate",
        ],
        "ValueError: bad rate",
    ),
    LogEnding(
        "a logger's prefix on each line",
        [
            f"2023-07-12 02:50:34 | ERROR | stderr | {HEADER}",
            f"2023-07-12 02:50:34 | ERROR | stderr | {FRAME}",
            "2023-07-12 02:50:34 | ERROR | stderr | ValueError: bad batch",
        ],
        "ValueError: bad batch",
    ),
    LogEnding(
        "Rich's box",
        [
            "WARNING: the error rate is tracked",
            "╭───────────────── Traceback (most recent call last) ─────────────────╮",
            "│ /app/train.py:860 in main                                           │",
            "│ ❱ 860 │   raise ValueError(size)                                    │",
            "╰─────────────────────────────────────────────────────────────────────╯",
            "ValueError: batch_size must be divisible by 8",
        ],
        "ValueError: batch_size",
    ),
    LogEnding(
        "a bar in the line of the error",
        [
            "".join(f"\r{bar}" for bar in STEPS)
            + "[rank5]:[E602 11:17:52.1 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught "
            "collective operation timeout: WorkNCCL(SeqNum=105, OpType=ALLREDUCE)",
            "[rank5]:[E602 11:17:53.1 ProcessGroupNCCL.cpp:1785] Exception detected by watchdog",
        ],
        " 29%|█▌        | 29/100 [00:29<01:22,  2.83s/it][rank5]:[E602 11:17:52.1",
        "lost-peers",
    ),
    LogEnding(
        "an error at the end of a line of bars",
        ["".join(f"\r{bar}" for bar in STEPS) + "CUDA error: device-side assert triggered"],
        STEPS[-1],
        "gpu-program",
    ),
    LogEnding(
        "an error that the training outlived",
        [HEADER, FRAME, "ModuleNotFoundError: No module named 'triton'", *STEPS, "Killed"],
        "Killed",
        "killed",
    ),
    LogEnding(
        "an error before a later one, and the training between them",
        [
            HEADER,
            FRAME,
            "ModuleNotFoundError: No module named 'triton'",
            *STEPS,
            HEADER,
            FRAME,
            "IndexError: list index out of range",
        ],
        "IndexError",
    ),
    LogEnding(
        "output that is flushed after the error",
        [HEADER, FRAME, "KeyError: 'labels'", *STEPS],
        "KeyError: 'labels'",
    ),
    LogEnding(
        "a connection that was lost and did not matter",
        [HEADER, FRAME, "ConnectionRefusedError: [Errno 111]", HEADER, FRAME, GPU_FULL],
        GPU_FULL,
        "gpu-memory",
    ),
    LogEnding(
        "NCCL's error of CUDA, whose cause stands below",
        [
            HEADER,
            FRAME,
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1331, unhandled cuda error",
            "ncclUnhandledCudaError: Call to CUDA function failed.",
            "Last error:",
            "Cuda failure 214 'uncorrectable ECC error encountered'",
        ],
        "Cuda failure 214",
        "gpu-fault",
    ),
    LogEnding(
        "NCCL's error of the system, whose cause stands above",
        [
            "n1:77:91 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-ab1",
            HEADER,
            FRAME,
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1970, unhandled system error",
        ],
        "n1:77:91 [0] misc/shmutils.cc:72 NCCL WARN Error",
        "shared-memory",
    ),
    LogEnding(
        "Ascend's error of collectives, whose cause stands below",
        [
            *_number_lines(1, HEADER, FRAME, "RuntimeError: [ERROR] HCCL error in: x.cpp:64"),
            "EC0010: Failed to import Python module [ModuleNotFoundError: No module named 'tbe'].",
        ],
        "EC0010: Failed to import",
        "missing-module",
    ),
    LogEnding(
        "NCCL's search for a plugin before its watchdog",
        [
            "n1:1:1 [0] NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open shared object",
            "[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE)",
        ],
        "[E626 06:24:44.9",
        "lost-peers",
    ),
    LogEnding(
        "a fatal line of Google's loggers",
        ["1/7800 [00:01<2:37]F0000 00:00:17 client.cc:487] Core halted", "*** Begin stack ***"],
        "1/7800 [00:01<2:37]F0000",
    ),
    LogEnding(
        "a launcher's error after the assertion",
        [
            "python: aio.cpp:159: void stop_threads(): Assertion `0 == pending' failed.",
            HEADER,
            FRAME,
            "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGABRT: 6>.",
        ],
        "python: aio.cpp:159",
        "crash",
    ),
    LogEnding(
        "a warning of what the program goes on without",
        [
            "2024-01-01 10:00:00.1: W tensorflow/dso_loader.cc:64] Could not load dynamic library "
            "'libnvinfer.so.7': cannot open shared object file: No such file or directory",
            "Epoch: [0][479/1736] Loss 0.6319",
            "run.sh: line 28:  8156 Killed                  python3 main.py",
        ],
        "run.sh: line 28:  8156 Killed",
        "killed",
    ),
    LogEnding(
        "a word after an interrupt",
        [HEADER, FRAME, "KeyboardInterrupt", "Terminated"],
        "KeyboardInterrupt",
    ),
    LogEnding(
        "an error of NCCL, which it writes at WARN",
        ["n1:1:9 [0] misc/socket.cc:456 NCCL WARN socketStartConnect failed : No route to host"],
        "n1:1:9 [0]",
        "network",
    ),
    LogEnding(
        "a line that a bar erases behind itself",
        ["RuntimeError: CUDA out of memory\r\x1b[K", "bye"],
        "RuntimeError: CUDA out of memory",
        "gpu-memory",
    ),
    LogEnding(
        "workers of Ray in colours",
        [
            f"\x1b[36m({writer})\x1b[0m {line}"
            for line in (HEADER, FRAME, GPU_FULL)
            for writer in ("Trainer pid=31", "Trainer pid=32")
        ],
        GPU_FULL,
        "gpu-memory",
    ),
    LogEnding(
        "a closed socket, which is no volume",
        ["OSError: [Errno 107] Transport endpoint is not connected"],
        "OSError: [Errno 107]",
    ),
    LogEnding(
        "a healthy line of JAX before the error",
        [
            "I1009 15:47:38.1 1 coordination_service.cc:570] Initializing CoordinationService with "
            "heartbeat_timeout 100s",
            "bash: line 3: trainn: command not found",
        ],
        "bash: line 3: trainn",
        "missing-command",
    ),
    LogEnding(
        "a request that is tried again",
        [
            "'(ReadTimeoutError(HTTPSConnectionPool(host='hub', port=443): Read timed out.))' "
            "thrown while requesting HEAD https://hub/model",
            "Retrying in 1s",
            "Killed",
        ],
        "Killed",
        "killed",
    ),
    LogEnding(
        "an error before output that was written late",
        [
            "ERROR: could not write the checkpoint: No space left on device",
            *(f"step {step}/100 loss: 0.5" for step in range(20)),
        ],
        "ERROR: could not write",
        "disk-full",
    ),
    LogEnding(
        "a warning's level in brackets",
        ["[WARNING]: apex is not installed: No module named 'apex'", "Killed"],
        "Killed",
        "killed",
    ),
    LogEnding(
        "an error whose message begins in the next line",
        [
            HEADER,
            FRAME,
            "xgboost.core.XGBoostError: [10:00:00] /workspace/src/collective/result.cc:78: ",
            "- [tracker.cc:286|10:00:00]: Failed to accept connection.",
            "- [socket.h:89|10:00:00]: Failed to connect. system error:Connection refused",
        ],
        "- [socket.h:89|10:00:00]",
        "lost-peers",
    ),
    LogEnding(
        "an error whose message has no sign",
        [HEADER, FRAME, "ValueError: The columns do not match:", "  - labels", *LAUNCHER],
        "ValueError: The columns",
    ),
    LogEnding(
        "a traceback below an error that ends with a colon",
        [HEADER, FRAME, "ValueError: Bad field:", HEADER, FRAME, LOST],
        "ValueError: Bad field:",
    ),
    LogEnding(
        "an error that says that the errors above say why",
        [
            "E1120 10:00:00.1 77 cuda_dnn.cc:535] failed: CUDNN_STATUS_NOT_INITIALIZED",
            HEADER,
            FRAME,
            "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: Look at the errors above "
            "for more details.",
        ],
        "E1120 10:00:00.1 77",
        "gpu-unusable",
    ),
    LogEnding(
        "an error of ranks around that of one",
        [
            HEADER,
            FRAME,
            "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:"
            "dict_keys([0, 1])",
            f"{HEADER}: (RANK 0)",
            FRAME,
            "RuntimeError: Missing key in checkpoint state_dict: optimizer.state.",
        ],
        "RuntimeError: Missing key",
        "checkpoint",
    ),
    LogEnding(
        "what Open MPI says between two rules",
        [
            "loading data",
            "-" * 74,
            "There are not enough slots available in the system to satisfy the 16",
            "slots that were requested by the application:",
            "",
            "  python",
            "",
            "Either request fewer slots for your application, or make more slots",
            "available for use.",
            "-" * 74,
        ],
        "There are not enough slots",
    ),
    LogEnding(
        "rules of a table",
        ["-" * 74, "Settings", "-" * 74, "row 1", "row 2"],
        "row 2",
    ),
    LogEnding(
        "a code in a setting, and the error after it",
        ["config: code -4 maps to other", "ERROR: the split is empty"],
        "ERROR: the split",
    ),
    LogEnding(
        "a timeout that is configured, and the error after it",
        ["NCCL timeout: 1800 seconds, watchdog on", "ERROR: the split is empty"],
        "ERROR: the split",
    ),
    LogEnding(
        "a process that was lost and started again",
        ["worker 3 exited with code -9, restarting it", "ERROR: the split is empty"],
        "ERROR: the split",
    ),
    LogEnding(
        "the code of a wrapper beside what its program says",
        ["return code: -9", "OSError: [Errno 28] No space left on device"],
        "OSError: [Errno 28]",
        "disk-full",
    ),
    LogEnding(
        "the dump of the watchdog",
        [
            "[F1120 ProcessGroupNCCL.cpp:1557] [PG ID 0 Rank 7] Terminating the process after "
            "attempting to dump debug info, due to collective timeout or exception.",
            "Fatal Python error: Aborted",
        ],
        "[F1120 ProcessGroupNCCL.cpp:1557]",
        "lost-peers",
    ),
    LogEnding(
        "an error's word in a warning",
        ["10:00:00 WARN Retried: IOException", "10:00:01 ERROR Training Task Failed"],
        "10:00:01 ERROR Training Task Failed",
    ),
)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_the_line_that_says_why_is_found(ending: LogEnding) -> None:
    clue = find_clue(ending.lines)
    assert clue is not None
    assert clue.line.startswith(ending.line), clue.line
    assert clue.cause == ending.cause


def test_what_the_training_outlived_is_no_reason_for_a_signal() -> None:
    lines = [HEADER, FRAME, "ModuleNotFoundError: No module named 'triton'", *STEPS]
    outlived = find_clue(lines)
    assert outlived is not None
    assert outlived.cause == "missing-module"
    killed = find_clue(lines, by_signal=True)
    assert killed is not None
    assert (killed.cause, killed.is_sure, killed.index) == (None, False, len(lines) - 1)


def _diagnose(*pods: Object, logs: dict[str, Sequence[str]]) -> Diagnosis:
    diagnosis = diagnose_failure(pytorch_job(condition("Failed")), pods, logs)
    assert diagnosis is not None
    return diagnosis


@pytest.mark.parametrize(
    ("code", "cause", "confidence"),
    [
        (137, "killed", "possible"),
        (1, "missing-module", "likely"),
        (255, "missing-module", "likely"),
    ],
)
def test_a_pod_that_a_signal_ended_is_not_blamed_on_what_its_training_outlived(
    code: int, cause: str, confidence: str
) -> None:
    lines = [HEADER, FRAME, "ModuleNotFoundError: No module named 'triton'", *STEPS]
    found = _diagnose(ended_pod("worker", 0, code), logs={"train1-worker-0": lines})
    assert (found.cause, found.confidence) == (cause, confidence)


@pytest.mark.parametrize(
    "follower",
    [
        [
            "E1009 15:47:38 coordination_service.cc:1170] /job:jax_worker/task:1 has been set to "
            "ERROR: heartbeat timeout. This indicates that the remote task has failed",
            "Fatal Python error: Aborted",
        ],
        [HEADER, FRAME, "RuntimeError: Horovod has been shut down. A rank raised an exception."],
        [HEADER, FRAME, "tensorflow.errors.UnavailableError: failed to connect to all addresses"],
        [HEADER, FRAME, "KeyboardInterrupt"],
        ["terminate called after throwing an instance of 'c10::Error'", "Aborted (core dumped)"],
        [HEADER, FRAME, "elastic.multiprocessing.api.SignalException: Process 9 got signal: 15"],
        [HEADER, FRAME, "elastic.rendezvous.api.RendezvousGracefulExitError"],
        [HEADER, FRAME, "KeyboardInterrupt", "Finished"],
        [HEADER, FRAME, "ModuleNotFoundError: No module named 'triton'", *STEPS, LOST],
    ],
    ids=[
        "JAX",
        "Horovod",
        "TensorFlow",
        "interrupt",
        "abort",
        "SIGTERM",
        "rendezvous",
        "a word after it",
        "handled",
    ],
)
def test_the_rank_with_an_error_of_its_own_is_named_though_a_follower_ended_first(
    follower: Sequence[str],
) -> None:
    pods = [
        ended_pod("master", 0, 134, "2026-11-21T00:00:10Z"),
        ended_pod("worker", 0, 1, "2026-11-21T00:00:14Z"),
    ]
    logs = {"train1-master-0": follower, "train1-worker-0": [HEADER, FRAME, GPU_FULL]}
    found = _diagnose(*pods, logs=logs)
    assert (found.cause, found.rank, found.line) == ("gpu-memory", 1, GPU_FULL)
