"""Lines that healthy programs write tell of no failure."""

import time

import pytest

from tests.diagnosis.failing_causes import BY_LINE
from tests.diagnosis.test_log_endings import ENDINGS
from workloads.diagnosis.failure_signs import SIGNS, find_sign, is_below_error


@pytest.mark.parametrize(
    "line",
    [
        "Successfully opened dynamic library libcuda.so.1",
        "INFO loading state_dict from /ckpt/10",
        "loading state_dict from /ckpt/10",
        "0 uncorrectable ECC errors since boot",
        "no ECC error found",
        "NCCL INFO NVLink topology: no error found",
        "INFO val loss nan or inf check enabled",
        "2026-11-28 04:00:00 DEBUG retry: connection reset is handled",
        "worker pid=31 xid=13 tx committed",
        "Detected InfiniBand device mlx5_0",
        "the loss is informative",
        "NOTE: overflow detected, setting loss scale to: 0.25",
        "WARNING: apex is not installed: No module named 'apex'",
        "torch/cuda/__init__.py:82: UserWarning: CUDA initialization: CUDA unknown error",
        "2024-01-01 10:00:00: W tensorflow/dso_loader.cc:64] Could not load dynamic library "
        "'libnvinfer.so.7': cannot open shared object file",
        "[W socket.cpp:464] [c10d] failed to bind to [::]:29500 (Address already in use).",
        "coordination_service_agent.cc:304] Coordination agent has successfully connected.",
        "n1:1:1 [0] NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file",
        "/opt/conda/envs/train/lib/python3.10/multiprocessing/resource_tracker.py:237: "
        "UserWarning: resource_tracker: '/af06_barrier': [Errno 2] No such file or directory",
        "installed handlers for SIGABRT and SIGTERM",
        "process finished with code 0",
        "error code -4 in config is remapped to 0",
        "status code -8 from the tokenizer means padding",
        "code -7 maps to label 'other'",
        "step 100 loss 2.1 | code -4",
        "return code = -9 is ignored by the retry policy",
        "the exit code -11 means that a worker crashed; see docs",
        "retrying shard 3 after code -9 (attempt 2/5)",
        "subprocess finished with return code -9, restarting it (1/3)",
        "0 workers exited with code 0, -9 stands for SIGKILL",
        "faulthandler enabled: on segmentation fault a traceback is written",
        "Segmentation fault handler installed",
        "will dump core on fatal python error",
        "Loaded dataset 'bus error reports' with 1200 rows",
        "token 'double free or corruption' added to vocabulary",
        "ProcessGroupNCCL initialization options:NCCL_ASYNC_ERROR_HANDLING: 1, "
        "NCCL_BLOCKING_WAIT: 0, TIMEOUT(ms): 1800000, USE_HIGH_PRIORITY_STREAM: 0",
        "[I ProcessGroupNCCL.cpp:874] [Rank 0] NCCL watchdog thread started!",
        "NCCL timeout: 1800 seconds",
        "nccl_timeout=600, abort_on_error=True",
        "--nccl-timeout 600",
        "watchdog timeout set to 600 s for NCCL",
        "collective timeout: 600 s",
        "skip_nan: found nans=0",
        "val error: 503.2",
        "mean error 404",
        "503 Server Error: Service Unavailable for url: https://hub; retrying in 2 s",
        "max retries exceeded: 0",
        "connection refused count: 0",
        "workers exited with code 1371",
        "exit code 137 stands for SIGKILL",
    ],
)
def test_a_healthy_line_has_no_sign(line: str) -> None:
    assert find_sign(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "10 uncorrectable ECC errors",
        "node1:77:91 [0] NCCL INFO NET/Socket : connection closed by peer",
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "2024-01-01 10:00:00: W tensorflow/op_kernel.cc:1745] OP_REQUIRES failed: OOM when "
        "allocating tensor with shape[64,512] on /device:GPU:0 by allocator GPU_0_bfc",
        "[WORKER 3] FileNotFoundError: /data/train.bin",
        "train exited with code -9",
        "Process SpawnProcess-1 died with exit code -11",
        "return code: -9",
        "Process 3 exit with status code 137.",
        "<SpawnProcess name='x' pid=7 parent=1 stopped exitcode=-SIGKILL>",
        "The exit codes of the workers are {SIGKILL(-9)}",
        "  traceback : Signal 11 (SIGSEGV) received by PID 79",
        "run.sh: line 3:    77 Segmentation fault      python train.py",
        "run.sh: line 3:    77 Bus error               python train.py",
        "Timeout at NCCL work: 5, last enqueued NCCL work: 7",
    ],
)
def test_a_line_of_trouble_beside_them_has_one(line: str) -> None:
    assert find_sign(line) is not None


def test_the_quick_search_passes_over_no_line_with_a_sign() -> None:
    lines = [line for cause in BY_LINE for log in cause.logs.values() for line in log]
    lines += [
        line
        for ending in ENDINGS
        for line in ending.lines
        if not is_below_error(line) and "restarting" not in line
    ]
    assert lines
    for line in lines:
        matches = any(sign.pattern.search(line.lower()) for sign in SIGNS)
        assert (find_sign(line) is not None) == matches, line


def test_a_number_at_the_end_of_a_line_says_less_than_a_launcher() -> None:
    """A wrapper's "return code: -9" may be that of anything that it ran."""
    vague, own = find_sign("return code: -9"), find_sign("train exited with code -9")
    assert vague is not None
    assert own is not None
    assert vague.cause == own.cause == "killed"
    assert vague.weight > own.weight


def test_long_lines_that_nearly_have_a_sign_take_milliseconds() -> None:
    for line in (
        "nccl " * 60 + "x" * 100 + " watchdog",
        "loss " * 60 + "x" * 100 + " is nan",
        "exited with " * 40 + "code",
        "status failed cmd " * 25 + " code",
        "cannot find " * 40,
        "api key " * 60,
    ):
        begin = time.process_time()
        assert all(find_sign(line) is None for _ in range(100))
        assert time.process_time() - begin < 1
