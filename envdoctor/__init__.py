"""An environment doctor and compatibility resolver for LLM training and inference stacks.

``probe()`` reads this machine, ``check()`` judges it. Importing this package loads
nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself is loaded only by what needs it
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Union

    from .app import Options
    from .matrix.loader import Matrix
    from .model.facts import Facts
    from .model.report import Report

__all__ = ["__version__", "check", "probe"]

__version__ = "0.1.0"

search_path: Optional[List[str]] = None
"""``sys.path`` as this process found it, where the command line put its own modules first."""


def probe(*, python: Optional[str] = None, root: Optional[str] = None, deep: bool = False) -> Facts:
    """Read this machine, or the environment of another interpreter, or an unpacked image; see
    :func:`envdoctor.app.probe`.
    """
    from . import app

    return app.probe(python=python, root=root, deep=deep)


def check(
    facts: Union[Facts, Sequence[Facts], None] = None,
    matrix: Optional[Matrix] = None,
    options: Optional[Options] = None,
) -> Report:
    """Judge facts (by default this machine's); see :func:`envdoctor.app.check`."""
    from . import app

    return app.check(facts, matrix, options)
