"""localkube as a package of its own: built, installed beside what it declares, and training."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.cluster import ROOT, LocalKube
from tests.conformance.api import Api
from tests.training import allreduce, digests, logs, submit, wait_for_end

PACKAGE = ROOT / "localkube"
SCHEDULING = ROOT / "scheduling"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: a build leaves its traces beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(PACKAGE, folder / "localkube", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(folder / "localkube")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    files += [path for path in (PACKAGE / "examples").iterdir() if path.suffix == ".py"]
    wanted = {
        f"localkube/{path.relative_to(PACKAGE)}"
        for path in files
        if path.suffix in (".py", ".json") or path.name == "images.toml"
    }
    assert wanted - packed == set()


def test_the_package_of_scheduling_decisions_is_in_the_wheel_once(wheel: Path) -> None:
    packed = [name for name in zipfile.ZipFile(wheel).namelist() if "scheduling/" in name]
    wanted = {f"scheduling/{path.relative_to(SCHEDULING)}" for path in SCHEDULING.rglob("*.py")}
    assert wanted
    assert set(packed) == wanted


def test_every_program_that_an_image_names_is_in_the_wheel(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    named = re.findall(r'"(\w[\w/]*\.py)"', (PACKAGE / "images.toml").read_text())
    assert named
    assert {f"localkube/{path}" for path in named} <= packed


def test_it_trains_with_what_it_declares_and_nothing_else(wheel: Path, tmp_path: Path) -> None:
    python = _install(wheel, tmp_path / "env")
    lacking = "import importlib.util as u; print(u.find_spec('django'), u.find_spec('kubernetes'))"
    found = subprocess.run([python, "-c", lacking], capture_output=True, text=True, check=True)
    assert found.stdout == "None None\n"
    with (
        LocalKube(tmp_path / "data", "--gpus", "2", python=str(python)) as cluster,
        closing(Api.from_kubeconfig(cluster.kubeconfig)) as api,
    ):
        submit(api, allreduce("train1", "--steps", "5"))
        assert wait_for_end(api, "train1") == "Succeeded"
        assert len(digests(logs(api, "train1"))) == 1


def _install(wheel: Path, home: Path) -> Path:
    """Make an environment with the wheel and the distributions that it requires; its Python.

    The distributions are those of the environment that runs the tests, so nothing is downloaded.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (metadata,) = site.glob("*.dist-info/METADATA")
    message = importlib.metadata.Distribution.at(metadata.parent)
    for name in _collect_requirements(message.requires or []):
        for file in importlib.metadata.files(name) or []:
            source, target = Path(str(file.locate())), site / file
            if ".." not in file.parts and source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(source)
    return home / "bin" / "python"


def _collect_requirements(requirements: list[str]) -> set[str]:
    """The names of these distributions and of all that they require in turn, extras included."""
    names: set[str] = set()
    pending = list(requirements)
    while pending:
        requirement = pending.pop()
        found = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement)
        assert found is not None, requirement
        name, extras = re.sub(r"[-_.]+", "-", found[1]).lower(), found[2]
        if name in names:
            continue
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            # A requirement of another platform or Python, or an extra nobody asked for.
            continue
        names.add(name)
        wanted = set((extras or "").split(",")) - {""}
        for each in required:
            extra = re.search(r"extra == ['\"]([\w-]+)['\"]", each)
            if extra is None or extra.group(1) in wanted:
                pending.append(each)
    return names
