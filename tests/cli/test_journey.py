"""The walk by command line, on an installation with a cluster that runs pods."""

from pathlib import Path

import pytest

from tests.cli.running import CommandLine
from tests.installation import PASSWORD, Installation

SUBMIT = (
    *("submit", "pytorch", "train1", "--image", "muster/allreduce", "--workers", "2"),
    *("--gpu-portion", "0.1", "--cpu", "0.1", "--memory", "100M"),
)


@pytest.mark.timeout(900)
def test_a_workload_is_walked_through_its_life(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    muster = CommandLine(home)
    with Installation(tmp_path / "data").migrated() as installation:
        given = PASSWORD.search(installation.output)
        assert given is not None
        sign_in = ("login", installation.url, "--user", "admin", "--password-stdin")
        muster(*sign_in, stdin=given["password"])
        muster("project", "set", "team-a")
        assert "kind: PyTorchJob" in muster(*SUBMIT, "--dry-run").out
        submitted = muster(*SUBMIT, "--wait", "--timeout", "3m")
        assert "train1: Completed" in submitted.err
        digests = [
            line.split()[2]
            for line in muster("logs", "train1").out.splitlines()
            if "digest" in line
        ]
        assert len(digests) == 3
        assert len(set(digests)) == 1
        muster("run", "train1")
        followed = muster("logs", "train1", "-f", "--rank", "1").out
        assert followed.count("digest") == 1
        muster("wait", "train1", "--timeout", "2m")
        assert muster("get", "train1", "-o", "json").parse()["additionalFields"]["attempt"] == 2
        muster("submit", "pytorch", "big", "--image", "muster/allreduce", "--gpus", "64")
        muster("wait", "big", "--for", "running", "--timeout", "1s", code=124)
        assert "GPU" in muster("why", "big").out
        muster("stop", "big", "--wait")
        muster("delete", "big", "train1", "--yes", "--wait")
        assert not muster("list", "-o", "name").out
