"""The radar on recordings and on real processes: what it finds, how late, and what it must not."""
