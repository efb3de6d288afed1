"""What clients of services say of them is known, in whatever way they name its status."""

import pytest

from workloads.diagnosis.failure_signs import find_sign

LOGIN = "its login is missing"
RATE = "more often than it allows"
MISSING = "is not there, or it may not see it"
FAILED = "a service that it asked failed"


@pytest.mark.parametrize(
    ("line", "cause", "words"),
    [
        ("HTTPError: 403 Client Error. (Request ID: Root=1-1)", "access", LOGIN),
        ("google.api_core.exceptions.Forbidden: 403 GET https://storage/b/x: no", "access", LOGIN),
        ("ERROR Error while calling the API: who? (<Response [401]>)", "access", LOGIN),
        ("ClientError: An error occurred (403) when calling the HeadObject", "access", LOGIN),
        ("openai.AuthenticationError: Error code: 401 - {}", "access", LOGIN),
        ("azure.core.exceptions.ClientAuthenticationError: the header is wrong", "access", LOGIN),
        ("wandb.errors.CommError: user is not logged in", "access", LOGIN),
        ("x does not have storage.objects.get access to the object", "access", LOGIN),
        ("fatal: could not read Password for 'https://git': No such device", "access", LOGIN),
        ("Host key verification failed.", "access", LOGIN),
        ("ValueError: Comet.ml requires an API key.", "access", LOGIN),
        (
            "HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://hub",
            "access",
            RATE,
        ),
        ("openai.RateLimitError: Error code: 429 - {}", "access", RATE),
        ("ClientError: An error occurred (SlowDown) when calling PutObject", "access", RATE),
        ("HTTPError: 404 Client Error: Not Found for url: https://hub", "missing-file", MISSING),
        (
            "NoSuchKey: An error occurred: The specified key does not exist.",
            "missing-file",
            MISSING,
        ),
        (
            "google.api_core.exceptions.NotFound: 404 GET https://s: No such object: x/y",
            "missing-file",
            MISSING,
        ),
        ("DatasetNotFoundError: Dataset 'a/b' doesn't exist on the Hub", "missing-file", MISSING),
        (
            "HfHubHTTPError: 503 Server Error: Service Unavailable for url: https://hub",
            "network",
            FAILED,
        ),
        ("requests: response status code: 502", "network", FAILED),
    ],
)
def test_a_service_that_refuses_or_fails_is_known(line: str, cause: str, words: str) -> None:
    sign = find_sign(line)
    assert sign is not None
    assert (sign.cause, words in sign.words) == (cause, True)


@pytest.mark.parametrize(
    "line",
    [
        "step 500: status ok",
        "status 503 tokens per second",
        "batch 429 too short, padding",
        "404 samples not found in cache",
        "403 of 1000 samples kept",
        "dataset has 410 gone examples filtered out",
        "val error: 503.2",
        "retry policy: 5 attempts on 503",
        "auth: using anonymous credentials",
    ],
)
def test_a_number_that_is_no_status_is_none(line: str) -> None:
    assert find_sign(line) is None
