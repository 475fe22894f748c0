"""Closing a resolution: uv adds what the chosen pins need besides.

The only part of a lock that goes online.
"""
