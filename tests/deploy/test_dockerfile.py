"""The Dockerfile says what it should, as far as one can tell without a container engine."""

import re

from django.conf import settings
from packaging.requirements import Requirement

from console import options
from tests.cluster import ROOT
from tests.deploy.image import environment, instructions, list_sent_names

STAGES = instructions()
LAST = max(each.stage for each in STAGES)
PYTHON = "3.11"


def in_last(name: str) -> list[str]:
    return [each.rest for each in STAGES if each.stage == LAST and each.name == name]


def test_everything_that_is_copied_is_there_and_reaches_the_builder() -> None:
    copied = [
        word
        for each in STAGES
        if each.name == "COPY" and "--from" not in each.rest
        for word in each.words[:-1]
    ]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert set(copied) == list_sent_names()


def test_every_app_of_the_console_is_copied() -> None:
    ours = {app for app in settings.INSTALLED_APPS if (ROOT / app).is_dir()}
    assert ours < list_sent_names()
    assert "scheduling" in list_sent_names()


def test_no_data_no_keys_and_no_history_reach_the_builder() -> None:
    assert not list_sent_names() & {"var", ".git", ".venv", "tests", "localkube", "."}


def test_it_runs_as_a_user_without_rights_told_by_number() -> None:
    # Kubernetes can tell that a number is not root; of a name it cannot.
    assert re.fullmatch(r"[1-9][0-9]{4,}:[1-9][0-9]{4,}", in_last("USER")[0])
    owner, group = re.findall(r"-[og] (\d+)", in_last("RUN")[0])
    assert in_last("USER") == [f"{owner}:{group}"]


def test_it_starts_the_console() -> None:
    assert in_last("CMD") == ['["python", "-m", "console", "web"]']
    assert in_last("ENTRYPOINT") == []
    assert in_last("HEALTHCHECK") == [], "probes ask, and only they know how"


def test_only_settings_that_there_are_are_set_and_none_is_a_secret() -> None:
    known = {f"{options.PREFIX}{name.upper()}" for name in options.Options.model_fields}
    given = {name for name in environment() if name.startswith(options.PREFIX)}
    assert given <= known
    assert not [
        name
        for name in environment()
        if "KEY" in name or "PASSWORD" in name or name.endswith("_URL")
    ]
    assert [
        each
        for each in STAGES
        if each.name == "ARG" and each.rest != f"PYTHON={PYTHON}-slim-bookworm"
    ] == []


def test_every_package_is_pinned_with_its_hash() -> None:
    [installing] = [
        each.rest
        for each in STAGES
        if each.name == "RUN" and " install " in each.rest and "requirements" in each.rest
    ]
    assert "--require-hashes" in installing
    assert set(re.findall(r"-r (\S+)", installing)) == {
        name for name in list_sent_names() if name.endswith(".lock")
    }


def test_lock_files_that_are_installed_together_agree() -> None:
    versions: dict[str, set[str]] = {}
    for name in (name for name in list_sent_names() if name.endswith(".lock")):
        for line in (ROOT / name).read_text().splitlines():
            if line[:1].isalnum():
                pin = Requirement(line.removesuffix("\\"))
                if pin.marker is None or pin.marker.evaluate(
                    {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0"}
                ):
                    versions.setdefault(pin.name.lower(), set()).add(str(pin.specifier))
    assert len(versions) > 30
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


def test_both_stages_have_the_oldest_python_that_muster_runs_on() -> None:
    assert [each.rest.split()[0] for each in STAGES if each.name == "FROM"] == [
        "python:${PYTHON}"
    ] * 2
    assert f'requires-python = ">={PYTHON}"' in (ROOT / "pyproject.toml").read_text()
