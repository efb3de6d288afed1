"""The ground floor: settings, addresses, tasks, errors, lists, live updates. Names the apps as
strings only and imports none.
"""
