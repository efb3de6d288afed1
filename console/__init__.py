"""The lowest layer: settings, addresses, tasks, errors, tables, forms, live updates.

Names the apps above it as strings only (in `settings`) and imports none of them.
"""
