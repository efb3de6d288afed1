"""The frame of every page: navigation, banners, theme, icons, what is vendored."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from clusters.models import Cluster
from scripts.vendor import SPRITE, list_used_icons
from tests.cast import Cast

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]


def seen_by(client: Client, user: object, at: str = "/projects") -> str:
    client.force_login(user)  # type: ignore[arg-type]
    return client.get(at).content.decode()


def test_only_administrators_are_led_to_the_users(client: Client, cast: Cast) -> None:
    assert 'href="/users"' in seen_by(client, cast.alice)
    assert 'href="/users"' not in seen_by(client, cast.bob)


def test_the_navigation_says_where_one_is(client: Client, cast: Cast) -> None:
    text = seen_by(client, cast.bob, f"/projects/{cast.team_a.pk}")
    assert re.findall(r'href="([^"]+)" aria-current="page"', text) == ["/projects"]


def test_every_page_says_that_workloads_run_on_this_machine(client: Client, cast: Cast) -> None:
    assert "Single-trust mode: workloads run on this machine" in seen_by(client, cast.bob)
    assert "let sign in to this machine" in seen_by(client, cast.bob, "/help/single-trust")


def test_pages_say_since_when_a_cluster_does_not_answer(client: Client, cast: Cast) -> None:
    cast.cluster.unreachable_since = timezone.now()
    cast.cluster.is_local = False
    cast.cluster.save()
    text = seen_by(client, cast.bob)
    assert "The cluster here has not answered since" in text
    assert "Single-trust" not in text


@pytest.mark.parametrize(
    ("seconds", "is_said"), [(-60, True), (-5, False), (5, False), (None, False)]
)
def test_pages_say_since_when_a_cluster_is_not_followed(
    client: Client, cast: Cast, seconds: int | None, is_said: bool
) -> None:
    lease_end = None if seconds is None else timezone.now() + timedelta(seconds=seconds)
    Cluster.objects.update(followed_until=lease_end, is_local=False)
    text = " ".join(seen_by(client, cast.bob).split())
    words = "What happens in the cluster here has not been written down since"
    assert (words in text) is is_said
    assert ("no process follows it, or the database takes nothing new" in text) is is_said
    # What is worse is said alone.
    Cluster.objects.update(unreachable_since=timezone.now())
    assert "has not been written down" not in seen_by(client, cast.bob)


def test_who_has_no_project_on_a_cluster_hears_nothing_of_it(client: Client, cast: Cast) -> None:
    cast.bob.access_rules.all().delete()
    assert "Single-trust" not in seen_by(client, cast.bob)


def test_a_chosen_theme_is_there_at_the_first_paint(client: Client, cast: Cast) -> None:
    client.cookies["muster_theme"] = "dark"
    assert 'class="pf-v6-theme-dark"' in seen_by(client, cast.bob)
    client.cookies["muster_theme"] = '"><script>'
    assert '<html lang="en">' in seen_by(client, cast.bob)


@pytest.mark.parametrize("at", ["/sign-in", "/projects", "/nowhere"])
def test_no_page_has_a_script_or_style_of_its_own(client: Client, cast: Cast, at: str) -> None:
    text = seen_by(client, cast.alice, at) if at != "/sign-in" else client.get(at).content.decode()
    assert re.findall(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=", text) == []


def test_what_is_not_there_is_told_in_the_frame(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    answer = client.get("/nowhere")
    assert answer.status_code == 404
    assert "There is nothing here that you may see" in answer.content.decode()
    assert 'aria-label="Main"' in answer.content.decode()


def test_a_failure_is_told_without_its_text(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(cast.bob)
    client.raise_request_exception = False
    monkeypatch.setattr("projects.views.project_table.TABLE", "nonsense")
    answer = client.get("/projects")
    assert answer.status_code == 500
    assert "Something went wrong on our side" in answer.content.decode()
    assert "nonsense" not in answer.content.decode()


def test_the_sprite_has_every_icon_that_is_named() -> None:
    there = set(re.findall(r'<symbol id="([^"]+)"', SPRITE.read_text()))
    how = "cut the sprite anew: python scripts/vendor.py icons <tarball>"
    assert list_used_icons() - there == set(), how


def test_everything_that_is_vendored_has_its_licence() -> None:
    for place in [
        *(ROOT / "static/vendor").iterdir(),
        *(ROOT / "tests/browser/vendor").iterdir(),
        ROOT / "static/icons",
    ]:
        assert (place / "LICENSE").is_file(), place


def test_the_static_files_refer_to_nothing_that_is_not_there(
    tmp_path: Path, settings: object
) -> None:
    settings.STATIC_ROOT = tmp_path  # type: ignore[attr-defined]
    backend = f"{ManifestStaticFilesStorage.__module__}.ManifestStaticFilesStorage"
    settings.STORAGES = {"staticfiles": {"BACKEND": backend}}  # type: ignore[attr-defined]
    call_command(
        "collectstatic", interactive=False, verbosity=0, ignore_patterns=["rest_framework"]
    )
    assert list(tmp_path.glob("vendor/patternfly-*/patternfly.min.*.css"))


@pytest.mark.parametrize(("at", "queries"), [("/projects", 10), ("/clusters", 5), ("/users", 8)])
def test_a_page_asks_the_database_so_often_however_much_there_is(
    client: Client, cast: Cast, django_assert_num_queries: object, at: str, queries: int
) -> None:
    client.force_login(cast.alice)
    with django_assert_num_queries(queries):  # type: ignore[operator]
        client.get(at)
