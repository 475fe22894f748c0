"""Tools for the people who write the matrix: look up, list, compare, lint, validate."""
