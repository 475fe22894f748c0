"""Why an exception was raised, as far as the source of the package says it: under which condition,
in which releases, and what the facts say of what that condition asks for.

The text of the exception is looked for among those that packages raise (``matrix.messages``). The
traceback decides which package and which place; without one, the text has to be long enough to be
of one package alone. Why the condition held is not said where the source does not say it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..model.log import Frame, Raised
from ..model.record import NamedTuple
from ..model.versions import releases_of, try_version
from ..rules.rule import Context
from .called_layer import of_layer
from .code_owner import package_of
from .library_errors import of_library
from .native_errors import of_native
from .own_message import of_own_message
from .passed_through import of_parts
from .python_releases import of_python_release
from .source_line import LOOKING_UP
from .terminal_input import of_terminal_input

if TYPE_CHECKING:
    from ..matrix.messages import Matched, RaisedAt
    from ..model.version import Version

__all__ = ["installed_version", "why_raised"]

_NEAR = 3  # innermost frames one of which is the place: a helper may raise for its caller
_STRONG_LETTERS = 28  # of its own text, from which a message is known without a traceback
_STRONG_SHARE = 0.5
_MOST_CONDITIONS = 3  # the innermost
_MOST_PLACES = 2
_LONG_VALUE = 60
#: What pydantic makes of an exception of a validator.
_VALIDATED = re.compile(
    r"(?P<kind>Value|Assertion) (?:error|failed), (?P<text>.*?) \[type=(?:value|assertion)_error",
    re.DOTALL,
)
#: What condition_words says of an exception that is raised where another was caught.
_PASSES_ON = re.compile(r" where \w{1,80} came up\.")
#: What Python raises itself, in words that packages imitate: a text alone tells nothing of who did.
_OF_PYTHON = frozenset(
    (
        "AttributeError",
        "FileNotFoundError",
        "ImportError",
        "IndexError",
        "KeyError",
        "ModuleNotFoundError",
        "NameError",
        "OSError",
        "PermissionError",
        "TypeError",
    )
)
_SAME = {"EnvironmentError": "OSError", "IOError": "OSError"}


class _Asked(NamedTuple):
    """An exception: its name without modules, its text, its innermost frames, outermost first."""

    kind: str
    message: str
    frames: Tuple[Frame, ...]


def why_raised(raised: Raised, contexts: Sequence[Context], modules: Mapping[str, str]) -> str:
    """Say in sentences what the source of the package that raised says of why, or of why what came
    before it was raised; "" where that is not known for sure. Of what only passes on another
    exception nothing is said where something can be said of that one.
    """
    passed_on = ""
    for entry in raised.chain():
        lead = "" if entry is raised else f"{entry.kind.rpartition('.')[2]} came first: "
        source = of_library(entry) or _stated(entry, contexts, modules) or _asserted(entry)
        own = (
            of_native(entry),
            of_layer(entry),
            of_own_message(entry),
            of_terminal_input(entry),
        )
        why = " ".join(filter(None, (*own, source, of_parts(entry))))
        why = why or of_python_release(entry.message, _source(entry), contexts[0])
        if why and entry.by_cause and _PASSES_ON.search(why):
            passed_on = passed_on or lead + why
        elif why:
            return lead + why
    return passed_on


def _stated(raised: Raised, contexts: Sequence[Context], modules: Mapping[str, str]) -> str:
    """Say what was measured of the message that an exception has."""
    if raised.frames and raised.frames[-1].function in LOOKING_UP:
        return ""  # a package looked in vain for what a line asks it for
    for asked in _questions(raised):
        for match in _matches(asked, contexts[0], modules):
            places = _places(match, asked)
            if places:
                # Packages that were not read may have copied the text.
                lead = f"No traceback says who raised it, but {match.package} has this text: "
                return ("" if asked.frames else lead) + _in_words(match, places, contexts)
    return ""


def _asserted(raised: Raised) -> str:
    """Say what does not hold where the line of an assertion is in the traceback."""
    from .condition_words import denied

    if raised.kind != "AssertionError" or not raised.frames:
        return ""
    words = denied(raised.frames[-1].code)
    return f"What that line asserts is not so: {words}." if words else ""


def _source(raised: Raised) -> str:
    return raised.frames[-1].code if raised.frames else ""


def _questions(raised: Raised) -> Iterator[_Asked]:
    kind = raised.kind.rpartition(".")[2]
    frames = raised.frames[-_NEAR:]
    inner = _VALIDATED.search(raised.message) if kind == "ValidationError" else None
    if inner is not None:
        # The frames are those of what was made; the validator is called by pydantic's core.
        yield _Asked(f"{inner.group('kind')}Error", inner.group("text"), ())
    elif raised.message:
        yield _Asked(kind, raised.message, frames)


def _matches(asked: _Asked, context: Context, modules: Mapping[str, str]) -> List[Matched]:
    """Return the messages of one package that are the text, those of most own text first."""
    raisers: List[str] = context.matrix.raisers_of(asked.message)
    named = [package for package in raisers if _is_named(package, asked.frames, modules)]
    if not named and any(frame.within for frame in asked.frames[-1:]):
        return []  # a package raised of which this text was not read
    installed = [package for package in raisers if package in context.distributions]
    for packages in (named, installed, raisers) if not asked.frames else (named, raisers):
        by_package = {}
        for package in packages:
            messages = context.matrix.messages_of(package)
            matches = messages.find(asked.message) if messages is not None else []
            kept = [match for match in matches if _is_of(match, asked, bool(named))]
            if kept:
                by_package[package] = kept
        if len(by_package) == 1:
            return next(iter(by_package.values()))
        if by_package:
            return []
    return []


def _is_named(package: str, frames: Sequence[Frame], modules: Mapping[str, str]) -> bool:
    return any(package_of(frame, modules) == package for frame in frames)


def _is_of(match: Matched, asked: _Asked, is_named: bool) -> bool:
    """Tell whether a message is surely that of an exception."""
    if not any(_kind_of(place) == _SAME.get(asked.kind, asked.kind) for place in match.places):
        return False
    if any(_is_place(place, asked.frames) for place in match.places):
        return True
    is_strong = match.letters >= _STRONG_LETTERS and match.share >= _STRONG_SHARE
    is_alone = not asked.frames and asked.kind not in _OF_PYTHON
    return is_strong and (is_named or is_alone)


def _kind_of(place: RaisedAt) -> str:
    return _SAME.get(place.raises, place.raises)


def _is_place(place: RaisedAt, frames: Sequence[Frame]) -> bool:
    """Tell whether one of the frames is in the function that raises, in a file of its name."""
    return any(
        frame.function == place.function.rpartition(".")[2] and _is_file(place.path, frame.file)
        for frame in frames
    )


def _is_file(path: str, file: str) -> bool:
    return f"/{file}".endswith((f"/{path}.py", f"/{path}/__init__.py"))


def _places(match: Matched, asked: _Asked) -> List[RaisedAt]:
    """Return the places that may have raised: those that the traceback names, else all."""
    fitting = [
        place for place in match.places if _kind_of(place) == _SAME.get(asked.kind, asked.kind)
    ]
    at_place = [place for place in fitting if _is_place(place, asked.frames)]
    by_name = [
        place
        for place in fitting
        if any(frame.function == place.function.rpartition(".")[2] for frame in asked.frames)
    ]
    return at_place or by_name or fitting


# --------------------------------------------------------------------------------------------------
# in words


def _in_words(match: Matched, places: Sequence[RaisedAt], contexts: Sequence[Context]) -> str:
    version = try_version(installed_version(match.package, contexts))
    there = [place for place in places if version and match.has(version, place.present)]
    chosen = _distinct(there or places)
    sentences = [_where(match, chosen)]
    if len(chosen) == 1:
        sentences += _facts_of(chosen[0], contexts)
    sentences.append(_releases(match, version))
    return " ".join(filter(None, sentences))


def _distinct(places: Sequence[RaisedAt]) -> List[RaisedAt]:
    """Return of the places of one function with the same conditions the first."""
    kept: Dict[Tuple[str, Tuple[str, ...]], RaisedAt] = {}
    for place in places:
        kept.setdefault((place.function, place.conditions), place)
    functions = {place.function for place in kept.values()}
    # Where a function's conditions changed, the newest stand first.
    return list(kept.values()) if len(functions) > 1 else list(kept.values())[:1]


def _where(match: Matched, places: Sequence[RaisedAt]) -> str:
    more = match.more if len(places) == len(match.places) else 0
    if len(places) + more > _MOST_PLACES:
        names = ", ".join(dict.fromkeys(_name(place) for place in places))
        others = f" and {more} other places" if more else ""
        return f"{match.package} raises this in {names}{others}."
    parts = []
    for place in places:
        conditions = _conditions(place, match.values)
        parts.append(f"in {_name(place)}{f' where {conditions}' if conditions else ''}")
    return f"{match.package} raises this {', or '.join(parts)}."


def _name(place: RaisedAt) -> str:
    name = f"{place.function} ({place.path}.py)" if place.function else f"{place.path}.py"
    return f"{name} and {place.alike} other functions" if place.alike else name


def _conditions(place: RaisedAt, values: Mapping[str, str]) -> str:
    from .condition_words import worded

    short = {hole: value for hole, value in values.items() if len(value) <= _LONG_VALUE}
    words = [worded(condition, short) for condition in place.conditions[-_MOST_CONDITIONS:]]
    kept: List[str] = []
    for said in filter(None, words):
        # A name that was given another value in between: the innermost counts.
        before = said.replace(" is not set", " is set")
        kept = [other for other in kept if said == before or before not in other]
        kept.append(said)
    return ", and ".join(kept)


def _facts_of(place: RaisedAt, contexts: Sequence[Context]) -> List[str]:
    """Say what the facts have of what the conditions of a place ask for."""
    from .condition_words import subjects_of

    subjects = subjects_of(list(place.conditions[-_MOST_CONDITIONS:]))
    context = contexts[0]
    known = [
        f"{package} {version} is installed"
        for package in sorted(subjects.modules)
        if (version := context.facts.version_of(package.replace("_", "-")))
    ]
    variables = context.facts.value("variables") or {}
    known += [
        f"{name} is {variables[name]}" for name in sorted(subjects.variables) if name in variables
    ]
    known += _capabilities(context) if subjects.capability else []
    return [f"Here {', '.join(known)}."] if known else []


def _capabilities(context: Context) -> List[str]:
    for device in (context.facts.value("gpus") or ())[:1]:
        model = context.matrix.gpu(device.name, device.pci_id)
        capability = device.compute_capability or (model.compute_capability if model else "")
        if capability:
            return [f"the GPU is of compute capability {capability}"]
    return []


def _releases(match: Matched, version: Optional[Version]) -> str:
    """Say which releases have the text, between which it came and went, and whether the installed
    one is among them.
    """
    spans = [releases_of(*span) for span in match.present]
    bounds = [f"{match.before} does not yet" if match.before else ""]
    bounds.append(f"{match.after} no longer does" if match.after else "")
    said = " and ".join(filter(None, bounds))
    read = f"{match.versions[0]} to {match.versions[-1]}"
    if not said:
        words = f"All releases that were read ({read}) have this text"
    else:
        words = f"{match.package} {', '.join(spans[-2:])} has this text; {said}"
    if version is not None and match.has(version) is False:
        words += f"; {match.package} {version}, which is installed, has not: the log is of another"
    return f"{words}."


def installed_version(package: str, contexts: Sequence[Context]) -> str:
    """Return the version of a package on the first node that has it; "" where none has."""
    return next(filter(None, (context.facts.version_of(package) for context in contexts)), "")
