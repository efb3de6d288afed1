"""The ASGI application of the web process."""

import gc
import os
from functools import partial

import django
from django.urls import get_resolver

from console import static_files
from console.body_limit import limit_body
from console.handler import SingleThreadHandler
from console.lifespan import serve_lifespan
from console.metrics.requests import measure_requests
from console.process_health import process_health

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

django.setup(set_prefix=False)
# Ahead of the application, which looks once which files there are.
static_files.collect_static_files()
application = serve_lifespan(
    measure_requests(limit_body(SingleThreadHandler())),
    start=partial(process_health.start, "web"),
    stop=process_health.stop,
)
# The first request does not wait for the views to be imported. What is loaded now stays for good: a
# full collection that looks through it takes a tenth of a second, which a request would feel.
assert get_resolver().url_patterns
gc.collect()
gc.freeze()
