"""The cluster that Muster itself runs in: its address comes from the environment, its credentials
from files that Kubernetes keeps fresh.
"""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from clusters.kube.access import BadKubeconfig, ClusterAccess

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REFRESH_SECONDS = 60.0
"""Seconds for which a file that was read is used. Kubernetes replaces a token long before it
expires, and a certificate authority before servers come with certificates of the new one.
"""
TOKEN_FILE, AUTHORITY_FILE = "token", "ca.crt"
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def is_in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT_FOLDER) -> bool:
    """Return whether this process runs in a pod that has a service account."""
    return (
        bool(environment.get(_HOST))
        and (folder / TOKEN_FILE).is_file()
        and (folder / AUTHORITY_FILE).is_file()
    )


def read_own_namespace(folder: Path = SERVICE_ACCOUNT_FOLDER) -> str:
    """Return the namespace of this process; "" outside a pod with a service account."""
    try:
        return (folder / "namespace").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def build_access(
    environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT_FOLDER
) -> ClusterAccess:
    """Return the access of the pod's service account, with its current token. Raises BadKubeconfig
    where there is none.
    """
    host = environment.get(_HOST, "")
    try:
        token, ca = ((folder / name).read_text().strip() for name in (TOKEN_FILE, AUTHORITY_FILE))
    except (OSError, UnicodeDecodeError) as error:
        raise BadKubeconfig(
            f"Muster does not run in a pod with a service account: {error.__class__.__name__} at "
            f"{folder}. "
            "Run it in the cluster, or give a kubeconfig or a token."
        ) from None
    if not host:
        raise BadKubeconfig(
            f"Muster does not run in a cluster: {_HOST} is not set. Give a kubeconfig or a token."
        )
    authority = f"[{host}]" if ":" in host else host
    return ClusterAccess(f"https://{authority}:{environment.get(_PORT) or 443}", ca=ca, token=token)


class ServiceAccountFile:
    """A file of the service account, read again from time to time. What was read last is used
    while the file cannot be read.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._text = ""
        self._read_at = -REFRESH_SECONDS

    def __call__(self) -> str:
        """Return the text of the file; "" where it could never be read."""
        with self._lock:
            if self._clock() - self._read_at >= REFRESH_SECONDS:
                try:
                    self._text = self._file.read_text().strip()
                    self._read_at = self._clock()
                except (OSError, UnicodeDecodeError):
                    pass
            return self._text
