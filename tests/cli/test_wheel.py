"""The command line as a package of its own: built, and run from its wheel alone."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from muster_cli import VERSION
from tests.cluster import ROOT

PACKAGE = ROOT / "cli"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: a build leaves its traces beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(PACKAGE, folder / "cli", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    build = [*command, "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "cli")]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    source = PACKAGE / "src"
    wanted = {
        str(path.relative_to(source))
        for path in source.rglob("muster_cli/**/*")
        if path.suffix in (".py", ".json") or path.name == "py.typed"
    }
    assert wanted
    assert wanted - packed == set()
    assert wheel.name == f"muster_cli-{VERSION}-py3-none-any.whl"


def test_it_runs_from_its_wheel_without_the_server(wheel: Path, tmp_path: Path) -> None:
    program = (
        "import sys; sys.argv = ['muster', 'submit', 'pytorch', '--help'];"
        "from muster_cli.commands.root import root; from muster_cli.program import run_command;"
        "run_command(root, 'muster');"
        "names = {each.partition('.')[0] for each in sys.modules};"
        "print(sorted(names & {'django', 'workloads', 'console', 'yaml', 'rich', 'requests'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_unpack(wheel, tmp_path))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    assert "--gpus" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def _unpack(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "packages")
        entries = archive.read(f"muster_cli-{VERSION}.dist-info/entry_points.txt").decode()
    assert "muster = muster_cli.__main__:main" in entries
    return folder / "packages"
