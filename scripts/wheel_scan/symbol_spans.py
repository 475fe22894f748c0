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

from envdoctor.matrix.spans import places_of
from envdoctor.matrix.symbols import SCHEMA, is_template

__all__ = ["document_of", "spans_of", "with_earlier"]

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
    releases: Dict[str, Set[str]] = {}
    of_x86: Dict[str, Set[str]] = {}
    of_cuda: Set[str] = set()
    for architecture, by_release in exports.items():
        for version, libraries in by_release.items():
            for library, names in libraries.items():
                for name in names:
                    releases.setdefault(name, set()).add(version)
                    if architecture == "x86_64":
                        of_x86.setdefault(name, set()).add(version)
                if library == "libc10_cuda.so":
                    of_cuda |= names
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
    fits = {
        package: {
            version: spans
            for version, names in sorted(by_release.items(), key=lambda item: Version(item[0]))
            if (spans := _spans(_fitting(names, of_x86, versions), versions))
        }
        for package, by_release in sorted(needed.items())
    }
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
        "fits": {package: spans for package, spans in fits.items() if spans},
    }


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
                    spans_of(moved(value) | new)
                    if part == "fits"
                    else {**value, "lacking": spans_of(moved(value["lacking"]))}
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
    return spans_of(versions.index(version) for version in having)


def spans_of(places: Iterable[int]) -> str:
    """Return places as ``0-3,7``."""
    runs: List[List[int]] = []
    for place in sorted(set(places)):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)
