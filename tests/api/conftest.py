"""Fixtures of the REST API's tests."""

from tests.workloads.past_rows import record as record
