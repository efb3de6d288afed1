"""The console's own health as figures for Prometheus: `/metrics`.

Each process counts in its memory (`instruments`), and stores what it has counted every few seconds
(`publishing`). The web process that is asked answers with the figures of all of them, and with
those that belong to none (`shared`).
"""
