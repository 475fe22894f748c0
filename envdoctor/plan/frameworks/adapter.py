"""What an adapter is: the seam at which one more framework is one more file and one line in
``ADAPTERS``.

An adapter gets a :class:`Run` (the launch, its settings, what is known of the version) and returns
a :class:`RunReading`: facts by field of :data:`~envdoctor.model.workload.WORKLOAD_FIELDS`, the
framework's own key of each field, and what is wrong with the settings. It never judges memory and
never touches the machine.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from ...model.evidence import Evidence, Fact
from ...model.facts import Facts
from ...model.layout import Layout
from ...model.record import NamedTuple
from ...model.workload import ConfigurationProblem
from ...regular_files import read_regular
from ..shell.reader import Word
from .settings import Setting

__all__ = ["CERTAIN", "HANDED_ON", "Adapter", "Checkout", "Run", "RunReading"]


#: What ``claims`` returns where nothing speaks against a framework; each key that it does not know
#: takes one away.
CERTAIN = 1000
#: What takes a run elsewhere that a program was handed (``python submit.py … -- COMMAND``).
HANDED_ON = "another program"


class Checkout(NamedTuple):
    """A folder that holds the framework's source; ``version`` and ``commit`` as its own files say,
    else "".
    """

    folder: str
    version: str = ""
    commit: str = ""
    place: Optional[Evidence] = None


class Run(NamedTuple):
    """One training run as it was found."""

    name: str  # of the script or file, as evidence names it
    entry: str  # "verl.trainer.main_ppo", "train.py", "" where there is no command
    arguments: Tuple[Word, ...]
    files: Tuple[Setting, ...]  # settings of configuration files that were given
    base: str  # the folder that relative paths start from
    variables: Mapping[str, Word]
    launcher: Mapping[str, Word]
    surroundings: Mapping[str, Fact[Any]]
    version: str = ""  # stated, installed, or the checkout's
    checkout: Optional[Checkout] = None
    facts: Optional[Facts] = None
    environ: Optional[Mapping[str, str]] = None
    documents: Mapping[str, str] = {}  # texts of files that stand beside the command, by their path
    unsure: bool = False  # another of the script's runs may be started in its place
    at_hand: bool = True  # its files are this machine's; else only ``documents`` are read

    def text(
        self, path: str, folders: Sequence[str] = ("",), limit: int = 1 << 20
    ) -> Optional[str]:
        """Return the text of a file that the run names: the one that stands beside the command,
        else that of the first of ``folders`` that has it; None where it is not at hand.
        """
        if path in self.documents or not self.at_hand:
            return self.documents.get(path)
        texts = (read_small(os.path.join(folder, path), limit) for folder in folders)
        return next((text for text in texts if text is not None), None)


class RunReading(NamedTuple):
    """What an adapter found. unread: what of the run it did not understand; totals: how often a key
    counts its field, where it is a number for all GPUs together.
    """

    fields: Dict[str, Fact[Any]]
    keys: Dict[str, str]
    problems: List[ConfigurationProblem]
    version: Fact[Any]
    unread: Tuple[str, ...] = ()
    totals: Mapping[str, int] = {}


class Adapter(Protocol):
    """One framework."""

    name: str
    layout: Layout

    def claims(self, run: Run) -> int:
        """Say how much speaks for this framework: 0 nothing, ``CERTAIN`` its entry with every key
        its own.
        """

    def read(self, run: Run) -> RunReading:
        """Read the run."""


def read_small(path: str, limit: int = 1 << 20) -> Optional[str]:
    """Return the text of a file of at most ``limit`` bytes, or None: a script may name a pipe."""
    try:
        data = read_regular(path, limit + 1)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= limit else None
