"""An exception of a module that several distributions write, where two of them are there, or its
own files do not go together.
"""

from __future__ import annotations

from typing import Sequence

from ..model.log import Raised
from ..model.pattern import pattern
from ..rules.shared_modules import SharedModule, one_of, shared_module, writers_here
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, code_of_log

__all__ = ["tell_shared_modules"]

#: What Python says of a module that lacks what is asked of it.
_LACKS = pattern(
    r"(?:(?:partially initialized )?module|cannot import name '\w{1,80}' from"
    r"(?: partially initialized module)?|No module named) '(?P<module>\w{1,40})(?:[.\w]{1,80})?'"
)
_MOST_SHOWN = 3  # of the distributions that write a module


def tell_shared_modules(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of a name that a module lacks which distributions have written it one over the other."""
    for draft in drafts:
        own = draft.exception(run.exception)
        match = _LACKS.search(own.message) if own is not None else None
        entry = shared_module(match.group("module")) if match is not None else None
        if own is None or entry is None or draft.signature is not None:
            continue
        writers = writers_here(entry, run.context)
        is_mixed = _is_mixed(own, entry)
        if len(writers) > 1 or is_mixed:
            _tell(draft, entry, writers, is_mixed)


def _is_mixed(raised: Raised, entry: SharedModule) -> bool:
    """Tell whether a Python file of a compiled module does not find what its library has: they are
    of one wheel, unless another wheel wrote over it.
    """
    if not entry.is_compiled or raised.kind.rpartition(".")[2] != "AttributeError":
        return False
    folder = f"-packages/{entry.module}/"
    return any(folder in frame.file.replace("\\", "/") for frame in raised.frames[-1:])


def _tell(draft: TraceDraft, entry: SharedModule, writers: Sequence[str], is_mixed: bool) -> None:
    names = tuple(writers)
    component = names[0] if names else entry.writers[0]
    message = draft.finding.message.rstrip(".")
    if len(names) > 1:
        why = f"{' and '.join(names)} write the same module, {entry.module}, one over the other"
    else:
        why = (
            f"The Python files of {entry.module} and its library are of two releases: several "
            f"distributions write it ({', '.join(entry.writers[:_MOST_SHOWN])})"
        )
    draft.certainty, draft.role = "established" if is_mixed else "likely", "cause"
    draft.suspects = []
    draft.finding = draft.finding._replace(
        component=component,
        kind="two-copies",
        code=code_of_log(component, "two-copies"),
        message=f"{message}. {why}.",
        remedies=(one_of(entry, names),),
        packages=names or (component,),
    )
