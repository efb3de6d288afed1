"""Data workers in the wizard: off until somebody opens the section and says how many."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn
from tests.browser.test_wizard_frameworks import check_page, continue_to, start_wizard, unfold


def fill_data_workers(page: Page, workers: str) -> None:
    page.get_by_label("Number of data workers").fill(workers)
    page.get_by_label("Units to prepare first").fill("20480")
    page.get_by_label("CPU request of each data worker").fill("2")
    page.get_by_label("Memory request of each data worker").fill("4Gi")


def test_data_workers_are_folded_until_they_are_asked_for(sign_in: SignIn) -> None:
    page = sign_in("alice")
    start_wizard(page, "PyTorch")
    continue_to(page, "setup")
    expect(page.locator("#delivery")).not_to_have_attribute("open", "")
    page.locator("#delivery > summary").click()
    expect(page.get_by_label("Number of data workers")).to_be_visible()
    unfold(page)
    page.locator("[name=environment_choice][value=custom]").check()
    page.locator("[name=image]").fill("team/train")
    page.locator("[name=compute_choice][value=custom]").check()
    fill_data_workers(page, "9")
    continue_to(page, "setup")
    expect(page.locator("#delivery")).to_have_attribute("open", "")
    expect(page.locator("#id_data_workers_error")).to_contain_text("from 1 to 8")
    check_page(page)
    page.get_by_label("Number of data workers").fill("4")
    continue_to(page, "master")
    continue_to(page, "review")
    expect(page.get_by_text("4, 2 CPU, 4Gi memory each; 20,480 units prepared")).to_be_visible()
    unfold(page)
    expect(page.get_by_text("muster.dev/waits-for-data")).to_be_visible()
    check_page(page)


def test_frameworks_without_known_ranks_have_no_data_workers(sign_in: SignIn) -> None:
    page = sign_in("alice")
    start_wizard(page, "TensorFlow")
    continue_to(page, "setup")
    expect(page.locator("#delivery")).to_have_count(0)
