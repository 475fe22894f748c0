"""``python -m envdoctor``."""

import os
import sys


def _drop_working_directory() -> None:
    """``-m`` puts the working directory first on sys.path, where a stray json.py or rich/ would be
    taken for the real one.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        here = os.getcwd()
    except OSError:  # the working directory was deleted
        here = ""
    if here != home and not getattr(sys.flags, "safe_path", False) and sys.path[0] in ("", here):
        del sys.path[0]


_drop_working_directory()

from envdoctor.cli.main import main  # noqa: E402

main()
