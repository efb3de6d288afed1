"""A template that is chosen after something was typed, and given up again."""

import pytest

from environments.models import Template
from tests.cast import Cast
from tests.workloads.templated import save_template
from tests.workloads.wizarding import Walk

pytestmark = pytest.mark.django_db
TOOK_THE_PLACE = "values took the place of what you typed"


def fill_before_template(cast: Cast) -> Walk:
    """Return a walk at the review that began from scratch, with a typed setup and master."""
    walk = Walk(cast).send_start()
    walk.send_setup(image="typed/long:1", command="python train.py --many")
    return walk.send(differs=["cpu_request"], cpu_request="2")


def choose_template(walk: Walk, template: Template) -> Walk:
    return walk.see("start").send(template=str(template.pk))


def test_from_scratch_brings_back_what_was_typed_before_a_template(cast: Cast) -> None:
    template = save_template(cast)
    walk = fill_before_template(cast)
    before = walk.draft.data
    choose_template(walk, template)
    assert 'value="team/mine:1"' in walk.text
    assert walk.draft.data["master"] != before["master"]
    walk.see("start").send(template="scratch")
    after = walk.draft.data
    assert (after["setup"], after["master"]) == (before["setup"], before["master"])
    assert set(after) == set(before)


def test_a_message_says_that_a_template_took_the_place_of_what_was_typed(cast: Cast) -> None:
    template = save_template(cast)
    assert TOOK_THE_PLACE not in choose_template(Walk(cast).send_start(), template).text
    walk = choose_template(fill_before_template(cast), template)
    assert TOOK_THE_PLACE in walk.text
    assert TOOK_THE_PLACE not in walk.see("setup").text


def test_a_template_that_the_script_stored_is_filled_in_with_the_message(cast: Cast) -> None:
    template = save_template(cast)
    walk = fill_before_template(cast).see("start")
    typed = walk.draft.data["start"] | {"template": [str(template.pk)]}
    walk.client.post(f"/workloads/new/{walk.draft.pk}/start/typed", typed)
    walk.see("setup")
    assert 'value="team/mine:1"' in walk.text
    assert TOOK_THE_PLACE in walk.text


def test_a_second_template_keeps_what_was_typed_before_the_first(cast: Cast) -> None:
    first, second = save_template(cast), save_template(cast, name="other", image="team/other:2")
    walk = fill_before_template(cast)
    before = walk.draft.data["setup"]
    choose_template(walk, first).send(command="over-the-first")
    choose_template(walk, second)
    assert 'value="team/other:2"' in walk.text
    walk.see("start").send(template="scratch")
    assert walk.draft.data["setup"] == before


def test_a_template_that_another_tab_chose_is_not_overwritten_silently(cast: Cast) -> None:
    template = save_template(cast)
    late = fill_before_template(cast).see("setup")
    other = Walk(cast)
    other.page = other.client.get(f"/workloads/new/{late.draft.pk}/start")
    other.send(template=str(template.pk))
    before = late.draft.data["setup"]
    late.send(workers="3")
    assert late.page.status_code == 409
    assert "in another tab or window" in late.text
    assert late.draft.data["setup"] == before


def test_a_template_that_was_deleted_leaves_its_values(cast: Cast) -> None:
    template = save_template(cast)
    walk = choose_template(fill_before_template(cast), template)
    template.delete()
    walk.see("start").send(template="scratch")
    assert walk.draft.data["setup"]["image"] == ["team/mine:1"]
    assert "typed" not in walk.draft.data
