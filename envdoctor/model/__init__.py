"""Frozen values: versions, facts, rows, findings. Nothing here reads a machine or a file."""
