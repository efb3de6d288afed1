"""The settings of beat and of what follows clusters and captures logs: those of all, fewer apps.

They use the rows of the apps and none of their pages, steps and seams, which would take more memory
than all that they read.
"""

# Django reads a settings module's own names, so all of them have to be here.
from console.settings import *  # noqa: F403

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "console",
    "console.rows_only.Projects",
    "console.rows_only.Clusters",
    "console.rows_only.Environments",
    "console.rows_only.Workloads",
]
