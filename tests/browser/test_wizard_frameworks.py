"""The wizard's steps for each framework, and what its script does: cards that follow the cluster,
rows that show what matters.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SignIn, Site, axe, fits

OTHER = """
from clusters.capabilities import Capabilities
from clusters.models import Cluster
from projects.models import Project
there, _ = Cluster.objects.get_or_create(name="there", defaults={"server": "https://127.0.0.1:2"})
there.capabilities = Capabilities(served=frozenset({"kubeflow.org/v1/pytorchjobs"})).to_json()
fast = {"name": "fast-ssd", "provisioner": "x", "is_default": False}
there.findings = {"storage_classes": [fast]}
there.save()
team = Project.objects.first()
defaults = dict(department=team.department, cluster=there, namespace="there", queue="there")
Project.objects.get_or_create(name="team-there", defaults=defaults)
"""
FRAMEWORKS = {
    "PyTorch": "Master",
    "TensorFlow": "Chief",
    "XGBoost": "Master",
    "JAX": "",
    "MPI": "Launcher",
    "PaddlePaddle": "Master",
}


def start_wizard(page: Page, framework: str) -> None:
    page.goto("/workloads/new")
    page.get_by_label("Cluster").select_option(label="here")
    page.get_by_role("radio", name="Distributed", exact=True).check()
    page.get_by_role("radio", name=framework, exact=True).check()
    page.get_by_label("Name").fill(f"of-{framework.lower()}")


def continue_to(page: Page, to: str) -> None:
    page.get_by_role("button", name="CONTINUE", exact=True).click()
    page.wait_for_url(f"**/{to}")


def unfold(page: Page) -> None:
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")


def check_page(page: Page) -> None:
    """At all our widths and in both themes."""
    fits(page)
    axe(page)
    page.set_viewport_size({"width": 360, "height": 800})
    axe(page)
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.sweep
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_step_of_a_framework_is_accessible_and_fits(
    sign_in: SignIn, site: Site, framework: str
) -> None:
    site.server.python(OTHER)
    page, leader = sign_in("alice"), FRAMEWORKS[framework]
    start_wizard(page, framework)
    expect(page.get_by_role("radio", name="Workers only")).to_be_visible(
        visible=framework in ("PyTorch", "TensorFlow", "PaddlePaddle")
    )
    check_page(page)
    continue_to(page, "setup")
    unfold(page)
    page.locator("[name=environment_choice][value=custom]").check()
    page.locator("[name=image]").fill("team/train")
    page.locator("[name=compute_choice][value=custom]").check()
    check_page(page)
    continue_to(page, "master" if leader else "review")
    if leader:
        expect(page.get_by_text(f"The {leader.lower()} has the workers' setup.")).to_be_visible()
        for box in page.locator("[name=differs]").all():
            box.check()
        check_page(page)
        for box in page.locator("[name=differs]").all():
            box.uncheck()
        continue_to(page, "review")
    expect(page.get_by_role("heading", name="What cluster here makes of it")).to_be_visible()
    unfold(page)
    check_page(page)


def test_the_cards_follow_the_cluster_without_another_page(sign_in: SignIn, site: Site) -> None:
    site.server.python(OTHER)
    page = sign_in("alice")
    start_wizard(page, "PyTorch")
    page.evaluate("window.marked = true")
    expect(page.get_by_role("radio", name="JAX")).to_be_enabled()
    page.get_by_label("Cluster").select_option(label="there")
    expect(page.get_by_role("radio", name="JAX")).to_be_disabled()
    expect(page.get_by_text("The cluster does not serve JAXJob objects.")).to_be_visible()
    expect(page.get_by_role("radio", name="PyTorch")).to_be_enabled()
    page.get_by_label("Cluster").select_option(label="here")
    expect(page.get_by_role("radio", name="JAX")).to_be_enabled()
    expect(page.get_by_text("The cluster does not serve JAXJob objects.")).to_be_hidden()
    assert page.evaluate("window.marked"), "the page was loaded again"


def test_a_chosen_framework_stays_when_its_cluster_cannot_run_it(
    sign_in: SignIn, site: Site
) -> None:
    site.server.python(OTHER)
    page = sign_in("alice")
    start_wizard(page, "MPI")
    page.get_by_label("Cluster").select_option(label="there")
    expect(page.get_by_role("radio", name="MPI")).to_be_checked()
    continue_to(page, "start")
    expect(page.locator("#framework_error")).to_contain_text("does not serve MPIJob objects")


FIELDS = {
    "New PVC": ("Size", "Storage class", "Kept", "Access"),
    "Git repository": (
        "Repository",
        "Branch",
        "Revision",
        "Secret",
        "What the Secret has",
        "Access",
    ),
    "S3 bucket": ("Bucket", "Only below", "Address of the service", "Secret"),
    "NFS": ("Server", "Path there", "Access"),
}


def test_a_volume_shows_the_fields_of_its_kind(sign_in: SignIn, site: Site) -> None:
    site.server.python(OTHER)
    page = sign_in("alice")
    start_wizard(page, "PyTorch")
    page.get_by_label("Cluster").select_option(label="there")
    continue_to(page, "setup")
    page.get_by_role("button", name="Add volume").click()
    row = page.locator("[data-row-of=volumes-0]")
    every = {label for labels in FIELDS.values() for label in labels}
    for kind, labels in FIELDS.items():
        row.get_by_label("Type").select_option(label=kind)
        visible_labels = {
            label
            for label in every
            if row.locator("label:visible", has_text=label).filter(has_text=label).count()
        }
        assert set(labels) <= visible_labels, (kind, visible_labels)
        assert not (every - set(labels) - {"Secret"}) & visible_labels, (kind, visible_labels)
        check_page(page)
    row.get_by_label("Type").select_option(label="New PVC")
    expect(page.locator("#storage-classes option")).to_have_attribute("value", "fast-ssd")


def test_a_total_of_gpus_is_drawn_while_it_is_typed(sign_in: SignIn) -> None:
    page = sign_in("alice")
    start_wizard(page, "PyTorch")
    continue_to(page, "setup")
    page.locator("#card-compute_choice-custom").check()
    page.locator("#id_gpu_devices").fill("8")
    total, workers = page.locator("#id_total_gpus"), page.locator("#id_workers")
    machines = page.locator("#machines")
    number = workers.input_value()
    total.fill("20")
    expect(machines).to_contain_text("The nearest that can: 16 or 24.")
    expect(workers).to_be_disabled()
    expect(workers).to_have_value("")
    total.fill("16")
    expect(machines).to_contain_text("16 GPUs = 2 machines × 8: one master, one worker")
    expect(machines.locator(".mg-gpu")).to_have_count(16)
    fits(page)
    total.fill("")
    expect(machines.locator(".mg-machines")).to_have_count(0)
    expect(workers).to_be_enabled()
    expect(workers).to_have_value(number)
