"""The catalogue of fields agrees with the Spec, and its readers have every field."""

import dataclasses
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from console.rest_schemas import describe_body
from tests.workloads.submissions import EVERYTHING, train1
from workloads.api.workload_schemas import SPEC
from workloads.policing import CATALOGUE
from workloads.rest.structs import CODECS, MasterBody
from workloads.specs import CAPABILITIES, Environment, Security, Setup, Spec, find_problems
from workloads.specs.building import build_part
from workloads.specs.fields import FIELDS, Field, get_value
from workloads.specs.spec import MASTER_TYPES

NO_FIELDS = {
    *("name", "project", "namespace", "queue", "master", "machine_gpus"),
    *(f"data_delivery.compute.gpus.{part}" for part in ("devices", "portion", "memory")),
    *("data_delivery.compute.large_shm", "data_delivery.compute.extended"),
}
"""What a Spec has that nobody chooses as a field: what its project says or is worked out, the
master, and what of a compute data workers cannot have.
"""


def list_leaves(part: type, prefix: str = "") -> Iterator[str]:
    """Every path of a Spec that has a value of its own."""
    for name, hint in get_type_hints(part).items():
        kinds = [each for each in getattr(hint, "__args__", (hint,)) if each is not type(None)]
        inner: Any = kinds[0]
        is_part = (
            dataclasses.is_dataclass(inner)
            and getattr(hint, "__origin__", None) is not tuple
            and f"{prefix}{name}" not in FIELDS
        )
        if is_part and name not in NO_FIELDS:
            yield from list_leaves(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_every_value_of_a_spec_is_a_field_and_every_field_a_value() -> None:
    assert {path for path in list_leaves(Spec) if path not in NO_FIELDS} == set(FIELDS)


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_a_field_can_be_read_of_any_spec(field: Field) -> None:
    spec = train1(setup=EVERYTHING)
    assert get_value(spec, field.path) is not ...
    if field.is_of_pods:
        assert get_value(spec.setup, field.pod_path) == get_value(spec, field.path)
        assert field.master_key in MASTER_TYPES


def test_names_are_given_once() -> None:
    for names in (
        [each.rest for each in FIELDS.values() if each.rest],
        [name for each in FIELDS.values() for name in each.form_names],
    ):
        assert len(names) == len(set(names))


def test_the_api_describes_every_field_with_a_place_in_a_body() -> None:
    for path in CODECS:
        for schema in [SPEC] + ([describe_master()] if FIELDS[path].is_of_pods else []):
            described: Any = schema
            for name in FIELDS[path].rest.split("."):
                described = described["properties"][name]
            assert FIELDS[path].rest_help in described.get("description", "")


def describe_master() -> dict[str, Any]:
    return describe_body(MasterBody)


def test_a_policy_can_rule_every_field_that_says_so() -> None:
    assert {each.path for each in CATALOGUE.values()} == {
        each.pod_path for each in FIELDS.values() if each.policy
    }


def test_parts_are_built_from_paths() -> None:
    built = build_part(
        Setup, {"environment.image": "a", "compute.gpus.devices": 2, "node_type": "big"}
    )
    assert built == dataclasses.replace(
        Setup(Environment("a")), node_type="big", compute=built.compute
    )
    assert built.compute.gpus.devices == 2
    with pytest.raises(TypeError):
        build_part(Setup, {"node_type": "big"})


def test_the_capabilities_are_those_that_the_kernel_knows() -> None:
    """Linux 5.8 and 5.9 brought the last ones."""
    assert len(CAPABILITIES) == 41
    security = Security(capabilities=("BPF", "PERFMON", "CHECKPOINT_RESTORE"))
    spec = train1()
    with_new = dataclasses.replace(spec, setup=dataclasses.replace(spec.setup, security=security))
    assert list(find_problems(with_new)) == []
