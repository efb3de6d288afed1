"""Proofs of the forecasts, against the pure packages alone."""
