"""Each cause of the catalogue, through the journal, has its sentence."""

import pytest

from tests.cast import Cast
from tests.diagnosis.causes import FAILING, WAITING
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.injecting import create_cause, find_diagnosis, list_faults, write_logs
from workloads import journal


@pytest.mark.parametrize("cause", [*WAITING, *FAILING], ids=lambda cause: cause.name)
def test_a_cause_has_its_sentence(cast: Cast, cause: InjectedCause) -> None:
    kube = create_cause(cast, cause)
    journal.record_observations(cast.cluster.pk, cause.build(kube))
    write_logs(cause, kube.workload)
    found = find_diagnosis(cast, kube.workload)
    assert not list_faults(cause, found, kube.workload.name)


def test_the_catalogue_has_forty_of_each() -> None:
    names = [cause.name for cause in (*WAITING, *FAILING)]
    assert len(set(names)) == len(names)
    assert min(len(WAITING), len(FAILING)) >= 40
