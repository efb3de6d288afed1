"""Tests of the clusters app."""
