"""A resolution as files that other tools install."""

from __future__ import annotations

from .requirements import FILES, render

__all__ = ["FILES", "render"]
