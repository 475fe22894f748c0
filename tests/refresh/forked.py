"""scripts/refresh_matrix in forks of a process that has imported it."""

from __future__ import annotations

import sys

from ..cli.forked import ROOT, serve


def _load():
    sys.path.insert(0, str(ROOT / "scripts"))
    from matrix_refresh.run import main

    return str(ROOT / "scripts" / "refresh_matrix"), lambda: sys.exit(main())


if __name__ == "__main__":
    serve(_load)
