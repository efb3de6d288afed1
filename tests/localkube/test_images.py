"""What image names come to on a machine that pulls none."""

import contextlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet import images
from localkube.kubelet.images import ImageError

TUTORIAL = [
    "kubeflow/pytorch-dist-mnist",
    "kubeflow/pytorch-dist-mnist:v1-9e12c68",
    "/kubeflow/pytorch-dist-mnist:latest",
    "docker.io/kubeflow/pytorch-dist-mnist",
    "gcr.io/kubeflow-ci/pytorch-dist-mnist-test:1.0",
    "gcr.io/kubeflow-ci/pytorch-dist-mnist-test:v1.0@sha256:" + "0" * 64,
]


@pytest.mark.parametrize("image", TUTORIAL)
def test_the_tutorials_images_run_the_bundled_example(image: str) -> None:
    program = images.resolve_program(image, [], ["--epochs", "1"])
    assert list(program.command) == [sys.executable, str(images.PACKAGE / "examples/mnist.py")]
    assert list(program.args) == ["--epochs", "1"]


def test_every_bundled_program_is_part_of_the_project() -> None:
    for entry in images.load_catalog().values():
        for path in (images.PACKAGE / entry.program_path, *entry.files.values()):
            assert path.is_file()


def test_a_containers_own_command_wins_over_the_bundled_one() -> None:
    assert images.resolve_program("muster/allreduce", ["echo"], ["hi"]).command == ["echo"]


@pytest.mark.parametrize(
    "image", ["busybox", "python:3.12-slim", "localhost:5000/team/train@sha256:" + "a" * 64]
)
def test_any_image_is_accepted_with_a_command(image: str) -> None:
    assert images.resolve_program(image, ["sh", "-c", "true"], []).image_id == "localkube://host"


def test_an_unknown_image_without_a_command_says_what_to_do() -> None:
    advice = (
        r"runs commands of this machine, not images: "
        r"give the container a command or use one of: .*muster/allreduce"
    )
    with pytest.raises(ImageError, match=advice) as caught:
        images.resolve_program("team/secret-sauce:7", [], ["--fast"])
    assert caught.value.reason == "ErrImagePull"
    assert "mnist" not in str(caught.value), "names of tutorials would hide what to do"


@pytest.mark.parametrize("image", ["", "team/Case", "a b", "x:y:z", "team/", "a" * 600, "//twice"])
def test_what_is_no_image_name_is_refused_as_such(image: str) -> None:
    with pytest.raises(ImageError, match="invalid reference format") as caught:
        images.resolve_program(image, ["true"], [])
    assert caught.value.reason == "InvalidImageName"


@given(st.text(max_size=600))
def test_any_text_is_a_program_or_a_refusal(text: str) -> None:
    with contextlib.suppress(ImageError):
        assert images.parse_short_name(text)


def test_a_path_inside_a_tutorials_image_leads_to_the_example() -> None:
    program = images.resolve_program(
        "docker.io/kubeflowkatib/pytorch-mnist:v1beta1-45c5727",
        ["python3", "/opt/pytorch-mnist/mnist.py"],
        [],
    )
    assert program.files["/opt/pytorch-mnist/mnist.py"] == images.PACKAGE / "examples/mnist.py"
