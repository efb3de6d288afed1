"""Volumes as directories, and the translation of paths to them."""

import base64
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.kubelet import volumes
from localkube.kubelet.environment import PodSources
from localkube.kubelet.volumes import MountError, Mounts
from localkube.metadata import Object

SECRET: Object = {"data": {"key.pem": base64.b64encode(b"private").decode()}}
CLAIMS: dict[str, Object] = {
    "bound": {"metadata": {"uid": "c1"}, "status": {"phase": "Bound"}},
    "unbound": {"metadata": {"uid": "c2"}, "status": {"phase": "Pending"}},
}
CONFIG: Object = {"data": {"a.yaml": "a: 1", "b.yaml": "b: 2"}}
NESTED = [{"key": "a.yaml", "path": "x"}, {"key": "b.yaml", "path": "x//y/z"}]


def prepare(
    root: Path, *made: Object, config: Object = CONFIG, allowed: tuple[Path, ...] = ()
) -> dict[str, Path]:
    pod: Object = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": 'say "hi"'}},
        "spec": {"volumes": list(made), "containers": [{"name": "c"}]},
    }
    sources = PodSources(
        {"s": SECRET}.get,
        {"cm": config}.get,
        {"cpu": "4"},
        claim=CLAIMS.get,
        claims=root.parent / "claims",
    )
    return volumes.prepare_volumes(pod, root, sources, allowed)


def mounts(places: dict[str, Path], *mounted: Object) -> Mounts:
    return volumes.build_mounts(
        {"name": "c", "volumeMounts": list(mounted)}, places, {"RANK": "3"}, {}
    )


def test_an_empty_dir_keeps_what_is_in_it(tmp_path: Path) -> None:
    place = prepare(tmp_path, {"name": "scratch", "emptyDir": {}})["scratch"]
    (place / "file").write_text("mine")
    assert prepare(tmp_path, {"name": "scratch", "emptyDir": {}})["scratch"] == place
    assert (place / "file").read_text() == "mine"


def test_a_config_map_becomes_files_and_is_renewed(tmp_path: Path) -> None:
    place = prepare(tmp_path, {"name": "v", "configMap": {"name": "cm"}})["v"]
    assert {path.name: path.read_text() for path in place.iterdir()} == {
        "a.yaml": "a: 1",
        "b.yaml": "b: 2",
    }
    prepare(
        tmp_path, {"name": "v", "configMap": {"name": "cm"}}, config={"data": {"a.yaml": "a: 3"}}
    )
    assert {path.name: path.read_text() for path in place.iterdir()} == {"a.yaml": "a: 3"}


def test_the_files_of_a_secret_are_the_owners_alone(tmp_path: Path) -> None:
    place = prepare(tmp_path, {"name": "v", "secret": {"secretName": "s", "defaultMode": 0o644}})[
        "v"
    ]
    assert (place / "key.pem").read_bytes() == b"private"
    assert stat.S_IMODE((place / "key.pem").stat().st_mode) == 0o400


def test_items_choose_keys_and_paths(tmp_path: Path) -> None:
    place = prepare(
        tmp_path,
        {
            "name": "v",
            "configMap": {"name": "cm", "items": [{"key": "a.yaml", "path": "deep/conf"}]},
        },
    )["v"]
    assert [path.relative_to(place) for path in place.rglob("*") if path.is_file()] == [
        Path("deep/conf")
    ]


NO_CONTAINER = {"containerName": "nope", "resource": "limits.cpu"}


def test_a_projected_source_without_anything_adds_nothing(tmp_path: Path) -> None:
    place = prepare(tmp_path, {"name": "v", "projected": {"sources": [{}]}})["v"]
    assert list(place.iterdir()) == []


def test_the_downward_api_writes_fields_as_files(tmp_path: Path) -> None:
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}},
    ]
    place = prepare(
        tmp_path, {"name": "v", "projected": {"sources": [{"downwardAPI": {"items": items}}]}}
    )["v"]
    assert (place / "labels").read_text() == 'app="say \\"hi\\""'
    assert (place / "cpu").read_text() == "4"


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        (
            {"configMap": {"name": "none"}},
            'MountVolume.SetUp failed for volume "v" : configmap "none" not found',
        ),
        (
            {"configMap": {"name": "cm", "items": [{"key": "c", "path": "c"}]}},
            "references non-existent configmap cm key: c",
        ),
        (
            {"configMap": {"name": "cm", "items": [{"key": "a.yaml", "path": "../x"}]}},
            "leaves the volume",
        ),
        (
            {"configMap": {"name": "cm", "items": [{"key": "a.yaml", "path": "a\0b"}]}},
            "names no file",
        ),
        ({"configMap": {"name": "cm", "items": [{"key": "a.yaml", "path": "."}]}}, "names no file"),
        (
            {"configMap": {"name": "cm", "items": NESTED}},
            "the paths 'x' and 'x/y/z' exclude each other: 'x' cannot be both a file and a "
            "directory; give one of them another path",
        ),
        (
            {"configMap": {"name": "cm", "items": NESTED[::-1]}},
            "the paths 'x' and 'x/y/z' exclude each other",
        ),
        (
            {"downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef": NO_CONTAINER}]}},
            "container nope not found",
        ),
        ({"hostPath": {"path": "/tmp/\0x"}}, "is no path"),
        (
            {"persistentVolumeClaim": {"claimName": "data"}},
            'persistentvolumeclaim "data" not found',
        ),
        (
            {"persistentVolumeClaim": {"claimName": "unbound"}},
            'persistentvolumeclaim "unbound" is not bound: its events say why',
        ),
        (
            {"nfs": {"server": "s", "path": "/"}},
            "nfs is not on localkube; use an emptyDir, a persistentVolumeClaim, or a hostPath",
        ),
        (
            {"hostPath": {"path": "/etc"}},
            "hostPath /etc is not allowed; start localkube with --allow-host-path /etc",
        ),
    ],
)
def test_a_volume_that_cannot_be_had_says_why(tmp_path: Path, volume: Object, message: str) -> None:
    with pytest.raises(MountError, match=message):
        prepare(tmp_path, {"name": "v"} | volume)


@pytest.mark.parametrize(
    "made",
    [
        [{"name": f"v{n}", "secret": {"secretName": "s"}} for n in range(volumes.MAX_LOADS + 1)],
        [{"name": "v", "projected": {"sources": [{"configMap": {"name": "cm"}}] * 300}}],
    ],
    ids=["volumes", "parts of one"],
)
def test_too_many_volumes_with_contents_are_refused_before_any_is_written(
    tmp_path: Path, made: list[Object]
) -> None:
    with pytest.raises(MountError, match="at most 256 are possible: have one volume of each"):
        prepare(tmp_path / "volumes", *made)
    assert not (tmp_path / "volumes").exists()


def test_a_claim_is_one_directory_for_every_pod_that_names_it(tmp_path: Path) -> None:
    claimed = {"name": "v", "persistentVolumeClaim": {"claimName": "bound"}}
    first, second = (prepare(tmp_path / pod, claimed)["v"] for pod in ("one", "two"))
    assert first == second == tmp_path / "claims" / "c1"
    assert stat.S_IMODE(first.stat().st_mode) == 0o700


def test_an_ephemeral_claim_is_a_directory_of_the_pod(tmp_path: Path) -> None:
    template = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}
    assert prepare(tmp_path, {"name": "v", "ephemeral": template})["v"] == tmp_path / "v"


def test_a_host_path_is_allowed_below_the_given_directories_only(tmp_path: Path) -> None:
    allowed = tmp_path / "shared"
    (allowed / "data").mkdir(parents=True)
    (allowed / "escape").symlink_to("/etc")
    found = prepare(
        tmp_path / "pod",
        {"name": "v", "hostPath": {"path": str(allowed / "data")}},
        allowed=(allowed,),
    )
    assert found["v"] == allowed / "data"
    with pytest.raises(MountError, match="not allowed"):
        prepare(
            tmp_path / "pod",
            {"name": "v", "hostPath": {"path": str(allowed / "escape")}},
            allowed=(allowed,),
        )


@pytest.mark.parametrize(
    ("kind", "ok"),
    [("Directory", False), ("DirectoryOrCreate", True), ("FileOrCreate", True), ("", False)],
)
def test_a_host_path_is_made_only_when_its_type_says_so(
    tmp_path: Path, kind: str, ok: bool
) -> None:
    volume = {"name": "v", "hostPath": {"path": str(tmp_path / "new"), "type": kind}}
    if ok:
        assert prepare(tmp_path / "pod", volume, allowed=(tmp_path,))["v"].exists()
    else:
        with pytest.raises(MountError, match="does not exist"):
            prepare(tmp_path / "pod", volume, allowed=(tmp_path,))


class CountedTargets(dict[str, Path]):
    """Targets that count how often all of them are gone through."""

    rounds = 0

    def __iter__(self) -> Iterator[str]:
        self.rounds += 1
        return super().__iter__()


def test_mounts_are_gone_through_once_for_all_texts() -> None:
    targets = CountedTargets({f"/m{number}": Path(f"/real/{number}") for number in range(256)})
    mounts = Mounts(targets)
    assert {mounts.translate(f"--out=/m7/{number}") for number in range(100)} == {
        f"--out=/real/7/{number}" for number in range(100)
    }
    assert targets.rounds == 1


DATA = Mounts({"/data": Path("/real/d"), "/data/sub": Path("/real/s")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data", "/real/d"),
        ("/data/x/y", "/real/d/x/y"),
        ("/data/sub/x", "/real/s/x"),
        ("/data/subway", "/real/d/subway"),
        ("--out=/data/x", "--out=/real/d/x"),
        ("cat '/data/x' > /data/y; ls /data", "cat '/real/d/x' > /real/d/y; ls /real/d"),
        ("/a:/data:/b", "/a:/real/d:/b"),
        ("/database", "/database"),
        ("/srv/data", "/srv/data"),
        ("file:///data", "file:///data"),
        ("${ROOT}/data", "${ROOT}/data"),
        ("s3://bucket/data", "s3://bucket/data"),
        ("/data.tar", "/data.tar"),
    ],
)
def test_whole_mounted_paths_are_translated_and_nothing_else(text: str, expected: str) -> None:
    assert DATA.translate(text) == expected


def test_a_path_is_translated_once_even_when_the_real_one_looks_mounted() -> None:
    assert (
        Mounts({"/home": Path("/home/me/home")}).translate("/home/x /home")
        == "/home/me/home/x /home/me/home"
    )


def test_sub_paths_are_made_and_named(tmp_path: Path) -> None:
    places = prepare(tmp_path, {"name": "my-data", "emptyDir": {}})
    found = mounts(
        places, {"name": "my-data", "mountPath": "/data/", "subPathExpr": "rank-$(RANK)"}
    )
    assert found.translate("/data") == str(places["my-data"] / "rank-3")
    assert found.build_variables() == {"LOCALKUBE_MOUNT_MY_DATA": str(places["my-data"] / "rank-3")}
    assert (places["my-data"] / "rank-3").is_dir()


@pytest.mark.parametrize("below", ["../other", "/etc", "a/../../b"])
def test_a_sub_path_cannot_leave_its_volume(tmp_path: Path, below: str) -> None:
    places = prepare(tmp_path, {"name": "v", "emptyDir": {}})
    with pytest.raises(MountError, match="leaves the volume"):
        mounts(places, {"name": "v", "mountPath": "/data", "subPath": below})


def test_a_sub_path_behind_a_link_makes_nothing_outside(tmp_path: Path) -> None:
    places = prepare(tmp_path / "pod", {"name": "v", "emptyDir": {}})
    outside = tmp_path / "outside"
    outside.mkdir()
    (places["v"] / "link").symlink_to(outside)
    with pytest.raises(MountError, match="leaves the volume"):
        mounts(places, {"name": "v", "mountPath": "/data", "subPath": "link/made"})
    assert list(outside.iterdir()) == []


def test_a_mount_of_no_volume_is_refused() -> None:
    with pytest.raises(MountError, match='name volume "v", which the pod does not have'):
        mounts({}, {"name": "v", "mountPath": "/data"})
