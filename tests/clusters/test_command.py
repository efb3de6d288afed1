"""`manage.py cluster`: how an installation is pointed at a real cluster."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from clusters.models import Cluster
from tests.cast import NOWHERE, Cast
from tests.cluster import LocalKube


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


@pytest.mark.parametrize("name", ["", "<b>", "x" * 64])
def test_a_name_that_no_page_would_take_is_refused(cast: Cast, tmp_path: Path, name: str) -> None:
    (tmp_path / "kubeconfig").write_text(NOWHERE)
    with pytest.raises(CommandError, match="The name cannot be used"):
        call_command("cluster", name, str(tmp_path / "kubeconfig"))
    assert Cluster.objects.count() == 1
