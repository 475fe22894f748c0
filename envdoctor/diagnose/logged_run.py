"""A run as its logs tell of it, with what is known beside them: what each step of ``failure`` reads
while it works on the drafts.
"""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from ..model.finding import Finding
from ..model.log import Event, Raised
from ..model.record import NamedTuple
from ..rules.rule import Context
from .raised import Failure
from .trace_draft import Knowledge

__all__ = ["LoggedRun"]


class LoggedRun(NamedTuple):
    """What was read of a run, and what is known of its machine.

    events, raised: the lines that a pattern knows, and the exceptions; report: the text in which
    they stand, as far as it is kept. lived: by log, the last line after which its program worked
    on. failure: the exception that it failed with, as far as the drafts tell by then. contexts:
    facts and matrix of each node; violated: what a check of these facts found wrong. complained_of:
    somebody chose these lines to show what is wrong.
    """

    events: Sequence[Event]
    raised: Sequence[Raised]
    report: str
    lived: Mapping[str, int]
    failure: Failure
    knowledge: Knowledge
    contexts: Sequence[Context]
    violated: Sequence[Finding]
    complained_of: bool = False

    @property
    def context(self) -> Context:
        """Facts and matrix of the first node."""
        return self.contexts[0]

    @property
    def modules(self) -> Mapping[str, str]:
        """The distribution of each module that the matrix knows."""
        return self.knowledge.modules

    @property
    def exception(self) -> Optional[Raised]:
        """The exception that it failed with, where there is one."""
        return self.failure.raised
