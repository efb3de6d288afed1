"""Beat's Celery: it asks for steps by their names, and loads none of them."""

import os

from celery import Celery
from django.conf import settings

from console.processes import BACKGROUND_SETTINGS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", BACKGROUND_SETTINGS)

app = Celery("muster")
app.conf.update(settings.CELERY)
