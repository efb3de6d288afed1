"""Offer `muster_delivery` by the name that scripts for training as a service use."""

from muster_delivery import register, unregister

__all__ = ["register", "unregister"]
