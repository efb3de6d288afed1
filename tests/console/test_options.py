"""Every knob comes from the environment; nonsense is refused with the variable's name, by whichever
process reads it first.
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from console import options
from console.options import BadOptions, Options
from scripts.settings_table import DOCUMENT, document
from tests.cluster import ROOT
from tests.installation import clean_environment

NONSENSE = {
    "MUSTER_PORT": ["eighty", "65536", "-1"],
    "MUSTER_LOCALKUBE_PORT": ["x"],
    "MUSTER_LOCALKUBE_GPUS": ["-1", "many"],
    "MUSTER_LOCALKUBE_NODES": ["four", "4x1", "4x1gpu,", "-1", "2,4x1gpu"],
    "MUSTER_PRODUCTION": ["perhaps"],
    "MUSTER_WORKER_THREADS": ["0", "1.5"],
    "MUSTER_KUBE_RATE": ["0", "fast"],
    "MUSTER_DATABASE_URL": ["mysql://here/it", "postgres:", "/var/db"],
    "MUSTER_REDIS_URL": [
        "http://here",
        "6379",
        "redis://[::1/0",
        "rediss://here:99999/0",
        "redis://here/0?health_check_interval=often",
        "rediss://here/0?ssl_min_version=newest",
        "rediss://here/0?ssl_cert_reqs=perhaps",
        "redis://here/0?ssl_ca_certs=/etc/ca.pem",
    ],
    "MUSTER_LOG_STORAGE": ["gs://bucket"],
    "MUSTER_LOG_LEVEL": ["loud", "info"],
    "MUSTER_LOG_DAYS": ["0", "-3"],
    "MUSTER_TOKEN_SECONDS": ["1"],
}
KEYS = {
    "secret_key": "only-to-test-with-and-long-enough",
    "encryption_keys": "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=",
}
CASES = [(name, value) for name, values in NONSENSE.items() for value in values]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Options.model_fields:
        monkeypatch.delenv(f"MUSTER_{name.upper()}", raising=False)


@pytest.mark.parametrize(("name", "value"), CASES)
def test_nonsense_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadOptions, match=f"^{name}: "):
        options.read_options()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("MUSTER_PORT", "eighty", "write a whole number"),
        ("MUSTER_PORT", "65536", "write at most 65,535"),
        ("MUSTER_TOKEN_SECONDS", "1", "write 300 or more"),
        ("MUSTER_KUBE_RATE", "fast", "write a number"),
        ("MUSTER_KUBE_RATE", "0", "write more than 0"),
        ("MUSTER_PRODUCTION", "perhaps", "write 1 or 0"),
        ("MUSTER_LOG_LEVEL", "loud", "write DEBUG, INFO, WARNING or ERROR"),
        (
            "MUSTER_LOCALKUBE_NODES",
            "four",
            "write a number of nodes as 4, or shapes with their GPUs as 4x1gpu,2x0gpu",
        ),
    ],
)
def test_a_refusal_says_what_to_write_instead(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadOptions) as refusal:
        options.read_options()
    assert str(refusal.value) == f"{name}: {words}"


def test_all_nonsense_is_refused_in_muster_s_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CASES:
        monkeypatch.setenv(name, value)
        with pytest.raises(BadOptions) as refusal:
            options.read_options()
        monkeypatch.delenv(name)
        assert not re.search(r"Input should|String should|Value error", str(refusal.value))


def test_a_password_in_an_address_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_DATABASE_URL", "oracle://scott:tiger@here/it")
    with pytest.raises(BadOptions) as refusal:
        options.read_options()
    assert "tiger" not in str(refusal.value)


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
@pytest.mark.parametrize(
    "password", ["tiger/x", "tiger?x", "tiger#x", "12/tiger", "12?tiger=x", "12#tiger", "[tiger"]
)
def test_a_password_with_marks_of_an_address_is_to_be_encoded(
    monkeypatch: pytest.MonkeyPatch, scheme: str, password: str
) -> None:
    monkeypatch.setenv("MUSTER_REDIS_URL", f"{scheme}://:{password}@here:6379/0")
    with pytest.raises(BadOptions, match="percent-encode") as refusal:
        options.read_options()
    assert "tiger" not in str(refusal.value)
    encoded = f"{scheme}://:{quote(password, safe='')}@here:6379/0"
    monkeypatch.setenv("MUSTER_REDIS_URL", encoded)
    assert options.read_options().redis_url == encoded


def test_a_refused_option_of_redis_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MUSTER_REDIS_URL", "redis://here/0?password=tiger&retries=3")
    with pytest.raises(BadOptions, match=r"options \(password, retries\)") as refusal:
        options.read_options()
    assert "tiger" not in str(refusal.value)


def test_nothing_has_to_be_set() -> None:
    read = options.read_options()
    assert (read.data_dir, read.host, read.port, read.production) == (
        Path("var").absolute(),
        "127.0.0.1",
        8000,
        False,
    )


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_PORT", "")
    assert options.read_options().port == 8000


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_ALLOWED_HOSTS", " muster.example.org, ,10.0.0.7 ")
    assert options.read_options().hosts == ["muster.example.org", "10.0.0.7"]


def test_the_settings_page_is_true() -> None:
    assert DOCUMENT.read_text() == document(), "run: python scripts/settings_table.py"


def test_the_addresses_of_the_settings_page_begin_as_those_that_are_taken() -> None:
    assert set(re.findall(r"`(\w+)://", document())) >= {"postgres", "redis", "s3"}
    assert not re.findall(r"\b[A-Z]\w*://", document())


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"port": "eighty"}, "MUSTER_PORT: "),
        ({"production": 1}, "MUSTER_SECRET_KEY and MUSTER_ENCRYPTION_KEYS must be given"),
        (
            {"production": 1, "debug": 1, **KEYS},
            "MUSTER_DEBUG and MUSTER_PRODUCTION exclude each other",
        ),
        (
            {"secret_key": "x", "encryption_keys": "short"},
            "Key 1 of MUSTER_ENCRYPTION_KEYS is no Fernet key",
        ),
        ({"redis_url": "rediss://:pa/ss@h:6379/0"}, "MUSTER_REDIS_URL: "),
    ],
)
@pytest.mark.parametrize(
    "command", [["-m", "console", "web"], ["-m", "console", "up"], ["manage.py", "check"]]
)
def test_every_process_refuses_in_words(
    tmp_path: Path, command: list[str], wrong: dict[str, object], reason: str
) -> None:
    environment = clean_environment(data_dir=tmp_path, **wrong)
    done = subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode != 0
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["web", "worker", "beat", "follow", "capture"])
def test_every_process_of_the_procfile_can_be_started_alone(name: str) -> None:
    assert f"{name}: python -m console {name}" in (ROOT / "Procfile").read_text().splitlines()
    environment = clean_environment(port="eighty")
    done = subprocess.run(
        [sys.executable, "-m", "console", name],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert (done.returncode, done.stderr.partition("\n")[0]) == (
        2,
        "Muster could not start. MUSTER_PORT: write a whole number",
    )
