"""The image's files and commands, on a machine that lets them write to /data and /tmp only:
prepare, and every process, start and stop.
"""

import asyncio
import re
import secrets
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet

from console import redis_server
from tests.deploy import confined
from tests.deploy.image import Image
from tests.free_ports import pick_free_port

pytestmark = [
    pytest.mark.skipif(not confined.is_supported(), reason="this kernel has no Landlock"),
    pytest.mark.timeout(900),
]

LISTENS = re.compile(r"Uvicorn running on http://0\.0\.0\.0:(\d+)")
PASSWORD = "as the test says"


class Container:
    """A command in the image, confined to its own data and temporary directory."""

    def __init__(
        self, image: Image, environment: dict[str, str], name: str, *arguments: str
    ) -> None:
        self.out = image.root / f"{name}.log"
        places = [image.root / "data", image.root / "tmp"]
        self.process = confined.start(
            places, *arguments, cwd=image.root / "app", environment=environment, out=self.out
        )

    @property
    def output(self) -> str:
        return self.out.read_text(errors="replace")

    def until(self, pattern: "re.Pattern[str]", within: float = 180.0) -> "re.Match[str]":
        """Wait until it says that."""
        deadline = time.monotonic() + within
        while (found := pattern.search(self.output)) is None:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)
        return found

    def ended(self, within: float = 180.0) -> int:
        return self.process.wait(within)

    def stop(self) -> int:
        """Its exit status after SIGTERM; killed where that is not enough."""
        self.process.terminate()
        try:
            return self.ended(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(tmp_path_factory.mktemp("image") / "root").build()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Redis of its own."""
    server = redis_server.RedisServer(
        tmp_path_factory.mktemp("redis"), pick_free_port(), secrets.token_hex(8)
    )
    server.prepare_directory()
    with subprocess.Popen(server.command(), stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while not asyncio.run(server.is_ready()):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield server.url
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def environment(image: Image, redis: str) -> dict[str, str]:
    """As the manifests give it, with the database that needs no server."""
    given = image.environment(
        secret_key=secrets.token_urlsafe(64),
        encryption_keys=Fernet.generate_key().decode(),
        allowed_hosts="muster.example.org",
        admin_password=PASSWORD,
        redis_url=redis,
        port=0,
    )
    prepared = Container(image, given, "prepare", "manage.py", "prepare")
    assert (prepared.ended(), "Sign in as admin" in prepared.output) == (0, True), prepared.output
    return given


def test_the_database_is_prepared_and_those_who_wait_for_it_go_on(
    image: Image, environment: dict[str, str]
) -> None:
    waits = Container(image, environment, "wait", "manage.py", "migrate", "--check")
    assert waits.ended() == 0, waits.output


def test_pages_and_their_styles_are_served(image: Image, environment: dict[str, str]) -> None:
    web = Container(image, environment, "web", "-m", "console", "web")
    try:
        address = f"http://127.0.0.1:{web.until(LISTENS)[1]}"
        assert fetch_page(f"{address}/healthz", "localhost") == "ok\n"
        assert fetch_page(f"{address}/readyz", "localhost").startswith("ready")
        page = fetch_page(f"{address}/sign-in", "muster.example.org")
        styles = re.findall(r'href="(/static/css/muster\.[0-9a-f]{12}\.css)"', page)
        assert styles, page[:2000]
        assert "{" in fetch_page(address + styles[0], "muster.example.org")
    finally:
        assert web.stop() in (0, -15), web.output
    assert "Permission denied" not in web.output


@pytest.mark.parametrize("name", ["worker", "beat", "follow", "capture"])
def test_the_other_processes_run_show_that_they_live_and_stop(
    image: Image, environment: dict[str, str], name: str
) -> None:
    alive = image.root / "tmp" / "alive"
    alive.unlink(missing_ok=True)
    process = Container(image, environment, name, "-m", "console", name)
    try:
        deadline = time.monotonic() + 180
        while not alive.exists():
            assert process.process.poll() is None, process.output
            assert time.monotonic() < deadline, process.output
            time.sleep(0.05)
    finally:
        status = process.stop()
    assert status == 0, process.output
    assert "Permission denied" not in process.output


def test_what_is_written_elsewhere_is_refused(image: Image, environment: dict[str, str]) -> None:
    code = "import pathlib, sys; pathlib.Path(sys.argv[1], 'x').write_text('')"
    assert Container(image, environment, "data", "-c", code, str(image.root / "data")).ended() == 0
    refused = Container(image, environment, "app", "-c", code, str(image.root / "app"))
    assert (refused.ended(), "Permission denied" in refused.output) == (1, True)


def test_no_keys_of_the_build_are_left(image: Image) -> None:
    assert not list((image.root / "app").rglob("keys.json"))
    assert not (image.root / "app" / "static").exists()


def fetch_page(url: str, host: str) -> str:
    request = urllib.request.Request(url, headers={"Host": host, "X-Forwarded-Proto": "https"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        body: bytes = answer.read()
        return body.decode()
