"""What becomes of a project's assets when the project is deleted. `settings.LEAVING` names this room: projects lie floors below."""

from collections.abc import Sequence

from django.apps import apps

from environments.models import Asset
from projects.models import Project


def hindering(project: Project) -> Sequence[str]:
    """Nothing: an asset is at work nowhere, for workloads copy its values."""
    return ()


def ended(project: Project) -> None:
    """Delete the assets that only this project could choose."""
    for model in apps.get_app_config("environments").get_models():
        if issubclass(model, Asset):
            model.objects.filter(project=project).delete()


def cleared(project: Project) -> str:
    """Nothing takes longer than that: ""."""
    return ""
