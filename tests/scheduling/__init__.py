"""Proofs of the scheduling decisions, against the pure package alone."""
