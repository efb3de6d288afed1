"""localkube: an embedded one-machine cluster that speaks the Kubernetes API.

It runs pods as local processes. It knows nothing of the console: no Django, no import of our other
packages; they reach it over HTTP like any other cluster.
"""

VERSION = "0.1.0"

KUBERNETES_VERSION = f"v1.33.0+localkube-{VERSION}"
"""The Kubernetes release whose API is spoken here, as clients are told. kubectl warns when it
differs by more than one.
"""
