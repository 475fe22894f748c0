"""What torch's wheels export → ``matrices/symbols.json``: of each symbol the releases that have it,
where not all do.

Left out are namespaces that no extension is linked to (kernels, generated code, compilers) and
instances of templates, which every extension brings itself; what a package's wheel needs is never
left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import AbstractSet, Any, Dict, Iterable, List, Mapping, Sequence, Set

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from packaging.version import Version

from envdoctor.matrix.spans import places_of, text_of_places
from envdoctor.matrix.symbols import SCHEMA, is_template

__all__ = ["document_of", "fits_of", "releases_by_symbol", "with_earlier"]

_INNER = re.compile(
    r"_Z(?:T[ISTV]|GV|Th\w+?_)?N?[VK]*[RO]?(?:"
    r"2at(?:6native|\d+composite\w+|3cpu|4meta|17functionalization|9functorch|16FunctionalTensor"
    r"|14namedinference|4_ops\d+\w+?\d+redispatchE)"
    r"|5torch(?:8autograd9generated|8autograd\d+VariableType|3jit|4lazy|8inductor|8nativert"
    r"|8profiler|11distributed|2nn|5utils|9serialize|6dynamo|16OrderedDict|10dispatcher)"
    r"|6caffe2(?!8TypeMeta)"
    r"|4c10d|3c10(?:10Dispatcher|19ConstantSymNodeImpl|13SmallVector))"
)
_OF_TORCH_CUDA = re.compile(
    r"_Z(?:T[ISTV]|GV)?N?[VK]*[RO]?(?:2at(?:4cuda|6native)|5torch4cuda|4c10d)|aoti_torch\w*_cuda"
)
_TENSOR = re.compile(r"_ZNK?2at(?:6Tensor|10TensorBase)")  # data_ptr<float> is exported


def document_of(
    exports: Mapping[str, Mapping[str, Mapping[str, AbstractSet[str]]]],
    needed: Mapping[str, Mapping[str, AbstractSet[str]]],
    date: str,
) -> Dict[str, Any]:
    """Return the document.

    Args:
        exports: names by architecture, release and library.
        needed: symbols that wheels for x86_64 leave undefined, by package and release.
        date: the day of the newest release that was read.
    """
    versions = sorted(exports["x86_64"], key=Version)
    of_each = [releases_by_symbol(by_release) for by_release in exports.values()]
    releases = {
        name: set().union(*(having.get(name, ()) for having in of_each))
        for name in set().union(*of_each)
    }
    of_x86 = releases_by_symbol(exports["x86_64"])
    of_cuda: Set[str] = set()
    for by_release in exports.values():
        for libraries in by_release.values():
            of_cuda |= libraries.get("libc10_cuda.so", frozenset())
    parts: Dict[str, Dict[str, List[str]]] = {"symbols": {}, "cuda": {}, "x86_64": {}}
    everywhere = _spans(frozenset(versions), versions)
    used = {
        symbol for releases in needed.values() for names in releases.values() for symbol in names
    }
    for name in sorted(releases):
        if name not in used and _is_inner(name):
            continue
        spans = _spans(releases[name] & set(versions), versions)
        if name in of_x86:
            own = _spans(of_x86[name], versions)
            if own != spans:
                parts["x86_64"].setdefault(own, []).append(name)
                parts["symbols"].setdefault(spans, []).append(name)
                continue
        if spans and spans != everywhere:
            parts["cuda" if name in of_cuda else "symbols"].setdefault(spans, []).append(name)
    return {
        "schema": SCHEMA,
        "date": date,
        "source": "dynamic symbols of libc10, libc10_cuda, libtorch_cpu and libtorch_python in "
        "torch's wheels of the default index for Linux, x86_64 and aarch64",
        "versions": versions,
        **{
            part: {span: " ".join(names) for span, names in sorted(value.items())}
            for part, value in parts.items()
        },
        "fits": fits_of(needed, of_x86, versions),
    }


def releases_by_symbol(
    exports: Mapping[str, Mapping[str, AbstractSet[str]]],
) -> Dict[str, Set[str]]:
    """Return which releases have a symbol, from names by release and library."""
    releases: Dict[str, Set[str]] = {}
    for version, libraries in exports.items():
        for names in libraries.values():
            for name in names:
                releases.setdefault(name, set()).add(version)
    return releases


def fits_of(
    needed: Mapping[str, Mapping[str, AbstractSet[str]]],
    exported: Mapping[str, AbstractSet[str]],
    versions: Sequence[str],
) -> Dict[str, Dict[str, str]]:
    """Return by package and release the places of the releases of torch that export what it needs,
    where there are any.

    Args:
        needed: symbols that wheels leave undefined, by package and release.
        exported: the releases of torch that have a symbol in their wheels for the same machine.
        versions: those that places count.
    """
    fits = {
        package: {
            version: spans
            for version, names in sorted(by_release.items(), key=lambda item: Version(item[0]))
            if (spans := _spans(_fitting(names, exported, versions), versions))
        }
        for package, by_release in sorted(needed.items())
    }
    return {package: spans for package, spans in fits.items() if spans}


def with_earlier(
    document: Mapping[str, Any], earlier: Mapping[str, Any]
) -> Dict[str, Dict[str, Dict[str, Any]]]:
    """Return ``fits`` and ``links`` of a document with what an earlier one says of releases of
    packages that were not read for this one.

    Nothing is said of these and a release of torch that the earlier document does not have: it is
    among those with which they may be loaded.
    """
    versions: Sequence[str] = document["versions"]
    before: Sequence[str] = earlier.get("versions", ())
    new = {place for place, version in enumerate(versions) if version not in before}

    def moved(text: str) -> Set[int]:
        return {versions.index(before[place]) for place in places_of(text)}

    parts: Dict[str, Dict[str, Dict[str, Any]]] = {}
    for part in ("fits", "links"):
        said = {
            name: dict(of_name) for name, of_name in (earlier.get(part) or {}).items() if of_name
        }
        for of_name in said.values():
            for release, value in of_name.items():
                of_name[release] = (
                    text_of_places(moved(value) | new)
                    if part == "fits"
                    else {**value, "lacking": text_of_places(moved(value["lacking"]))}
                )
        for name, of_name in (document.get(part) or {}).items():
            merged = {**said.get(name, {}), **of_name}
            said[name] = {release: merged[release] for release in sorted(merged, key=Version)}
        parts[part] = {name: said[name] for name in sorted(said)}
    return parts


def _fitting(
    names: AbstractSet[str], exported: Mapping[str, AbstractSet[str]], versions: Sequence[str]
) -> Set[str]:
    """Return the releases of torch that export all of these symbols, but those of libtorch_cuda;
    none where another symbol is in no release: the wheel is for one that was not read.
    """
    fitting = set(versions) if names else set()
    for name in names:
        if name in exported or not _OF_TORCH_CUDA.match(name):
            fitting &= exported.get(name, set())
    return fitting


def _is_inner(name: str) -> bool:
    return bool(_INNER.match(name) or (is_template(name) and not _TENSOR.match(name)))


def _spans(having: Iterable[str], versions: Sequence[str]) -> str:
    """Return places of releases as ``0-3,7``."""
    return text_of_places(versions.index(version) for version in having)
