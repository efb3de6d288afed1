"""`manage.py cluster`: how an installation is pointed at a real cluster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from clusters.models import Cluster
from console import installation_state
from tests.cast import NOWHERE, Cast
from tests.cluster import ROOT, LocalKube
from tests.installation import clean_environment

KEYS = {
    "secret_key": "only-to-test-with-and-long-enough",
    "encryption_keys": "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=",
}
PRINT_REDIS = (
    "from django.conf import settings; print(settings.REDIS_URL, settings.CELERY['broker_url'])"
)


def test_a_cluster_that_answers_is_told_with_its_version(
    cast: Cast, embedded_cluster: LocalKube, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("cluster", "there", str(embedded_cluster.kubeconfig))
    assert f"there at {embedded_cluster.url} answers (Kubernetes v1." in capsys.readouterr().out


def test_a_cluster_that_does_not_answer_is_registered_and_told_so(
    cast: Cast, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(NOWHERE)
    with pytest.raises(CommandError, match="does not answer"):
        call_command("cluster", "there", str(file))
    assert Cluster.objects.get(name="there").unreachable_since is not None


def test_a_registered_cluster_gets_its_new_kubeconfig(
    cast: Cast, embedded_cluster: LocalKube
) -> None:
    call_command("cluster", cast.cluster.name, str(embedded_cluster.kubeconfig))
    assert Cluster.objects.get().server == embedded_cluster.url


def test_a_file_that_is_not_there_or_no_kubeconfig_is_refused(cast: Cast, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("not a kubeconfig")
    for name in ("missing", "words"):
        with pytest.raises(CommandError):
            call_command("cluster", "there", str(tmp_path / name))
    assert Cluster.objects.count() == 1


def test_a_file_that_cannot_be_read_is_named_with_why_and_what_to_give(
    cast: Cast, tmp_path: Path
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name, why in (
        ("missing", "No such file or directory"),
        (".", "Is a directory"),
        ("bytes", "it is no text in UTF-8"),
    ):
        file = tmp_path / name
        with pytest.raises(CommandError) as refusal:
            call_command("cluster", "there", str(file))
        assert str(refusal.value) == (
            f"The kubeconfig {file} cannot be read: {why}. Give the path of a kubeconfig that "
            "you may read, or - for standard input."
        )
    assert Cluster.objects.count() == 1


@pytest.mark.parametrize("name", ["", "<b>", "x" * 64])
def test_a_name_that_no_page_would_take_is_refused(cast: Cast, tmp_path: Path, name: str) -> None:
    (tmp_path / "kubeconfig").write_text(NOWHERE)
    with pytest.raises(CommandError, match="The name cannot be used"):
        call_command("cluster", name, str(tmp_path / "kubeconfig"))
    assert Cluster.objects.count() == 1


def test_it_finds_the_redis_that_up_started(tmp_path: Path) -> None:
    kept = {"redis_port": "6399", "redis_password": "secret", "follower": "f"}
    (tmp_path / "up.json").write_text(json.dumps(kept))
    answer = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", PRINT_REDIS],
        env=clean_environment(data_dir=tmp_path, **KEYS),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == ["redis://:secret@127.0.0.1:6399/0"] * 2


def test_without_one_it_looks_where_everybody_does(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text('{"redis_port": 99999999, "redis_password": "x"}')
    assert installation_state.find_redis_url(tmp_path) == ""
    assert installation_state.find_redis_url(tmp_path / "nowhere") == ""
