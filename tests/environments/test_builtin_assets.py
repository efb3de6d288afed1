"""Built-in assets are made whatever departments, clusters and people have called theirs."""

import pytest

from environments import builtin_assets
from environments.models import ComputeResource, Environment
from projects.models import Department
from tests.cast import Cast

pytestmark = pytest.mark.django_db
ALL = len(builtin_assets.COMPUTE) + len(builtin_assets.ENVIRONMENTS)


def test_assets_of_departments_and_clusters_with_the_same_names_keep_none_from_being_made(
    cast: Cast,
) -> None:
    for department in (cast.research, Department.objects.create(name="other")):
        ComputeResource.objects.create(name="one-gpu", department=department)
    Environment.objects.create(name="elastic", image="team/x", cluster=cast.cluster)
    assert builtin_assets.ensure_builtin_assets() == ALL
    assert builtin_assets.ensure_builtin_assets() == 0
    assert ComputeResource.objects.get(name="one-gpu", is_built_in=True).department is None
    assert Environment.objects.get(name="elastic", is_built_in=True).cluster is None
