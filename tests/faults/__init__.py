"""Tests of what survives when processes are killed and requests fail."""
