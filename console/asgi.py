"""The web process."""

import os

import django
from django.core.asgi import get_asgi_application

from console import static
from console.bounds import bounded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

django.setup(set_prefix=False)
# Ahead of the application, which looks once which files there are.
static.collect()
application = bounded(get_asgi_application())
