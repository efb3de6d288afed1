"""Run:ai's own client, the `runapy` package, unmodified. What it warns of while it is imported is
its own affair.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import runai
    import runai.exceptions
    from runai import models
    from runai.runai_client import RunaiClient

__all__ = ["RunaiClient", "models", "runai"]
