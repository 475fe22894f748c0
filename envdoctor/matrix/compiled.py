"""The compiled form of the matrix as a check reads it; ``source`` makes it, at build time and,
where ``matrices/`` changed since, at run time.

Three parts, so that a check reads little:

* ``core.json``: tables, GPU index, and of each row what ``bind`` needs, as a text of which only the
  wanted ones are parsed, with an index from distribution name to rows, and from each package whose
  imports were measured to those that it imports from;
* ``texts.json``: titles, symptoms, fixes and sources by row id, read when a finding needs them;
* ``packages/<name>.jsonl``: one header line, the requirements that releases name, apart by tabs,
  the values that several releases have (``SHARED``), apart by tabs too, then ``key TAB release``
  lines, of which only the wanted one is parsed. The ``requires`` of a release are places among the
  requirements, since releases ask for much the same: written out that was 2.6 MB more, 0.3 MB with
  every marker, of which later lines name the place, and 1.4 MB with every value that is shared;
* ``surfaces.txt``: what releases import and others do not have (``measured_rows``);
* ``model_families.z``: which releases know which families of models, read where one is named
  (``model_rows``);
* ``profiles.z``, ``models.z``, ``conda.z``, ``signatures.z`` and ``index.z`` (the listing of the
  package index), read only by those who ask for them, and packed;
* ``names.z`` and ``names/<name>.z``: in which releases names exist, packed (``names``);
* ``messages.z`` and ``messages/<name>.z``: what packages raise, packed (``messages``);
* ``symbols.z``: which releases of torch export which symbols, packed (``symbols``).

``fingerprint.json`` names the source files with size, mtime and hash. A form without mtimes (in a
wheel) is always fresh where no source lies beside it.
"""

from __future__ import annotations

import json

# The module behind collections.abc: os has loaded it, and the package costs 2 ms.
from _collections_abc import Mapping as _Mapping

from ..model.row import Mitigation, Row, Source, Term
from ..model.versions import VersionSet, parse_version
from .tables import Package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping

__all__ = [
    "FORMAT",
    "KEYS",
    "SAME_MARKER",
    "SHARED",
    "complete_row",
    "load_package",
    "normalize_gpu",
    "unpack_row",
]

FORMAT = 14

KEYS = {
    "branch": "branch",
    "major": "major",
    "toolkit": "version",
    "forward_compat": "cuda",
    "ngc_image": "month",
    "capability": "capability",
    "gpu": "name",
    "board": "gpu",
    "code": "package",
    "sdist": "requirement",
    "retired": "row",
}

_NOISE = frozenset(
    (
        "gpu",
        "graphics",
        "card",
        "sxm",
        "sxm2",
        "sxm3",
        "sxm4",
        "sxm5",
        "sxm6",
        "pcie",
        "hbm2",
        "hbm2e",
        "hbm3",
        "hbm3e",
        "nvlink",
    )
)


def normalize_gpu(name: str, reduced: bool = False) -> str:
    """Return a device name as the index holds it: ``NVIDIA A100-SXM4-80GB`` gives ``a100 sxm4
    80gb``, ``reduced`` gives ``a100``.

    A reduced name has lost form factor, memory size, count and MIG profile, nothing that tells
    models apart.
    """
    text = name.lower().split("(", 1)[0]
    for sign in ("®", "™", "-", "_", "/", ",", ":"):
        text = text.replace(sign, " ")
    tokens = [token for token in text.split() if token not in ("nvidia", "corporation")]
    if "mig" in tokens:
        tokens = tokens[: tokens.index("mig")]
    if not reduced:
        return " ".join(tokens)
    kept = []
    for token in tokens:
        size = token[:-2] if token.endswith("gb") else token[:-1] if token.endswith("g") else ""
        count = token.strip("x")
        if (
            token in _NOISE
            or size.isdigit()
            or (count.isdigit() and len(count) < 3 and count != token)
        ):
            continue
        kept.append(token)
    return " ".join(kept)


def unpack_row(short: str) -> Row:
    """Make a row of its short form; its texts are empty."""
    row_id, effect, trust, component, kind, code, terms, mitigations = json.loads(short)
    made = tuple(
        [
            Term(scope, subject, attribute, operator, _unpacked(value))
            for scope, subject, attribute, operator, value in terms
        ]
    )
    return Row(
        row_id,
        effect,
        trust,
        made,
        component,
        kind,
        code,
        "",
        "",
        "",
        (),
        (),
        tuple([Mitigation(*item) for item in mitigations]),
        (),
        "",
    )


def _unpacked(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value[0], str):
        return frozenset(value)
    return VersionSet(
        [
            (
                None if low is None else parse_version(low),
                None if high is None else parse_version(high),
            )
            for low, high in value
        ]
    )


def complete_row(row: Row, texts: Mapping[str, Any]) -> Row:
    """Return a row with its texts."""
    text = texts[row.id]
    return row._replace(
        title=text["title"],
        symptom=text["symptom"],
        fix=text["fix"],
        pins=tuple(text["pins"]),
        overrides=tuple(text["overrides"]),
        sources=tuple(Source(*source) for source in text["sources"]),
        date=text["date"],
        established_by=text["established_by"],
        origin=text["origin"],
    )


#: Stands before the place of the line that has the same marker.
SAME_MARKER = "; ~"

#: Fields of a release whose value is a place among the shared values where it is a number: none of
#: them is one itself.
SHARED = ("requires_python", "requires", "pythons", "platforms", "builds")


class _Lines(_Mapping[str, object]):
    """The releases of a compiled package: one line each, parsed when asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        start = text.index("\n") + 1
        middle = text.index("\n", start)
        self._body = text.index("\n", middle + 1)
        self._requirements = text[start:middle].split("\t")
        self._shared = text[middle + 1 : self._body].split("\t")

    def __getitem__(self, key: str) -> Any:
        mark = f"\n{key}\t"
        start = self._text.find(mark, self._body)
        if start < 0:
            raise KeyError(key)
        end = self._text.find("\n", start + 1)
        release = json.loads(self._text[start + len(mark) : end])
        named = [field for field in SHARED if type(release.get(field)) is int]
        # One call for all of them: most of what it costs is the call.
        values = json.loads(f"[{','.join([self._shared[release[field]] for field in named])}]")
        release.update(zip(named, values))
        return self._completed(release)

    def __iter__(self) -> Iterator[str]:
        for line in self._text.split("\n")[3:-1]:
            yield line.split("\t", 1)[0]

    def __len__(self) -> int:
        return self._text.count("\n") - 3

    def items(self) -> Any:
        """Return all (key, release) pairs in one pass: a search for each key would read the text as
        often as there are releases.
        """
        pairs = [line.split("\t", 1) for line in self._text.split("\n")[3:-1]]
        entries = json.loads(f"[{','.join([entry for _, entry in pairs])}]")
        shared = json.loads(f"[{','.join(self._shared)}]")
        for entry in entries:
            for field in SHARED:
                value = entry.get(field)
                if type(value) is int:
                    entry[field] = shared[value]
        return [(key, self._completed(entry)) for (key, _), entry in zip(pairs, entries)]

    def _completed(self, release: Any) -> Any:
        if "requires" in release:
            release["requires"] = [self._requirement(place) for place in release["requires"]]
        return release

    def _requirement(self, place: int) -> str:
        """The line at a place; one whose marker another has names that one's place instead."""
        line, names_other, other = self._requirements[place].partition(SAME_MARKER)
        if not names_other:
            return line
        return f"{line}; {self._requirements[int(other)].partition('; ')[2]}"


def load_package(text: str) -> Package:
    """Make a package of its compiled form."""
    header = json.loads(text[: text.index("\n")])
    return Package(header["name"], _Lines(text), header["source"], header["date"], header["trust"])
