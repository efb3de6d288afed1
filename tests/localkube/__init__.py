"""Tests of the embedded cluster: its parts, and its process as a whole."""
