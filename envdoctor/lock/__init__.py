"""Versions that work together: the solver chooses them, uv closes the set, one file per tool is
written.
"""
