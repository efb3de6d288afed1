"""docs/production.md names what there is: files, headings, settings, directories to apply."""

import re

from console import options
from tests.cluster import ROOT
from tests.deploy.documented import PRODUCTION

TEXT = PRODUCTION.read_text()


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_links_lead_somewhere() -> None:
    headings = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        file, _, part = target.partition("#")
        assert (PRODUCTION.parent / file).exists() if file else part in headings, target


def test_what_is_to_be_applied_is_there() -> None:
    places = re.findall(r"kubectl apply -[kf] (deploy/\S+)", TEXT)
    assert len(places) > 3
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_every_setting_is_one() -> None:
    known = {f"{options.PREFIX}{name.upper()}" for name in options.Options.model_fields}
    assert set(re.findall(rf"\b{options.PREFIX}[A-Z0-9_]+\b", TEXT)) <= known
