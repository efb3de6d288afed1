"""Let data workers without GPUs load what the ranks of a training script train on.

`register` and `unregister` are all that a script needs; outside a workload of Muster with data
workers they change nothing.
"""

from muster_delivery.registration import register, unregister

VERSION = "0.1.0"
"""The version of this package, and of Muster whose environment variables it reads."""

__all__ = ["VERSION", "register", "unregister"]
