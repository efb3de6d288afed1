"""Tests of the Kubernetes client: against the embedded cluster, and against a server that
misbehaves as told.
"""
