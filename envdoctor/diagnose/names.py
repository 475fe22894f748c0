"""Lines about names that are not there, answered from what the wheels of all releases hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterable, List, Mapping, Optional, Sequence

from ..model.calls import InstallerCall
from ..model.finding import Remedy
from ..model.versions import try_version
from ..rules.rule import Context
from .draft import TraceDraft, groups_of

if TYPE_CHECKING:
    from ..matrix.names import Importer, NameHistory
    from ..model.version import Version

__all__ = ["tell_histories"]

_SIGNATURES = ("import-name", "module-missing", "module-part-missing")
_MOST_IMPORTERS = 3


def tell_histories(
    drafts: Iterable[TraceDraft], modules: Mapping[str, str], contexts: Sequence[Context]
) -> None:
    """Say of each missing name which releases have it and who imports it, and how to get one."""
    installed = _versions(contexts[0])
    for draft in drafts:
        if draft.signature is None or draft.signature.id not in _SIGNATURES:
            continue
        history = _history(draft, modules, contexts[0])
        if history is None:
            continue
        version = installed.get(history.package)
        if version is not None and history.has(version) is not False:
            continue  # the log is of another environment, or the name was lost in another way
        requirement = history.requirement(version)
        text = f"{history.sentence()}{_found(history, installed)}."
        fix = f"Install {requirement}, or a release of what imports it that does without."
        draft.finding = draft.finding._replace(
            message=f"{draft.finding.message} {text}",
            remedies=(Remedy(fix, (InstallerCall("install", (requirement,)),)),),
        )


def _versions(context: Context) -> Dict[str, Version]:
    return {
        name: version
        for name, distribution in context.distributions.items()
        if distribution.version and (version := try_version(distribution.version)) is not None
    }


def _history(
    draft: TraceDraft, modules: Mapping[str, str], context: Context
) -> Optional[NameHistory]:
    for event in draft.events:
        groups = groups_of(event, modules)
        module, part = groups.get("module", ""), groups.get("part", "")
        if part:
            parent, _, last = f"{module}.{part}".rpartition(".")
            history: Optional[NameHistory] = context.matrix.name_history(f"{module}.{part}")
            history = history or context.matrix.name_history(parent, last)
        else:
            history = context.matrix.name_history(module, groups.get("name", ""))
        if history is not None:
            return history
    return None


def _found(history: NameHistory, installed: Mapping[str, Version]) -> str:
    """What the environment has of it, as the end of a sentence."""
    version = installed.get(history.package)
    words = f"; {history.package} {version} is installed" if version is not None else ""
    importers = history.asked_by(installed)
    if importers:
        names = [f"{importer.package} {installed[importer.package]}" for importer in importers]
    else:
        names = [_importer_words(importer) for importer in history.importers]
    if names:
        words += f"; it is imported by {', '.join(names[:_MOST_IMPORTERS])}"
    return words


def _importer_words(importer: Importer) -> str:
    ranges: List[str] = [
        first if first == last else f"{first} to {last}" for first, last in importer.spans
    ]
    return f"{importer.package} {', '.join(ranges[-2:])}"
