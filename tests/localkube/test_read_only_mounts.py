"""Read-only mounts: who may write where, as root and as another user, and what stays writable."""

import errno
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localkube.kubelet import launch, read_only_mounts
from localkube.kubelet.machine_division import NodeShare
from localkube.kubelet.node import build_labels
from localkube.kubelet.volumes import build_mounts
from localkube.metadata import Object
from localkube.options import READ_ONLY_LABEL
from localkube.resources import PERSISTENTVOLUMECLAIMS
from tests.localkube.kubelets import TEAM, Machine, machine, pod, shell

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not read_only_mounts.is_enforceable(), reason="this kernel has no Landlock of ABI 3"
    ),
]
NOBODY = 65534
USERS = [None, NOBODY] if os.geteuid() == 0 else [None]
"""The user of the tests and, where that is root, another one."""


def run_restricted(act: Callable[[], object], read_only: list[Path], uid: int | None) -> str:
    """Run a function in a process whose changes are restricted; return what went wrong, or ""."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = ""
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            ruleset = read_only_mounts.build_ruleset([str(path) for path in read_only])
            read_only_mounts.apply_ruleset(ruleset)
            act()
        except OSError as error:
            text = errno.errorcode[error.errno or 0]
        except AssertionError:
            text = traceback.format_exc()
        finally:
            os.write(writer, text.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory that every user may reach and write to, as the claims of a cluster."""
    for name in ("kept", "free", "kept/below"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    for name in ("kept/file", "kept/below/file", "free/file"):
        (tmp_path / name).write_text("before")
        (tmp_path / name).chmod(0o666)
    closed = {
        above: above.stat().st_mode
        for above in (tmp_path, *tmp_path.parents)
        if os.geteuid() == 0 and above.stat().st_mode & 0o055 != 0o055
    }
    for above, mode in closed.items():
        above.chmod(mode | 0o055)
    yield tmp_path
    for above, mode in closed.items():
        above.chmod(mode)


CHANGES: dict[str, Callable[[Path], object]] = {
    "write": lambda at: (at / "file").write_text("after"),
    "append": lambda at: (at / "file").open("a").write("more"),
    "truncate": lambda at: os.truncate(at / "file", 0),
    "create": lambda at: (at / "new").touch(),
    "remove": lambda at: (at / "file").unlink(),
    "rename": lambda at: (at / "file").rename(at / "other"),
    "make a directory": lambda at: (at / "new").mkdir(),
    "make a link": lambda at: (at / "new").symlink_to("/"),
    "make a pipe": lambda at: os.mkfifo(at / "new"),
    "write below": lambda at: (at / "below" / "file").write_text("after"),
}


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("change", CHANGES)
def test_nothing_below_a_read_only_mount_changes(
    folder: Path, change: str, uid: int | None
) -> None:
    kept = folder / "kept"
    before = sorted((str(path), path.is_file()) for path in kept.rglob("*"))
    assert run_restricted(lambda: CHANGES[change](kept), [kept], uid) == "EACCES"
    assert sorted((str(path), path.is_file()) for path in kept.rglob("*")) == before
    assert (kept / "file").read_text() == (kept / "below" / "file").read_text() == "before"


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("change", [name for name in CHANGES if name != "write below"])
def test_everything_beside_it_can_be_changed(folder: Path, change: str, uid: int | None) -> None:
    assert run_restricted(lambda: CHANGES[change](folder / "free"), [folder / "kept"], uid) == ""


def test_nothing_is_moved_out_of_it_or_into_it(folder: Path) -> None:
    kept, free = folder / "kept", folder / "free"

    def move(source: Path, target: Path) -> Callable[[], None]:
        return lambda: os.rename(source, target)

    for act in (
        move(kept / "file", free / "new"),
        move(free / "file", kept / "new"),
        lambda: os.link(kept / "file", free / "new"),
    ):
        assert run_restricted(act, [kept], None) in ("EACCES", "EXDEV")
    assert run_restricted(move(free / "file", free / "new"), [kept], None) == ""


def test_it_can_be_read_and_devices_be_written(folder: Path) -> None:
    def act() -> None:
        assert (folder / "kept" / "file").read_text() == "before"
        Path("/dev/null").write_text("x")

    assert run_restricted(act, [folder / "kept"], None) == ""


def test_a_link_to_it_is_no_way_around(folder: Path) -> None:
    (folder / "free" / "link").symlink_to(folder / "kept")
    act = lambda: (folder / "free" / "link" / "new").touch()  # noqa: E731
    assert run_restricted(act, [folder / "kept"], None) == "EACCES"


def test_what_is_mounted_writable_too_stays_writable(tmp_path: Path) -> None:
    def mount(path: str, below: str = "", read_only: bool = False) -> Object:
        return {"name": "v", "mountPath": path, "subPath": below, "readOnly": read_only}

    def build(*mounts: Object) -> tuple[list[Path], list[Path]]:
        found = build_mounts({"name": "c", "volumeMounts": mounts}, {"v": tmp_path}, {}, {})
        return list(found.read_only), list(found.writable)

    below = tmp_path / "sub"
    assert build(mount("/a", read_only=True)) == ([tmp_path], [])
    assert build(mount("/a", read_only=True), mount("/b")) == ([], [])
    assert build(mount("/a", read_only=True), mount("/b", "sub")) == ([tmp_path], [below])
    assert build(mount("/a"), mount("/b", "sub", read_only=True)) == ([], [])


def make_claim(node: Machine) -> None:
    claim = {
        "metadata": {"name": "shared"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    node.objects.create(PERSISTENTVOLUMECLAIMS, TEAM, claim)
    node.objects.modify(
        PERSISTENTVOLUMECLAIMS,
        TEAM,
        "shared",
        lambda each: each.update(status={"phase": "Bound"}),
        subresource="status",
    )


WRITE = """
import os, sys
try:
    open(os.path.join(sys.argv[1], "of-" + os.environ["RANK"]), "w").write("x")
except OSError as error:
    print(type(error).__name__, flush=True)
    raise SystemExit(0 if os.environ["RANK"] != "0" else 1)
open(os.path.join(os.environ["HOME"], "mine"), "w").write("x")
open(os.path.join(os.environ["TMPDIR"], "mine"), "w").write("x")
print("written", sorted(os.listdir(sys.argv[1])), flush=True)
"""


def rank(number: int) -> Object:
    container = shell("", command=["python", "-c", WRITE, "/data"]) | {
        "env": [{"name": "RANK", "value": str(number)}],
        "volumeMounts": [
            {"name": "v", "mountPath": "/data"} | ({"readOnly": True} if number else {})
        ],
    }
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}]
    return pod(container, name=f"rank-{number}", volumes=volumes)


async def test_only_rank_0_writes_to_a_claim_that_the_others_mount_read_only(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path / "data") as node:
        make_claim(node)
        for number in (0, 1):
            node.submit(rank(number))
            assert (await node.finished(f"rank-{number}"))["phase"] == "Succeeded"
        assert await node.log("rank-0") == "written ['of-0']\n"
        assert await node.log("rank-1") == "PermissionError\n"
        (claim,) = (tmp_path / "data" / "claims").iterdir()
        assert [path.name for path in claim.iterdir()] == ["of-0"]


async def test_a_pod_writes_what_is_its_own_below_a_directory_that_it_mounts_read_only(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    mount = {"name": "v", "mountPath": "/host", "readOnly": True}
    async with machine(tmp_path / "data", host_paths=(Path("/"),)) as node:
        for name, path, place in (("above", tmp_path, "/kept"), ("all", Path("/"), str(kept))):
            script = f'echo x >/dev/null && touch "$HOME/a" "$TMPDIR/a" && ! touch /host{place}/new'
            volumes = [{"name": "v", "hostPath": {"path": str(path)}}]
            node.submit(pod(shell(script, volumeMounts=[mount]), name=name, volumes=volumes))
            assert (await node.finished(name))["phase"] == "Succeeded", await node.log(name)
    assert list(kept.iterdir()) == []


def test_the_node_says_whether_mounts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    share = NodeShare("n", {}, [])
    assert build_labels(share)[READ_ONLY_LABEL] == "enforced"
    monkeypatch.setattr(read_only_mounts, "LEAST_ABI", 1000)
    assert build_labels(share)[READ_ONLY_LABEL] == "not-enforced"
    assert launch.build_ruleset(["/mnt"], []) is None
