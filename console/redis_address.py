"""The address of Redis as its clients and Celery take it: all check certificates alike."""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

_TLS_SCHEME = "rediss"
_EXCLUDED_FLAGS = "ssl_exclude_verify_flags"


def accept_plain_certificates(url: str) -> str:
    """Return the address with which clients take certificates without key identifiers, too.

    From Python 3.13 on these are refused by default, as those of many an authority of one's own
    are; other clients take them.
    """
    parts = urlsplit(url)
    options = parse_qsl(parts.query)
    if parts.scheme != _TLS_SCHEME or _EXCLUDED_FLAGS in dict(options):
        return url
    options.append((_EXCLUDED_FLAGS, "VERIFY_X509_STRICT"))
    return parts._replace(query=urlencode(options)).geturl()


def has_valid_options(url: str) -> bool:
    """Return whether clients take the options of an address. Connects to nothing."""
    # Here alone: processes that need no Redis do without the memory of its client library.
    from redis.connection import ConnectionPool
    from redis.exceptions import RedisError

    try:
        ConnectionPool.from_url(url).make_connection()
    except (ValueError, TypeError, RedisError):
        return False
    return True


def build_broker_settings(url: str) -> dict[str, Any]:
    """Return the settings with which Celery reaches Redis.

    Its transport reads few of an address's TLS options, and checks no certificate where there is
    none of them.
    """
    parts = urlsplit(url)
    if parts.scheme != _TLS_SCHEME:
        return {"broker_url": url}
    # Here alone: processes that need no Redis do without the memory of its client library.
    from redis.connection import parse_url

    parsed = parse_url(url)  # type: ignore[no-untyped-call]
    tls = {name: value for name, value in parsed.items() if name.startswith("ssl_")}
    others = [each for each in parse_qsl(parts.query) if not each[0].startswith("ssl_")]
    return {
        "broker_url": parts._replace(query=urlencode(others)).geturl(),
        "broker_use_ssl": {"ssl_cert_reqs": "required"} | tls,
    }
