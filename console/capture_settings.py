"""The settings of the process that captures logs: those of all, with fewer apps.

It uses the rows of the apps and none of their pages, steps and seams, which would take more memory
than all that it reads.
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
