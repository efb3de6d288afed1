"""The README's walk by curl, taken from the README and run as it stands there, on a new
installation.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster import ROOT
from tests.installation import Installation

PASSWORD = "as the readme says"


def block(heading: str) -> str:
    """The first shell block below a heading of the README."""
    text = (ROOT / "README.md").read_text().partition(f"## {heading}\n")[2]
    found = re.search(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"the README has no shell block below {heading}"
    return found[1]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on this machine")
@pytest.mark.timeout(900)
def test_the_walk_by_curl_runs_to_its_end(tmp_path: Path) -> None:
    with Installation(tmp_path / "var", admin_password=PASSWORD) as muster:
        given = os.environ | {"MUSTER": muster.url, "MUSTER_PASSWORD": PASSWORD}
        script = f"set -euo pipefail\n{block('The walk, by curl')}"
        done = subprocess.run(
            ["bash", "-c", script], env=given, capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    for text in ("dist-train1-master-0", "dist-train1-worker-1", "Completed", "step"):
        assert text in done.stdout, f"{text} is not in:\n{done.stdout[-4000:]}"
