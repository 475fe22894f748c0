"""pip in forks of a process that has imported it."""

from __future__ import annotations

import sys

from .cli.forked import serve


def _load():
    from pip._internal.cli.main import main

    return "pip", lambda: sys.exit(main())


if __name__ == "__main__":
    serve(_load)
