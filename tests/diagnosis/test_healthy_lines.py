"""Lines that healthy programs write tell of no failure."""

import pytest

from workloads.diagnosis.failure_signs import find_sign


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
    ],
)
def test_a_line_of_trouble_beside_them_has_one(line: str) -> None:
    assert find_sign(line) is not None
