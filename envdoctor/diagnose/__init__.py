"""Logs of failed runs, joined with facts: what failed first, and why."""
