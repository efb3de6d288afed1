"""The cluster that Muster itself runs in: its address comes from the environment, its credentials
from files that Kubernetes keeps fresh.
"""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from clusters.kube.access import BadKubeconfig, ClusterAccess

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_REFRESH_SECONDS = 60.0
"""Seconds for which a token that was read is used. Kubernetes replaces it long before it expires.
"""
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def is_in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT_FOLDER) -> bool:
    """Return whether this process runs in a pod that has a service account."""
    return (
        bool(environment.get(_HOST))
        and (folder / "token").is_file()
        and (folder / "ca.crt").is_file()
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
        token, ca = _read_token(folder), (folder / "ca.crt").read_text()
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


class ServiceAccountToken:
    """The service account's token, read again from time to time. The last one is used while the
    file cannot be read.
    """

    def __init__(
        self, folder: Path = SERVICE_ACCOUNT_FOLDER, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._read_at = -TOKEN_REFRESH_SECONDS

    def __call__(self) -> str:
        """Return the token to send now; "" where there never was one."""
        with self._lock:
            if self._clock() - self._read_at >= TOKEN_REFRESH_SECONDS:
                try:
                    self._token = _read_token(self._folder)
                    self._read_at = self._clock()
                except (OSError, UnicodeDecodeError):
                    pass
            return self._token


def _read_token(folder: Path) -> str:
    return (folder / "token").read_text().strip()
