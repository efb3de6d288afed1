"""Attributes that inputs of several forms about clusters have."""

PLAIN_INPUT = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
"""Nothing is filled in, capitalised or corrected: addresses, names and secrets."""
