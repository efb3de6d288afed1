"""Policies for tests: built from rules as JSON has them, and hypothesis strategies."""

from typing import Any

from hypothesis import strategies as st

from workloads.policing import PolicyRules, PolicySource, merge_policies, parse_rules
from workloads.policing.checking import find_rule_problems
from workloads.policing.merging import MergedPolicies
from workloads.specs import (
    Architecture,
    Compute,
    Configuration,
    EmptyDir,
    Environment,
    Framework,
    Gpus,
    HostPath,
    Lifecycle,
    Priority,
    Setup,
    Spec,
    Variable,
)

WHERE = ("everybody", "cluster here", "department research", "project team-a")


def policy(name: str, level: int = 0, **rules: Any) -> PolicyRules:
    """Return a policy with these rules.

    A field with a dot in its name is written with two underscores, and `least` and `most` are min
    and max.
    """
    given = {field.replace("__", "."): rule for field, rule in rules.items()}
    return PolicyRules(PolicySource(level, name, name, WHERE[level]), parse_rules(given))


def merge_policies_of(*policies: PolicyRules) -> MergedPolicies:
    return merge_policies(policies)


def spec(image: str = "registry.example.com/team/train:1", **changes: Any) -> Spec:
    """A distributed PyTorch workload that asks for little."""
    fields: dict[str, Any] = {
        "name": "train1",
        "project": "team-a",
        "namespace": "muster-team-a",
        "queue": "team-a",
        "setup": Setup(Environment(image)),
        "architecture": Architecture.DISTRIBUTED,
        "framework": Framework.PYTORCH,
        "configuration": Configuration.WORKERS_AND_MASTER,
    }
    return Spec(**(fields | changes))


def spec_with_setup(**parts: Any) -> Spec:
    """A submission with these parts of its setup."""
    return spec(setup=Setup(**({"environment": Environment("python:3.12")} | parts)))


def spec_with_environment(**parts: Any) -> Spec:
    return spec_with_setup(environment=Environment(**({"image": "python:3.12"} | parts)))


def spec_with_lifecycle(**parts: Any) -> Spec:
    return spec(lifecycle=Lifecycle(**parts))


_IMAGES = (
    "registry.example.com/team/train:1",
    "registry.example.com/team/other",
    "docker.example.com/a",
    "python:3.12",
)
_PATTERNS = (
    *_IMAGES,
    "registry.example.com/*",
    "registry.example.com/team/*",
    "docker.example.com/*",
    "*",
)
_AMOUNTS = ("100M", "1Gi", "1024Mi", "2Gi", "500m", "1", "4")
_SMALL = st.integers(0, 9)


def _rule(**attributes: Any) -> Any:
    return st.fixed_dictionaries({}, optional=attributes)


_options = {"options": st.lists(st.sampled_from(_PATTERNS), min_size=1, max_size=4)}
_whole = {
    "min": _SMALL,
    "max": _SMALL,
    "step": st.integers(1, 3),
    "options": st.lists(_SMALL, min_size=1, max_size=4),
    "default": _SMALL,
}
_amount = {
    "min": st.sampled_from(_AMOUNTS),
    "max": st.sampled_from(_AMOUNTS),
    "default": st.sampled_from(_AMOUNTS),
    "required": st.booleans(),
}
_names = st.dictionaries(st.sampled_from(("A", "B")), st.sampled_from(("1", "2")), min_size=1)
_rules = _rule(
    workers=_rule(**_whole, locked=st.booleans()),
    image=_rule(**_options, default=st.sampled_from(_IMAGES), locked=st.booleans()),
    cpu_limit=_rule(**_amount, locked=st.booleans()),
    memory_request=_rule(**_amount),
    priority=_rule(
        options=st.lists(st.sampled_from(("low", "medium", "high")), min_size=1),
        required=st.booleans(),
        locked=st.booleans(),
        default=st.sampled_from(("low", "high")),
    ),
    host_network=_rule(default=st.booleans(), locked=st.booleans()),
    volumes=_rule(options=st.lists(st.sampled_from(("emptyDir", "hostPath", "pvc")), min_size=1)),
    variables=_rule(
        required=st.lists(st.sampled_from(("A", "B"))), default=_names, locked=st.booleans()
    ),
    node_pools=_rule(
        options=st.lists(st.sampled_from(("a", "b", "c")), min_size=1),
        required=st.booleans(),
        default=st.lists(st.sampled_from("abc"), min_size=1),
    ),
)


@st.composite
def policies(draw: Any, most: int = 4) -> list[PolicyRules]:
    """Several policies of all levels, each of which is right by itself."""
    found = []
    for number in range(draw(st.integers(0, most))):
        given = {
            name: rule
            for name, rule in draw(_rules).items()
            if rule and not find_rule_problems({name: rule})
        }
        found.append(
            PolicyRules(
                PolicySource(draw(st.integers(0, 3)), f"p{number}", f"p{number}", "there"),
                parse_rules(given),
            )
        )
    return found


@st.composite
def specs(draw: Any) -> Spec:
    """Submissions that are within and without what such policies permit."""
    amounts = st.sampled_from(("", *_AMOUNTS))
    setup = Setup(
        Environment(
            draw(st.sampled_from(_IMAGES)),
            variables=tuple(
                Variable(n, v) for n, v in draw(st.one_of(st.just({}), _names)).items()
            ),
        ),
        Compute(
            Gpus(draw(st.integers(0, 2))), cpu_limit=draw(amounts), memory_request=draw(amounts)
        ),
        volumes=draw(
            st.sampled_from(((), (EmptyDir(path="/a"),), (HostPath(path="/b", source="/x"),)))
        ),
        node_pools=draw(st.sampled_from(((), ("a",), ("a", "b"), ("c",)))),
    )
    lifecycle = Lifecycle(
        priority=draw(st.sampled_from((None, Priority.LOW, Priority.MEDIUM, Priority.HIGH)))
    )
    return spec(setup=setup, workers=draw(st.integers(1, 9)), lifecycle=lifecycle)
