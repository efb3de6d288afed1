"""A floor finds what the floors above it provide, and nobody provides it in silence twice."""

from collections.abc import Sequence
from typing import Protocol

import pytest

from clusters import seams as of_clusters
from console.seams import Seam, SeamError, SharedSeam
from environments import seams as of_environments
from projects import project_removal
from projects import seams as of_projects
from projects.models import Project
from tests.cast import Cast


class Scale(Protocol):
    def weigh(self) -> int: ...


class FixedScale:
    def __init__(self, weight: int) -> None:
        self.weight = weight

    def weigh(self) -> int:
        return self.weight


class StandIn:
    """A floor that has something at work in every project."""

    def __init__(self, name: str) -> None:
        self.name = name

    def list_blockers(self, project: Project) -> Sequence[str]:
        return [f"{self.name} of {project.name}"]

    def clear_project(self, project: Project) -> str:
        return ""


def test_a_seam_has_one_provider() -> None:
    seam, scale = Seam[Scale]("SCALE"), FixedScale(7)
    with pytest.raises(SeamError, match=r"^Nothing provides SCALE\.$"):
        seam.get()
    seam.register(scale)
    seam.register(scale)
    with pytest.raises(SeamError, match=r"^SCALE has another provider: "):
        seam.register(FixedScale(8))
    assert seam.get().weigh() == 7


def test_a_shared_seam_has_all_of_them_in_their_order() -> None:
    seam = SharedSeam[Scale]("SCALES")
    with pytest.raises(SeamError):
        seam.get_all()
    for scale in (first := FixedScale(7), FixedScale(8), first):
        seam.register(scale)
    assert [scale.weigh() for scale in seam.get_all()] == [7, 8]


def test_another_provider_is_there_for_one_test() -> None:
    seam = Seam[Scale]("SCALE")
    seam.register(FixedScale(7))
    with pytest.raises(ZeroDivisionError), seam.override(FixedScale(8)):
        assert seam.get().weigh() == 8
        raise ZeroDivisionError
    assert seam.get().weigh() == 7


@pytest.mark.parametrize("floor", [of_projects, of_clusters, of_environments])
def test_every_seam_of_a_floor_is_provided(floor: object) -> None:
    seams = {name: each for name, each in vars(floor).items() if isinstance(each, SharedSeam)}
    assert seams
    for name, seam in seams.items():
        assert (seam.name, len(seam.get_all())) == (name, 1)


def test_whatever_floor_has_something_at_work_keeps_a_project(cast: Cast) -> None:
    with of_projects.PROJECT_CONTENTS.override(StandIn("a tensor"), StandIn("a board")):
        assert project_removal.find_blockers(cast.team_a) == [
            f"a tensor of {cast.team_a.name}",
            f"a board of {cast.team_a.name}",
        ]
    assert project_removal.find_blockers(cast.team_a) == []
