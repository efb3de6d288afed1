"""Every noun by one table: listed, shown, made, changed and deleted as far as REST offers it."""

import pytest

from muster_cli.resource_types import ALL_VERBS, Verb
from muster_cli.resources import RESOURCES
from tests.cli.running import CommandLine

LISTED = [noun for noun, each in RESOURCES.items() if Verb.LIST in each.verbs]


@pytest.mark.parametrize("noun", LISTED)
def test_every_noun_is_listed(alice: CommandLine, noun: str) -> None:
    assert isinstance(alice(noun, "list", "-o", "json").parse(), list)
    alice(noun, "list", "-o", "wide")


MADE = [
    ("environment", ("-p", "team-a", "--set", "spec.image=a"), "spec.image=b"),
    ("compute", ("-p", "team-a", "--set", "spec.gpuDevicesRequest=1"), "spec.cpuCoreRequest=2"),
    (
        "datasource",
        (
            "-p",
            "team-a",
            "--kind",
            "nfs",
            "--set",
            "spec.server=nfs.example.com",
            "--set",
            "spec.path=/export",
            "--set",
            "spec.mountPath=/data",
        ),
        "spec.path=/other",
    ),
    (
        "credential",
        (
            "-p",
            "team-a",
            "--kind",
            "password",
            "--set",
            "spec.user=robot",
            "--set",
            "spec.password=secret1",
        ),
        "spec.user=other",
    ),
    (
        "template",
        (
            "-p",
            "team-a",
            "--set",
            "spec.image=a",
            "--set",
            "spec.numWorkers=2",
            "--set",
            "spec.distributedFramework=PyTorch",
        ),
        "meta.description=x",
    ),
    (
        "policy",
        (
            "-p",
            "team-a",
            "--set",
            'spec={"workloadType": "all", "rules": {"workers": {"max": "4"}}}',
        ),
        "meta.description=x",
    ),
    ("department", (), "description=x"),
    (
        "role",
        ("--set", 'permissions=[{"resourceType": "templates", "actions": ["read"]}]'),
        "description=x",
    ),
]


@pytest.mark.parametrize(("noun", "options", "change"), MADE, ids=lambda it: str(it)[:12])
def test_a_noun_is_made_shown_changed_and_deleted(
    alice: CommandLine, noun: str, options: tuple[str, ...], change: str
) -> None:
    alice(noun, "create", "made-here", *options)
    before = alice(noun, "get", "made-here", "-o", "json").parse()
    alice(noun, "update", "made-here", "--set", change)
    after = alice(noun, "get", "made-here", "-o", "json").parse()
    assert before != after
    alice(noun, "delete", "made-here")
    alice(noun, "get", "made-here", code=5)


def test_secrets_are_told_once(alice: CommandLine) -> None:
    made = alice("access-key", "create", "laptop")
    assert "clientSecret: " in made.out
    assert "only this once" in made.err
    assert "clientSecret" not in alice("access-key", "get", "laptop", "-o", "json").out
    alice("access-key", "delete", "laptop")
    assert "emporaryPassword" in alice("user", "create", "dora").out
    alice("user", "update", "dora", "--set", "isActive=false")
    assert alice("user", "get", "dora", "-o", "json").parse()["isActive"] is False


def test_rules_have_no_names(alice: CommandLine) -> None:
    made = alice(
        "access-rule",
        "create",
        "--set",
        "subjectType=user",
        "--set",
        "subjectId=vera",
        "--set",
        "roleId=viewer",
        "--set",
        "scopeType=project",
        "--set",
        'scopeId="2"',
        "-o",
        "json",
    ).parse()
    alice("access-rule", "get", str(made["id"]))
    alice("access-rule", "delete", str(made["id"]))


def test_the_project_of_commands_is_chosen(alice: CommandLine) -> None:
    alice("project", "set", "team-a")
    assert "team-a" in alice("config", "list").out
    alice("project", "set", "nowhere", code=5)


def test_what_is_wrong_is_told_by_its_place(alice: CommandLine) -> None:
    assert "--kind" in alice("datasource", "create", "x", "-p", "team-a", code=2).err
    assert "PATH=VALUE" in alice("environment", "create", "x", "--set", "y", code=2).err
    assert "image" in alice("environment", "create", "x", "-p", "team-a", code=1).err
    alice("environment", "update", "nowhere", "--set", "a=b", code=5)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("user delete bob", "isActive=false"),
        ("access-key update a --set name=b", "access-key create"),
        ("audit get 1", "--filter request_id"),
        ("audit delete 1", "audit list"),
        ("node get a", "--filter name=="),
        ("node create a", "kubectl"),
    ],
)
def test_what_rest_does_not_offer_is_refused_with_what_to_use(
    stranger: CommandLine, line: str, wanted: str
) -> None:
    noun, verb, *_ = line.split()
    refused = stranger(*line.split(), code=2).err
    assert f"There is no {noun} {verb}." in refused
    assert wanted in refused


def test_each_verb_of_each_noun_is_there_or_refused() -> None:
    for each in RESOURCES.values():
        assert each.verbs | set(each.absent) == ALL_VERBS, each.noun
        assert not each.verbs & set(each.absent)
