"""The lowest layer: settings, addresses, tasks, errors, tables, forms, live updates.

Names the apps above it as strings only (in `settings`) and imports none of them.
"""

VERSION = "0.1.0"
"""The version of the server, which every answer of the REST API carries."""
