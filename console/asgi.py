"""The web process."""

import os

import django
from django.core.asgi import get_asgi_application

from console import static

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

django.setup(set_prefix=False)
# Ahead of the application, which looks once which files there are.
static.collect()
application = get_asgi_application()
