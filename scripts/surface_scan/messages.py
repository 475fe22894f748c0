"""What packages raise, under which conditions, in which releases: ``matrices/messages``.

A message is a template; the same text of all releases, whatever expressions fill it in, is one. Of
each a few places are kept: those of the newest releases that have it. A message is found again by
its rarest word, which stands whole in its own text.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from envdoctor.file_replacement import replace_file
from envdoctor.matrix.messages import SCHEMA, literals_of, words_of

from .documents import place_spans
from .measure import Measurement
from .names import is_own
from .packages import Packages
from .raised_messages import REVISION, RaisedMessage, read_messages
from .release import Release
from .store import Sources

__all__ = ["measure_messages"]

_FEW_WORDS = 3  # of its own text, below which a message is not known again
_FEW_LETTERS = 15
_MOST_PLACES = 3  # of one message, each with other conditions
#: Modules that no run of today raises from: converters of checkpoints, other frameworks.
_ASIDE = re.compile(r"\.(?:convert_\w+|modeling_(?:tf|flax)_\w+|onnx)(?:\.|$)")
_OFTEN = 500  # sources after which readings are written down


class _Key(NamedTuple):
    text: str  # the template without what its holes say
    raises: str
    function: str
    conditions: Tuple[str, ...]


class _Site:
    """One place that raises, over all releases; named as in the newest that has it."""

    def __init__(self) -> None:
        self.releases = 0  # a bit for each
        self.newest = -1
        self.template = ""
        self.module = ""
        self.line = 0

    def add(self, releases: int, message: RaisedMessage, module: str) -> None:
        """Count releases in which it stands at this place."""
        self.releases |= releases
        if releases.bit_length() > self.newest:
            self.newest = releases.bit_length()
            self.template, self.module, self.line = message.template, module, message.line


def measure_messages(
    packages: Packages,
    names: Sequence[str],
    sources: Sources,
    matrices: Path,
    say: Callable[[str], None],
    since: str,
    steps: bool = False,
) -> None:
    """Write the file of each package of which messages are wanted, and the index of all: of the
    releases since a day, ``steps`` of the last of each minor version and of each quarter alone.
    """
    measurement = Measurement(packages, sources, matrices)
    for name in names:
        if name not in packages.messages:
            continue
        releases = [r for r in measurement.releases(name) if r.archive.released >= since]
        releases = _steps(releases) if steps else releases
        if not releases:
            continue
        sites = _sites(releases, packages, name, sources)
        document = _document(name, releases, sites)
        _write(matrices / "messages" / f"{name}.json", document)
        count = sum(map(len, document["messages"].values()))
        say(f"{name}: {len(releases)} releases, {count} messages")
        measurement.forget(name)
    _write_index(matrices)


def _steps(releases: Sequence[Release]) -> List[Release]:
    """Return of releases, oldest first, the last of each minor version and of each quarter."""
    last: Dict[Tuple[Any, ...], str] = {}
    for release in releases:
        version, day = release.archive.version, release.archive.released
        quarter = (int(day[5:7]) - 1) // 3
        last[release.version.release[:2]] = last["quarter", day[:4], quarter] = version
    return [release for release in releases if release.archive.version in last.values()]


def _sites(
    releases: Sequence[Release], packages: Packages, name: str, sources: Sources
) -> Dict[_Key, _Site]:
    """Return what the releases of a package raise."""
    tops = tuple(module for module, owners in packages.modules.items() if name in owners)
    quiet = packages.quiet.get(name, ())
    by_source: Dict[Tuple[str, str], int] = {}
    for number, release in enumerate(releases):
        for module in release.modules:
            key = release.source_key(module)
            is_loud = is_own(module, tops) and not is_own(module, quiet)
            if key and is_loud and not _ASIDE.search(module):
                by_source[key, module] = by_source.get((key, module), 0) | 1 << number
    sites: Dict[_Key, _Site] = {}
    new: List[Tuple[str, str]] = []
    for (key, module), mask in by_source.items():
        for message in _reading(key, sources, new):
            place = _Key(
                _nameless(message.template), message.raises, message.function, message.conditions
            )
            sites.setdefault(place, _Site()).add(mask, message, module)
        if len(new) > _OFTEN:
            sources.keep_readings(new, REVISION)
            new.clear()
    sources.keep_readings(new, REVISION)
    return sites


def _reading(key: str, sources: Sources, new: List[Tuple[str, str]]) -> List[RaisedMessage]:
    """Return what a source raises, from the store where it was read before."""
    own = f"messages {key}"
    text = sources.reading(own, REVISION)
    if text is not None:
        return [RaisedMessage(*entry[:4], tuple(entry[4])) for entry in json.loads(text)]
    messages = read_messages(sources.source(key))
    new.append((own, json.dumps(messages, separators=(",", ":"))))
    return messages


def _nameless(template: str) -> str:
    """Return a template without what its holes say: releases rename variables."""
    return "{}".join(
        literal.replace("{", "{{").replace("}", "}}") for literal in literals_of(template)
    )


def _document(
    name: str, releases: Sequence[Release], sites: Mapping[_Key, _Site]
) -> Dict[str, Any]:
    """Return what is written of a package."""
    by_text: Dict[str, List[Tuple[_Key, _Site]]] = {}
    for key, site in sites.items():
        if _is_telling(key.text):
            by_text.setdefault(key.text, []).append((key, site))
    often = Counter(word for text in by_text for word in words_of(text))
    modules: Dict[str, int] = {}
    messages: Dict[str, List[Any]] = {}
    for text in sorted(by_text):
        alike: Dict[Tuple[str, Tuple[str, ...]], List[Tuple[_Key, _Site]]] = {}
        for key, site in sorted(by_text[text], key=lambda entry: (-entry[1].newest, entry[0])):
            alike.setdefault((key.raises, key.conditions), []).append((key, site))
        spans = _spans(site for _, site in by_text[text])
        word = min(words_of(text), key=lambda word: (often[word], word))
        groups = list(alike.values())
        messages.setdefault(word, []).append(
            [
                groups[0][0][1].template,
                spans,
                [_place(group, spans, modules) for group in groups[:_MOST_PLACES]],
                len(groups[_MOST_PLACES:]),
            ]
        )
    return {
        "schema": SCHEMA,
        "name": name,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "versions": [release.archive.version for release in releases],
        "modules": list(modules),
        "messages": messages,
    }


def _place(group: Sequence[Tuple[_Key, _Site]], every: str, modules: Dict[str, int]) -> List[Any]:
    """Return the newest of the places that raise a text under the same conditions."""
    key, site = group[0]
    spans = _spans(site for _, site in group)
    return [
        key.raises,
        modules.setdefault(site.module, len(modules)),
        key.function,
        site.line,
        list(key.conditions),
        "" if spans == every else spans,
        len({key.function for key, _ in group}) - 1,
    ]


def _spans(sites: Iterable[_Site]) -> str:
    mask = 0
    for site in sites:
        mask |= site.releases
    return place_spans(number for number in range(mask.bit_length()) if mask >> number & 1)


def _is_telling(text: str) -> bool:
    """Whether enough of a message is its own text."""
    own = "".join(literals_of(text))
    letters = len(re.findall(r"[^\W\d_]", own))
    return len(words_of(text)) >= _FEW_WORDS and letters >= _FEW_LETTERS


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a file, one word per line; one of which only the date differs stays."""
    old = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if {**old, "date": ""} == {**document, "date": ""}:
        return
    head = {key: value for key, value in document.items() if key != "messages"}
    body = ",\n".join(
        f"{_dumps(word)}:{_dumps(document['messages'][word])}"
        for word in sorted(document["messages"])
    )
    text = f'{_dumps(head)[:-1]},"messages":{{\n{body}\n}}}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(str(path), text.encode("utf-8"))


def _write_index(matrices: Path) -> None:
    """Write the words that the messages of each package are found by."""
    words: Dict[str, str] = {}
    for path in sorted((matrices / "messages").glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        words[document["name"]] = " ".join(sorted(document["messages"]))
    lines = ",\n".join(f"{_dumps(name)}:{_dumps(text)}" for name, text in words.items())
    text = f'{{"schema":{SCHEMA},"packages":{{\n{lines}\n}}}}\n'
    replace_file(str(matrices / "messages.json"), text.encode("utf-8"))


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
