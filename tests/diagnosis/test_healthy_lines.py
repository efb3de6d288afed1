"""Lines that healthy programs write tell of no failure."""

import time

import pytest

from tests.diagnosis.failing_causes import BY_LINE
from workloads.diagnosis.failure_signs import SIGNS, find_sign


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
    ],
)
def test_a_line_of_trouble_beside_them_has_one(line: str) -> None:
    assert find_sign(line) is not None


def test_the_quick_search_passes_over_no_line_with_a_sign() -> None:
    lines = [line for cause in BY_LINE for log in cause.logs.values() for line in log]
    assert lines
    for line in lines:
        matches = any(sign.pattern.search(line.lower()) for sign in SIGNS)
        assert (find_sign(line) is not None) == matches, line


def test_long_lines_that_nearly_have_a_sign_take_milliseconds() -> None:
    for line in ("nccl " * 60 + "x" * 100 + " watchdog", "loss " * 60 + "x" * 100 + " is nan"):
        begin = time.process_time()
        assert all(find_sign(line) is None for _ in range(100))
        assert time.process_time() - begin < 1
