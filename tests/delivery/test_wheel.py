"""Data delivery as a package of its own: built, and imported from its wheel alone."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from muster_delivery import VERSION
from tests.cluster import ROOT

PACKAGE = ROOT / "delivery"


def test_the_wheel_has_everything_and_works_without_the_server(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(PACKAGE, tmp_path / "delivery", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(tmp_path), str(tmp_path / "delivery")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"muster_delivery-{VERSION}-py3-none-any.whl"
    source = PACKAGE / "src"
    wanted = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert wanted - set(zipfile.ZipFile(wheel).namelist()) == set()
    zipfile.ZipFile(wheel).extractall(tmp_path / "packages")
    program = "import sys, taas; print(taas.register([1]), 'torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "packages")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[1] False\n"
