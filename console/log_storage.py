"""The object store of ended logs, as Django's STORAGES describes it."""

from typing import Any

CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0
ATTEMPTS = 2
"""How long one request may take, and how often it is made. Pages wait for it; by itself the
library waits five minutes for a store that does not answer.
"""


def load_error_types() -> tuple[type[Exception], ...]:
    """Return the errors that the client library of the object store raises."""
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError


def describe_log_storage(address: str) -> dict[str, Any]:
    """Return the entry of STORAGES for `s3://BUCKET/PREFIX`.

    Credentials, region and endpoint come from the environment, as every S3 client reads them
    (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...). Raises ImportError where requirements-s3.txt is not
    installed.
    """
    # Whoever stores logs on the disk needs no such library.
    from botocore.config import Config

    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    )
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": bucket,
            "location": prefix.strip("/"),
            "file_overwrite": True,
            "client_config": config,
        },
    }
