"""Tests of the room of clusters."""
