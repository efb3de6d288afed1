"""Run:ai's own client, the `runapy` package, unmodified.

The warnings of its import are ignored.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import runai
    import runai.exceptions
    from runai import models
    from runai.runai_client import RunaiClient

__all__ = ["RunaiClient", "models", "runai"]
