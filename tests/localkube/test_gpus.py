"""Which devices the node offers; nvidia-smi is a script on the PATH."""

from pathlib import Path

import pytest

from localkube.kubelet import gpus

TWO = "0, GPU-aaaa, NVIDIA H200, 143771\n1, GPU-bbbb, NVIDIA H200, 143771\n"


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name, the only one on the PATH beside the shell's own."""
    script = tmp_path / "bin" / "nvidia-smi"
    script.parent.mkdir()
    monkeypatch.setenv("PATH", f"{script.parent}:/bin")
    return script


def write_answer(script: Path, text: str, code: int = 0) -> None:
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\nexit {code}\n")
    script.chmod(0o755)


def test_real_devices_are_offered_in_their_order(nvidia_smi: Path) -> None:
    write_answer(nvidia_smi, TWO)
    assert [
        (gpu.index, gpu.product, gpu.memory_mib, gpu.virtual) for gpu in gpus.detect_gpus(None)
    ] == [
        (0, "NVIDIA-H200", 143771, False),
        (1, "NVIDIA-H200", 143771, False),
    ]


def test_of_real_devices_no_more_are_offered_than_wanted(nvidia_smi: Path) -> None:
    write_answer(nvidia_smi, TWO)
    assert [gpu.uuid for gpu in gpus.detect_gpus(1)] == ["GPU-aaaa"]


def test_without_nvidia_smi_the_devices_are_virtual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = gpus.detect_gpus(None)
    assert len(found) == gpus.VIRTUAL_COUNT
    assert all(gpu.virtual and gpu.memory_mib == 16384 for gpu in found)


def test_a_failing_nvidia_smi_counts_as_none(nvidia_smi: Path) -> None:
    write_answer(nvidia_smi, TWO, code=9)
    assert [gpu.virtual for gpu in gpus.detect_gpus(2)] == [True, True]


def test_a_device_that_hides_its_memory_is_left_out(nvidia_smi: Path) -> None:
    write_answer(nvidia_smi, "0, GPU-aaaa, NVIDIA H200, [N/A]\n1, GPU-bbbb, NVIDIA H200, 143771\n")
    assert [gpu.index for gpu in gpus.detect_gpus(None)] == [1]


def test_no_devices_can_be_asked_for(nvidia_smi: Path) -> None:
    write_answer(nvidia_smi, TWO)
    assert list(gpus.detect_gpus(0)) == []
