"""Label matchers that choose one cluster's series: in every selector, and out of none."""

import re

import pytest

from clusters.metrics import sources
from clusters.metrics.catalogue import METRICS, Metric
from clusters.metrics.matchers import add_matchers, parse_matchers
from clusters.metrics.sign_in import SignIn
from tests.clusters.prometheus_answers import (
    ASKED,
    fine,
    saying,
    vector,
)

SELECTOR = re.compile(r"(?:DCGM_FI|container)_\w+")


@pytest.mark.parametrize(
    "metric", [each for each in METRICS if each.query], ids=lambda each: each.name
)
def test_matchers_are_in_every_selector(metric: Metric) -> None:
    selectors = len(SELECTOR.findall(metric.query))
    assert selectors >= 1
    assert metric.query.count("{") == selectors, "every selector has braces"
    query = add_matchers(metric.query, 'cluster=~"a{2}"')
    assert len(re.findall(r'\w\{cluster=~"a\{2\}"[,}]', query)) == selectors
    assert add_matchers(metric.query, "") == metric.query


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ""),
        ("  ", ""),
        ('cluster="prod-1"', 'cluster="prod-1"'),
        (' cluster = "a" , region=~"eu-.*|us,x" ', 'cluster="a",region=~"eu-.*|us,x"'),
        ('cluster=""', 'cluster=""'),
    ],
)
def test_matchers_are_read(text: str, wanted: str) -> None:
    assert parse_matchers(text) == wanted
    assert parse_matchers(wanted) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "cluster", "cluster=prod", "cluster='a'", "cluster=`a`", 'cluster!="a"', 'cluster!~"a"',
        'cluster="a', 'cluster="a"}', 'cluster="a"} or up{x="', 'cluster="a\\"} or up{x="b"',
        r'cluster="a\"', r'cluster="a\n"', 'cluster="a\nb"', 'cluster="a",', ',cluster="a"',
        'cluster="a" region="b"', '__name__="up"', '1a="b"', 'ü="b"', 'cluster="ü"',
        '{cluster="a"}',
        'cluster="' + "a" * 250 + '"', 'cluster="a"#', 'cluster="a"\n,b="c"', 'cluster="\x00"',
    ],
)  # fmt: skip
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Write name=|Give at most"):
        parse_matchers(text)


def test_matchers_go_with_every_query() -> None:
    with saying(vector()) as server:
        address = sources.PrometheusAddress(
            f"http://127.0.0.1:{server.port}", SignIn(), fine, 'cluster="a"'
        )
        assert sources.sweep_prometheus(address).problem == ""
    assert len(server.requests) == len(ASKED)
    assert all('{cluster="a"' in request.query["query"] for request in server.requests)
