"""Trials of what the matrix says of packages' imports: the parts of ``scripts/try_pairs``."""
