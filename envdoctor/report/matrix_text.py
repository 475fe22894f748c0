"""What ``envdoctor matrix`` answers, as blocks of text.

Each function takes the JSON answer of ``matrix.lookup`` and its neighbours.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..model.sizes import size_text
from .blocks import Block, heading, paragraph
from .text import clean, fold

__all__ = ["lay_out_answer"]

_EFFECTS = {
    "blocks": "fails",
    "degrades": "degrades",
    "wrong-results": "wrong results",
    "note": "note",
}
_BLANK = Block("")
_COMPAT = {
    True: "works on this class of device",
    False: "not for this class of device (error 804)",
    None: "on some of this class of device only, or not known",
}


def lay_out_answer(answer: Mapping[str, Any]) -> List[Block]:
    """Return the text of an answer; ``kind`` says which it is."""
    return list(_LAYOUTS[answer["kind"]](answer))


def _entry(label: str, text: str, indent: int = 0) -> Block:
    return Block(fold(clean(text)), f"{label}:", "label", indent, 2)


def _entries(pairs: Sequence[Any], indent: int = 0) -> Iterator[Block]:
    for label, text in pairs:
        if text not in (None, "", []):
            yield _entry(label, ", ".join(text) if isinstance(text, list) else str(text), indent)


def _source(entry: Mapping[str, Any]) -> Iterator[Block]:
    if entry.get("source"):
        yield _entry("source", f"{entry['source']} ({_trust(entry)})")


def _trust(entry: Mapping[str, Any]) -> str:
    return ", ".join(str(entry[key]) for key in ("trust", "date") if entry.get(key))


def _rows(rows: Sequence[Mapping[str, Any]], title: str) -> Iterator[Block]:
    if not rows:
        return
    yield _BLANK
    yield heading(f"{title} ({len(rows)})")
    for row in rows:
        trust = "" if row["trust"] == "established" else ", reported"
        yield Block(
            fold(
                clean(
                    f"{row['title']} ({row['code']}, "
                    f"{_EFFECTS.get(row['effect'], row['effect'])}{trust})"
                )
            ),
            row["id"],
            "label",
            2,
            2,
        )


# --------------------------------------------------------------------------------------------------
# show


def _release(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(f"{answer['name']} {answer['version']}{' (yanked)' if answer['yanked'] else ''}")
    yield _BLANK
    yield from _entries(
        [
            ("released", answer["released"]),
            ("yanked because", answer["yanked_reason"]),
            ("Python", answer["requires_python"] or "any"),
            (
                "wheels for",
                [*answer["pythons"], *answer["platforms"]]
                or ("none, source only" if answer["sdist_only"] else "not read"),
            ),
            ("glibc", f"{answer['glibc']} or newer" if answer["glibc"] else "not known"),
        ]
    )
    yield _BLANK
    yield from _requirements(answer)
    yield _BLANK
    yield heading(
        f"Builds ({len(answer['builds'])})" if answer["builds"] else "Builds: none was read"
    )
    for build in _grouped_builds(answer["builds"]):
        yield from _build(build)
    yield from _pinned_by(answer["pinned_by"])
    yield from _rows(answer["rows"], "Known-bad combinations that speak of it")
    if answer["derived"]:
        yield _BLANK
        yield heading("What follows from its builds and the tables of drivers and GPUs")
        for row in answer["derived"]:
            yield Block(fold(clean(row["title"])), row["id"], "label", 2, 2)
    yield _BLANK
    yield from _source(answer)


def _requirements(answer: Mapping[str, Any]) -> Iterator[Block]:
    """Yield what a release requires, and where wheels for other machines require something else."""
    requires = answer["requires"]
    if requires is None:
        yield paragraph("Dependencies: not read.")
    else:
        yield heading(f"Requires, of what touches the stack ({len(requires)})")
        yield from map(_line, requires)
    for other in answer["differs"]:
        yield _BLANK
        yield heading(
            f"The wheels for {', '.join([*other['pythons'], *other['platforms']])} require instead"
        )
        if other["requires_python"]:
            yield _line(f"Python {other['requires_python']}")
        yield from map(_line, other["requires"])


def _line(text: str) -> Block:
    return Block(fold(clean(text)), indent=2, hang=2)


def _pinned_by(pins: Sequence[Mapping[str, str]]) -> Iterator[Block]:
    if not pins:
        return
    yield _BLANK
    yield heading("Required in exactly this version by")
    versions_of: Dict[str, List[str]] = {}
    for pin in pins:
        versions_of.setdefault(pin["name"], []).append(pin["version"])
    for name, versions in versions_of.items():
        yield _entry(name, ", ".join(dict.fromkeys(versions)), 2)


def _grouped_builds(builds: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Builds that differ in nothing but their label stand together: flash-attn has a hundred per
    release.
    """
    groups: Dict[str, Dict[str, Any]] = {}
    for build in builds:
        same = {
            key: value
            for key, value in build.items()
            if key not in ("variant", "torch", "cxx11abi", "cuda")
        }
        key = repr(same) if len(builds) > 6 else repr(build)
        known = groups.setdefault(
            key, {**build, "variants": [], "torches": [], "cudas": [], "abis": []}
        )
        for name, target in (
            ("variant", "variants"),
            ("torch", "torches"),
            ("cuda", "cudas"),
            ("cxx11abi", "abis"),
        ):
            if build[name] is not None and build[name] not in known[target]:
                known[target].append(build[name])
    return list(groups.values())


def _build(build: Mapping[str, Any]) -> Iterator[Block]:
    few = build["variants"] if len(build["variants"]) < 3 else []
    label = " ".join([build["index"], *few, build["architecture"]])
    facts = [
        ", ".join(build["variants"]) if not few else "",
        _named("CUDA", build["cudas"]),
        _named("SM", build["sm"]) or "SM list not read",
        _ptx(build),
        f"glibc {build['glibc']}" if build["glibc"] else "",
        _named("built against torch", build["torches"]),
        _named("C++11 ABI", ["yes" if abi else "no" for abi in build["abis"]], " and "),
        _named("needs", build["needed"]),
    ]
    yield _entry(label, "; ".join(fact for fact in facts if fact), 2)
    if build["source"]:
        yield _entry("source", f"{build['source']} ({build['trust']})", 4)


def _named(word: str, values: Sequence[str], between: str = ", ") -> str:
    return f"{word} {between.join(values)}" if values else ""


def _ptx(build: Mapping[str, Any]) -> str:
    if build["ptx"] is None:
        return "PTX not read"
    toolkit = f" of CUDA {build['ptx_cuda']}" if build["ptx_cuda"] else ""
    return _named("PTX", build["ptx"]) + (toolkit if build["ptx"] else "")


def _package(answer: Mapping[str, Any]) -> Iterator[Block]:
    releases = answer["releases"]
    count = f"{len(releases)} releases, " if releases else ""
    yield heading(f"{answer['name']}: {count}{answer['range']}")
    yield _BLANK
    for release in reversed(releases):
        facts = [
            release["released"],
            "yanked" if release["yanked"] else "",
            f"Python {release['requires_python']}" if release["requires_python"] else "",
            f"CUDA {', '.join(release['cuda'])}" if release["cuda"] else "",
            f"SM {', '.join(release['sm'])}" if release["sm"] else "",
            f"glibc {release['glibc']}" if release["glibc"] else "",
            "source only" if release["sdist_only"] else "",
            "dependencies not read" if release["dependencies"] is None else "",
        ]
        yield Block(
            fold(clean("; ".join(fact for fact in facts if fact))),
            release["version"],
            "label",
            2,
            4,
        )
    yield from _rows(answer["rows"], "Known-bad combinations")
    yield _BLANK
    yield from _source(answer)


def _gpu(answer: Mapping[str, Any]) -> Iterator[Block]:
    sm = answer["compute_capability"].replace(".", "")
    yield heading(
        f"{answer['name']}: {answer['architecture']}, compute capability "
        f"{answer['compute_capability']} (sm_{sm})"
    )
    yield _BLANK
    yield from _entries(
        [
            ("type", answer["type"]),
            ("memory", size_text(answer["memory"]) if answer["memory"] else ""),
            ("PCI ids", [f"10de:{pci_id}" for pci_id in answer["pci_ids"]]),
            (
                "also reported as",
                [name for name in answer["known_as"] if name != answer["name"].lower()],
            ),
            ("cuda-compat", _COMPAT[answer["forward_compatibility"]]),
        ]
    )
    if answer["capability"] is not None:
        yield from _entries(_capability_pairs(answer["capability"]))
    yield from _code(answer["code"])
    yield from _rows(answer["rows"], "Rows that speak of it")
    yield _BLANK
    yield from _source(answer)


def _capability_pairs(entry: Mapping[str, Any]) -> List[Any]:
    return [
        (
            "CUDA",
            f"{entry['first_cuda']} to {entry['last_cuda']}"
            if entry["last_cuda"]
            else f"from {entry['first_cuda']} on",
        ),
        ("driver branches", _span(entry["first_driver"], entry["last_driver"])),
    ]


def _span(first: Optional[str], last: Optional[str]) -> str:
    if first is None and last is None:
        return "every one in the matrix"
    return " ".join(
        part
        for part in (f"from R{first}" if first else "", f"to R{last}" if last else "on")
        if part
    )


def _code(entries: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not entries:
        return
    yield _BLANK
    yield heading("Releases with code for it, of those whose wheels were read")
    for entry in entries:
        if not entry["releases_read"]:
            text = "no wheel was read"
        elif not entry["releases_with_code"]:
            text = f"none of {entry['releases_read']} (up to {entry['newest_read']})"
        elif entry["releases_with_code"] == entry["releases_read"]:
            text = f"all {entry['releases_read']}, {entry['first']} to {entry['last']}"
        else:
            text = (
                f"{entry['releases_with_code']} of {entry['releases_read']}, {entry['first']} "
                f"to {entry['last']}"
            )
        yield _entry(entry["package"], text, 2)


def _capability(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(
        f"sm_{answer['name'].replace('.', '')}: compute capability {answer['name']}, "
        f"{answer['architecture']}"
    )
    yield _BLANK
    yield from _entries([*_capability_pairs(answer), ("GPUs", answer["gpus"])])
    yield from _code(answer["code"])
    yield from _rows(answer["rows"], "Rows that speak of it")
    yield _BLANK
    yield from _source(answer)


def _architecture(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(answer["name"])
    for entry in answer["capabilities"]:
        yield _BLANK
        yield heading(f"sm_{entry['name'].replace('.', '')}")
        yield from _entries(_capability_pairs(entry), 2)
        yield from _source(entry)
    yield _BLANK
    yield from _entries([("GPUs", answer["gpus"])])


def _driver(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(
        f"Driver branch R{answer['branch']}"
        + (f" (release {answer['release']})" if answer["release"] else "")
    )
    yield _BLANK
    life = ", ".join(part for part in (answer["status"], answer["end_of_life"]) if part)
    majors = [
        f"{entry['major']}.x (from driver {entry['min_driver']} on)"
        for entry in answer["cuda_majors"]
    ]
    yield from _entries(
        [
            ("type", answer["type"]),
            ("life", life),
            ("reports CUDA", f"{answer['cuda']}, which is the newest PTX that it compiles"),
            ("runs CUDA", majors or "none in the matrix"),
            ("came with CUDA", answer["toolkits"]),
            ("takes cuda-compat", answer["cuda_compat"]),
            ("capabilities", answer["capabilities"]),
        ]
    )
    yield from _rows(answer["rows"], "Rows that speak of it")
    yield _BLANK
    yield from _source(answer)


def _cuda(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(f"CUDA {answer['version']}")
    yield _BLANK
    yield from _entries(
        [
            (
                "driver",
                f"its builds run from {answer['min_driver']} on" if answer["min_driver"] else "",
            ),
            (
                "PTX",
                f"compiles from branch R{answer['ptx_driver']} on" if answer["ptx_driver"] else "",
            ),
            ("cuda-compat on", [f"R{branch}" for branch in answer["compat_branches"]]),
            ("capabilities", answer["capabilities"]),
        ]
    )
    yield _BLANK
    yield heading(f"Toolkit releases ({len(answer['toolkits'])})")
    for toolkit in answer["toolkits"]:
        compat = f"; cuda-compat {toolkit['compat_driver']}" if toolkit["compat_driver"] else ""
        text = (
            f"driver {toolkit['driver'] or 'of R' + toolkit['branch']}, at least "
            f"{toolkit['min_driver']}{compat}"
        )
        yield _entry(toolkit["version"], text, 2)
    if answer["builds"]:
        yield _BLANK
        yield heading("Builds for it")
        yield from (
            _entry(f"{entry['package']} ({entry['index']})", ", ".join(entry["releases"]), 2)
            for entry in answer["builds"]
        )
    yield from _rows(answer["rows"], "Rows that speak of it")
    yield _BLANK
    for source in dict.fromkeys(
        (toolkit["source"], _trust(toolkit)) for toolkit in answer["toolkits"]
    ):
        yield _entry("source", f"{source[0]} ({source[1]})")


def _row(answer: Mapping[str, Any]) -> Iterator[Block]:
    row = answer["row"]
    yield heading(row["title"])
    yield _BLANK
    yield from _entries(
        [
            ("row", f"{row['id']} ({row['code']}, about {row['component']}: {row['kind']})"),
            ("effect", _EFFECTS.get(row["effect"], row["effect"])),
            ("trust", row["trust"]),
        ]
    )
    yield _entry("when", "all of these hold")
    yield from (Block(fold(clean(term)), indent=2, hang=2) for term in row["when"])
    yield from _entries([("unless", setting) for setting in row["unless"]])
    yield from _entries(
        [
            ("symptom", row["symptom"]),
            ("fix", row["fix"]),
            ("pins", row["pins"]),
            ("breaks metadata", row["overrides"]),
        ]
    )
    for source in row["sources"]:
        yield _entry(
            "source", source["address"] + (f' "{source["quote"]}"' if source["quote"] else "")
        )
    yield from _entries(
        [
            ("established by", row["established_by"]),
            ("date", row["date"]),
            ("stands in", row["origin"]),
        ]
    )


def _profile(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(answer["name"])
    yield _BLANK
    yield from _tree(answer["profile"], 0)


def _tree(value: Mapping[str, Any], indent: int) -> Iterator[Block]:
    """A profile as it is written: its keys are of the profile's own making."""
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            yield Block(fold(clean(f"{key}:")), style="label", indent=indent)
            yield from _tree(entry, indent + 2)
        elif isinstance(entry, list) and entry and all(isinstance(item, Mapping) for item in entry):
            for item in entry:
                yield _BLANK
                yield Block(fold(clean(f"{key}:")), style="label", indent=indent)
                yield from _tree(item, indent + 2)
        else:
            text = ", ".join(map(str, entry)) if isinstance(entry, list) else str(entry)
            yield _entry(str(key), text, indent)


# --------------------------------------------------------------------------------------------------
# list


def _summary(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(f"The matrix of {answer['date']} ({answer['origin']})")
    yield _BLANK
    for name, count in answer["counts"].items():
        more = f", {answer['releases']} releases" if name == "packages" else ""
        yield _entry(name, f"{count}{more}")
    yield _BLANK
    yield paragraph(
        "'envdoctor matrix list rows' lists one kind, 'envdoctor matrix show NAME' says all that "
        "is known of one thing."
    )


_LINES: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "packages": lambda entry: (
        entry["name"],
        f"{entry['releases']} releases, {entry['first']} to {entry['last']}, read {entry['date']}",
    ),
    "rows": lambda entry: (
        entry["id"],
        f"{entry['title']} ({entry['code']}, {_EFFECTS[entry['effect']]}, {entry['trust']})",
    ),
    "gpus": lambda entry: (
        entry["name"],
        f"{entry['compute_capability']}, {entry['architecture']}, {entry['type']}"
        + (f", {size_text(entry['memory'])}" if entry["memory"] else "")
        + (f", {' '.join(entry['pci_ids'])}" if entry["pci_ids"] else ""),
    ),
    "drivers": lambda entry: (
        f"R{entry['branch']}",
        (
            f"CUDA {entry['cuda']}, {entry['type']}, {entry['status']} {entry['end_of_life'] or ''}"
        ).rstrip(),
    ),
    "toolkits": lambda entry: (
        entry["version"],
        (
            f"R{entry['branch']}, driver {entry['driver'] or 'not named'}, at least "
            f"{entry['min_driver']}"
        ),
    ),
    "signatures": lambda entry: (
        entry["id"],
        f"{entry['title']} ({entry['layer']}, {entry['role']}, {entry['trust']})",
    ),
    "profiles": lambda entry: (entry["name"], entry["title"]),
    "models": lambda entry: (
        entry["name"],
        f"{entry['repository']}, {_billions(entry['parameters'])} parameters"
        + (f" ({_billions(entry['active'])} active)" if entry["active"] else "")
        + f", {entry['layers']} layers, {_trust(entry)}",
    ),
    "conda": lambda entry: (
        entry["distribution"],
        (
            f"{entry['package']} ({entry['channel'] or 'channel not known'})"
            if entry["package"]
            else "no conda package"
        )
        + f", {_trust(entry)}",
    ),
}


def _billions(count: int) -> str:
    return f"{count / 1e9:.2f} billion"


def _list(answer: Mapping[str, Any]) -> Iterator[Block]:
    for entry in answer["entries"]:
        head, text = _LINES[answer["topic"]](entry)
        yield Block(fold(clean(text)), fold(clean(head)), "label", 0, 4)
    if not answer["entries"]:
        yield paragraph(f"The matrix holds no {answer['topic']}.")


# --------------------------------------------------------------------------------------------------
# coverage, lint, diff


def _coverage(answer: Mapping[str, Any]) -> Iterator[Block]:
    missing = answer["missing"]
    yield heading(
        f"{len(missing)} releases lack what is asked for"
        if missing
        else f"Nothing is missing, by the listing of the index of {answer['listing_date']}"
    )
    yield _BLANK
    for entry in answer["packages"]:
        facts = [
            f"{entry['in_matrix']} of {entry['listed']} releases",
            f"dependencies {entry['with_dependencies']}",
            f"imports and checks of versions {entry['with_imports']}",
        ]
        if entry["with_symbols"]:
            facts.append(f"symbols of libraries {entry['with_symbols']}")
        columns = [("SM list", "with_sm", entry["has_code"]), ("glibc floor", "with_glibc", True)]
        facts += [
            f"{word} {entry[key]} of {entry['binary']} with compiled wheels"
            for word, key, wanted in columns
            if wanted and entry["binary"]
        ]
        floor = f" (asked for: {entry['required']})" if entry["required"] is not None else ""
        yield _entry(entry["name"] + floor, "; ".join(facts))
    if missing:
        yield _BLANK
        yield heading("Missing")
        grouped: Dict[Any, List[str]] = {}
        for gap in missing:
            grouped.setdefault((gap["name"], gap["lacks"]), []).append(gap["version"])
        for (name, lacks), versions in grouped.items():
            yield Block(fold(clean(", ".join(versions))), f"{name}, {lacks}:", "warning", 2, 4)
    if answer["unlisted"]:
        yield _BLANK
        yield _entry("not on the listing", ", ".join(answer["unlisted"]))


def _lint(answer: Mapping[str, Any]) -> Iterator[Block]:
    faults = [entry for entry in answer["findings"] if entry["level"] == "fault"]
    notes = [entry for entry in answer["findings"] if entry["level"] == "note"]
    rows = f"{answer['rows']} row{'' if answer['rows'] == 1 else 's'}"
    yield heading(f"{rows}: {_count(faults, 'fault')}, {_count(notes, 'note')}")
    for title, style, entries in (("Faults", "error", faults), ("Notes", "advice", notes)):
        if entries:
            yield _BLANK
            yield heading(title)
            for entry in entries:
                where = f" ({entry['origin']})" if entry["origin"] else ""
                yield Block(
                    fold(clean(f"{entry['subject']}: {entry['message']}{where}")),
                    entry["check"],
                    style,
                    2,
                    2,
                )


def _count(entries: Sequence[Any], word: str) -> str:
    return f"{len(entries) or 'no'} {word}{'' if len(entries) == 1 else 's'}"


def _validate(answer: Mapping[str, Any]) -> Iterator[Block]:
    if answer["faults"]:
        yield heading(f"{answer['folder']}: {_count(answer['faults'], 'fault')}")
        yield from (paragraph(fault, 2) for fault in answer["faults"])
        return
    yield heading(f"{answer['folder']}: no fault")
    yield _BLANK
    yield from (_entry(name, str(count)) for name, count in answer["counts"].items())
    if answer["not_read"]:
        yield _entry("not read by envdoctor", ", ".join(answer["not_read"]))


def _diff(answer: Mapping[str, Any]) -> Iterator[Block]:
    if not answer["changes"]:
        yield heading(f"No difference between {answer['old']} and {answer['new']}")
        return
    yield heading(
        f"{answer['old']} ({answer['old_date']}) -> {answer['new']} ({answer['new_date']}): "
        f"{_count(answer['changes'], 'change')}"
    )
    tables: Dict[Tuple[str, str], List[Mapping[str, Any]]] = {}
    for change in answer["changes"]:
        tables.setdefault((change["table"], change["package"]), []).append(change)
    for (table, package), changes in tables.items():
        yield _BLANK
        named = f"{table} of {package}" if package else table
        totals = {
            word: sum(change["change"] == word for change in changes)
            for word in ("added", "removed", "changed")
        }
        yield heading(
            f"{named}: {', '.join(f'{count} {word}' for word, count in totals.items() if count)}"
        )
        for change in changes:
            sign, style = {
                "added": ("+", "command"),
                "removed": ("-", "error"),
                "changed": ("~", "warning"),
            }[change["change"]]
            yield Block(
                fold(clean(change["title"])), f"{sign} {fold(clean(change['key']))}", style, 2, 4
            )
            for field in change["fields"]:
                yield Block(
                    fold(clean(f"{_value(field['old'])} -> {_value(field['new'])}")),
                    f"{field['name']}:",
                    "label",
                    6,
                    2,
                )


def _value(value: Any) -> str:
    if value is None or value in ("", []):
        return "(nothing)"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _update(answer: Mapping[str, Any]) -> Iterator[Block]:
    yield heading(answer["message"])
    yield from _entries(
        [
            ("now", f"{answer['date']} ({answer['origin']})"),
            ("before", f"{answer['previous_date']} ({answer['previous_origin']})"),
            ("rows", answer["rows"]),
            ("releases", answer["releases"]),
            ("note", answer["note"]),
        ]
    )


_LAYOUTS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Block]]] = {
    "release": _release,
    "package": _package,
    "gpu": _gpu,
    "capability": _capability,
    "architecture": _architecture,
    "driver": _driver,
    "cuda": _cuda,
    "row": _row,
    "profile": _profile,
    "summary": _summary,
    "list": _list,
    "coverage": _coverage,
    "lint": _lint,
    "validate": _validate,
    "diff": _diff,
    "update": _update,
}
