"""Run:ai's own client, the `runapy` package, unmodified.

The warnings of its import are ignored.
"""

import warnings
from importlib import import_module

# By name, so that all of it is of type Any: its constructors have no types, and by the types that
# it has, what it reads of an answer may be None at every step.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    runai = import_module("runai")
    import_module("runai.exceptions")
    models = import_module("runai.models")
    RunaiClient = import_module("runai.runai_client").RunaiClient

__all__ = ["RunaiClient", "models", "runai"]
