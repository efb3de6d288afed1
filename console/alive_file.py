"""The liveness file of processes that answer no requests (MUSTER_ALIVE_FILE).

They renew its modification time as long as they go on; a probe looks at it.
"""

import logging

from django.conf import settings

log = logging.getLogger(__name__)


def touch_alive_file() -> None:
    """Set the file's modification time to now, where a file is configured.

    Never fails: an error is logged and is no reason to end the process.
    """
    file = settings.OPTIONS.alive_file
    if file is not None:
        try:
            file.touch()
        except OSError as error:
            log.warning("%s, the sign of life, cannot be written: %s", file, error.strerror)
