"""The Compose file: what starts, after what, and who can reach it. There is no Docker here: it is
read, not run.
"""

import re
from typing import Any

import yaml

from console import options, processes
from tests.deploy.documented import blocks
from tests.deploy.image import environment, instructions
from tests.deploy.rendering import DEPLOY

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = (*processes.PROCESS_NAMES, "prepare")
HEALTHY = ("service_healthy", "service_completed_successfully")


def test_every_process_is_there_with_its_command() -> None:
    assert set(SERVICES) == {*OURS, "postgres", "redis"}
    for name in processes.PROCESS_NAMES:
        assert SERVICES[name]["command"] == ["python", "-m", "console", name]
    assert SERVICES["prepare"]["command"] == ["python", "manage.py", "prepare"]


def test_all_of_ours_are_the_image_and_write_to_its_places_only() -> None:
    user = next(each.rest for each in instructions() if each.name == "USER")
    for name in OURS:
        service = SERVICES[name]
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["volumes"] == [f"data:{environment()['MUSTER_DATA_DIR']}"]
        assert service["tmpfs"][0].startswith("/tmp:")
        assert service.get("user", user) == user


def test_only_the_web_process_can_be_reached_and_only_from_this_machine() -> None:
    opened = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert opened == {"web": ["127.0.0.1:8000:8000"]}
    assert all(
        "network_mode" not in service and "expose" not in service for service in SERVICES.values()
    )


def test_nothing_starts_before_the_database_is_prepared() -> None:
    assert SERVICES["prepare"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in processes.PROCESS_NAMES:
        waits = SERVICES[name]["depends_on"]
        assert {other: each["condition"] for other, each in waits.items()} == {
            "prepare": "service_completed_successfully",
            "redis": "service_healthy",
        }
    for name, service in SERVICES.items():
        for other, each in service.get("depends_on", {}).items():
            assert each["condition"] in HEALTHY, name
            assert each["condition"] != "service_healthy" or "healthcheck" in SERVICES[other], other


def test_volumes_are_declared() -> None:
    used = {
        volume.partition(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", ())
    }
    assert used == set(COMPOSE["volumes"])


def test_no_secret_is_in_the_file_and_the_documented_settings_are_all_that_is_missing() -> None:
    known = {f"{options.PREFIX}{name.upper()}" for name in options.Options.model_fields}
    given = {
        name
        for service in SERVICES.values()
        for name, value in service.get("environment", {}).items()
        if value
    }
    assert not [name for name in given if "KEY" in name or "PASSWORD" in name]
    documented_names = set(re.findall(r"^([A-Z_]+)=", blocks("## With Compose")[0], re.MULTILINE))
    assert {name for name in given | documented_names if name.startswith(options.PREFIX)} <= known
    assert documented_names == {
        "POSTGRES_PASSWORD",
        "MUSTER_DATABASE_URL",
        "MUSTER_REDIS_URL",
        "MUSTER_SECRET_KEY",
        "MUSTER_ENCRYPTION_KEYS",
        "MUSTER_ALLOWED_HOSTS",
    }


def test_the_database_is_not_given_the_keys() -> None:
    for name in ("postgres", "redis"):
        service = SERVICES[name]
        hidden = {key for key, value in service.get("environment", {}).items() if value == ""}
        assert (
            "env_file" not in service
            or {
                "MUSTER_SECRET_KEY",
                "MUSTER_ENCRYPTION_KEYS",
            }
            <= hidden
        )


def test_git_does_not_take_the_file_of_secrets() -> None:
    assert "/deploy/compose.env" in (DEPLOY.parent / ".gitignore").read_text().splitlines()
