"""How long a workload's name may be: form and REST check it for the kind that it becomes, with its
number of workers.
"""

from typing import Any

import pytest

from clusters.capabilities import Capabilities, TrainingRuntime
from clusters.models import Cluster
from tests.api.calling import Caller, a_body
from tests.cast import Cast, a_spec
from workloads import specs
from workloads.manifests import job_targets
from workloads.specs import Framework
from workloads.specs.fields.numbers import MAX_WORKERS

TRAINER_ONLY = Capabilities(
    served=frozenset({"trainer.kubeflow.org/v1alpha1/trainjobs", "v1/pods"}),
    runtimes=(TrainingRuntime("torch-distributed", "torch"),),
    trainjob_fields=frozenset({"runtimePatches"}),
)


@pytest.mark.parametrize("framework", [None, *Framework])
@pytest.mark.parametrize("workers", [1, 10, 11, 100, 101, 1000, MAX_WORKERS])
def test_the_pods_and_services_of_the_longest_name_have_names_too(
    framework: Framework | None, workers: int
) -> None:
    longest = specs.max_name_length(framework, workers)
    roles = {Framework.TENSORFLOW: "-chief-0", Framework.MPI: "-launcher"}
    for suffix in (
        (f"-worker-{workers - 1}", roles.get(framework, "-master-0")) if framework else ()
    ):
        assert longest + len(suffix) <= 63


@pytest.mark.parametrize(("workers", "longest"), [(2, 48), (9, 48), (10, 47), (99, 47), (100, 46)])
def test_a_train_job_has_less_room(cast: Cast, workers: int, longest: int) -> None:
    """The master counts as a node: nine workers are ten nodes, and the last one's number has one
    digit.
    """

    def find_name_refusals(length: int) -> list[Any]:
        spec = a_spec(cast.team_a, "a" * length, workers=workers)
        return [
            each for each in job_targets.find_refusals(spec, TRAINER_ONLY) if each.field == "name"
        ]

    assert find_name_refusals(longest) == []
    assert [each.text for each in find_name_refusals(longest + 1)] == [
        f"The name must have at most {longest} characters on this cluster; it has {longest + 1}."
    ]


@pytest.mark.parametrize("length", [48, 49])
def test_rest_checks_it_for_the_cluster_that_is_chosen(cast: Cast, length: int) -> None:
    Cluster.objects.update(capabilities=TRAINER_ONLY.to_json())
    refused = Caller(cast.bob).raw("POST", "/workloads/distributed", a_body(cast, "a" * length))
    about_the_name = b"The name must have at most 48 characters on this cluster" in refused.content
    assert about_the_name is (length == 49), refused.content
