"""Tests of the workloads app."""
