"""Signs of failures of services that a program asks: logins, rates, names, addresses. Pure."""

from collections.abc import Mapping, Sequence

from workloads.diagnosis.causes import FailureCause
from workloads.diagnosis.sign_forms import FailureSign, build_sign

_STATUS_WORDS: Mapping[str, str] = {
    "401": "unauthorized",
    "403": "forbidden",
    "404": "not found",
    "429": "too many requests",
    "500": "internal server error",
    "502": "bad gateway",
    "503": "service (?:temporarily )?unavailable",
    "504": "gateway time-?out",
}


def _match_status(*codes: str) -> str:
    """Return a pattern for the ways in which clients of HTTP name one of these statuses."""
    code = f"(?:{'|'.join(codes)})"
    named = "|".join(rf"\b{each},? {_STATUS_WORDS[each]}\b" for each in codes)
    return (
        rf"\b{code} (?:client|server) error|{named}|<response \[{code}\]>"
        rf"|\b(?:an error occurred|error|status) \({code}\)"
        rf"|\b(?:(?:http|response|api)[ _]?(?:status|error)?(?:[ _]?code)?|(?:status|error)"
        rf"[ _]?code)[:= ]{{1,3}}{code}(?![\d.])"
        rf"|\b{code} (?:get|head|post|put|patch|delete) https?:|\(error {code}: "
    )


SERVICE_SIGNS: Sequence[FailureSign] = (
    build_sign(
        FailureCause.ACCESS,
        rf"{_match_status('401', '403')}|gatedrepoerror|invalid credentials"
        r"|authentication failed|failed to authenticate|accessdenied|invalidaccesskeyid"
        r"|(?:authentication|credentials?|api_?(?:token|key)|unauthorized)\w{0,20}"
        r"(?:error|exception)\b"
        r"|signaturedoesnotmatch|invalid api key|permission denied \(publickey|gated repo\b"
        r"|\bapi.?key (?:is )?(?:not configured|not set|missing|required)|requires an api.?key"
        r"|api.?key .{0,80}\bis invalid|\bnot logged in\b"
        r"|\bdo(?:es)? not have (?:the )?(?:permission|\w{1,40}\.[\w.]{1,60} access)\b"
        r"|host key verification failed"
        r"|expiredtoken|could not read (?:username|password) for",
        "a service refused it: its login is missing or may not do this",
        "Check the credential that it uses, and what that may read.",
    ),
    build_sign(
        FailureCause.ACCESS,
        rf"{_match_status('429')}|ratelimiterror|rate limit exceeded|\(slowdown\)"
        r"|toomanyrequests",
        "a service refused it: it was asked more often than it allows",
        "Run it again later, or with a login that may ask more often; let one rank fetch for all.",
    ),
    build_sign(
        FailureCause.MISSING_FILE,
        rf"{_match_status('404')}|nosuch(?:key|bucket)\b|(?:the specified|no such) (?:key|"
        r"bucket|blob|object)\b|resourcenotfounderror"
        r"|(?<!local)(?:repository|revision|dataset|model|entry)notfounderror",
        "what it wants of a service is not there, or it may not see it",
        "Check the name, such as that of a model, a data set or a bucket, and what its credential "
        "may read.",
    ),
    build_sign(
        FailureCause.NETWORK,
        rf"{_match_status('500', '502', '503', '504')}",
        "a service that it asked failed",
        "Run it again later; if this repeats, ask whoever runs the service.",
    ),
    build_sign(
        FailureCause.NETWORK,
        r"name or service not known|name resolution|could not resolve host|getaddrinfo failed"
        r"|nodename nor servname|no address associated with hostname|name does not resolve",
        "it knows no address of a name",
        "Check the name. A pod's name is known only while the pod is there: if it is that of the "
        "master, look whether the master ended first.",
    ),
    build_sign(
        FailureCause.NETWORK,
        r"network is unreachable|no route to host|max retries exceeded with|proxyerror"
        r"|certificate_verify_failed|certificate verify failed|could not connect to the endpoint"
        r"|couldn't connect to 'https?:|https?connectionpool(?!.{0,200}thrown while requesting)"
        r"|localentrynotfounderror|run initialization has timed out"
        r"|offlinemodeisenabled|outgoing traffic has been disabled"
        r"|\b(?:requests|urllib3|httpx|httpcore|botocore|aiohttp)\.\S{0,60}timeout",
        "it does not reach an address, or does not trust who answers there",
        "Check the address; from the cluster a proxy may be needed, or the address be closed.",
    ),
)
