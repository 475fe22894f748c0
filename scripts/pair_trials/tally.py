"""What trials showed, against what check said: agreement, false alarm, miss, with intervals."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

__all__ = [
    "MEASURED",
    "Judged",
    "Verdict",
    "judge",
    "judged",
    "kept_entry",
    "kept_verdicts",
    "summary",
    "tally",
    "wilson",
]

_GPU = re.compile(
    r"libcuda\.so\.1|no NVIDIA driver|No CUDA GPUs are available|0 active drivers|NVML"
    r"|_get_cuda_arch_flags|accelerator device when none is available"
    r"|Torch not compiled with CUDA|no GPU|only works on NVIDIA GPUs"
    r"|cannot find any torch accelerator|Found no NVIDIA driver"
    r"|GPU.*not (?:found|available)|CUDA_HOME",
    re.IGNORECASE,
)
_MISSING = re.compile(r"No module named '([\w.]+)'|(\w+) is not installed|requires (\w+) to be ins")
_OF_NAMES = re.compile(
    r"cannot import name|No module named|has no attribute|ImportError|Could not import module"
)
#: What speaks of names that packages do not have.
MEASURED = ("ED308", "ED309")


class Verdict(NamedTuple):
    """outcome: fails (as said), alike (at another name that the same two packages do not share),
    works (as said), false alarm, miss; or why a trial says nothing: gpu, incomplete (a package
    that no metadata ask for), masked (another fault comes first; beside
    a range, one that is no matter of the two packages).
    """

    outcome: str
    module: str
    text: str


class _Said(NamedTuple):
    """What check said of an import. words: its error has to hold them; pair: the modules of the
    package that imports and of the one that does not have it, where that is what was said.
    """

    message: str
    words: Tuple[str, ...] = ()
    pair: Tuple[str, str] = ("", "")


def judge(record: Mapping[str, Any]) -> List[Verdict]:
    """Return the verdict on each module of a trial; none where it was not tried."""
    if record["state"] != "tried":
        return []
    return [_of_module(record, module, lines) for module, lines in record["errors"].items()]


def _of_module(record: Mapping[str, Any], module: str, lines: Sequence[str]) -> Verdict:
    said = list(_spoken(record, module, lines))
    text = " | ".join(lines)
    if not lines:
        return Verdict("false alarm" if said else "works", module, said[0].message if said else "")
    if _GPU.search(text):
        return Verdict("gpu", module, text)
    if said:
        if any(all(word in text for word in each.words) for each in said):
            return Verdict("fails", module, text)
        alike = any(_between(each.pair, lines) for each in said)
        return Verdict("alike" if alike else "masked", module, text)
    if any(map(functools.partial(_is_absent, record), _missing(text))):
        return Verdict("incomplete", module, text)
    if record["kind"] == "allowed" and not _between(_tried(record), lines):
        return Verdict("masked", module, text)
    return Verdict("miss" if _OF_NAMES.search(text) else "masked", module, text)


def _missing(text: str) -> Iterator[str]:
    """Yield the modules that an error, or one behind it, does not find."""
    for match in _MISSING.finditer(text):
        yield next(filter(None, match.groups())).split(".")[0]


def _is_absent(record: Mapping[str, Any], module: str) -> bool:
    """Tell whether no distribution that a trial installed has a module."""
    installed = record["installed"]
    tops = {words[0] for words in _TOPS.get(module, ())}
    return (
        module.replace("_", "-").lower() not in installed
        and not any(module == other.replace("-", "_") for other in installed)
        and not tops & set(installed)
    )


#: What is imported of distributions of another name.
_MODULES = {"setuptools": "pkg_resources", "megatron_core": "megatron", "autoawq": "awq"}
#: Modules whose distribution has another name.
_TOPS: Dict[str, Tuple[Tuple[str, ...], ...]] = {
    "pkg_resources": (("setuptools",),),
    "google": (("protobuf",),),
    "awq": (("autoawq",),),
}


def _tried(record: Mapping[str, Any]) -> Tuple[str, str]:
    """The module of the package that a pair is about, and that of what it imports."""
    provider = record["requirements"][1].partition("==")[0].replace("-", "_")
    return record["imports"][0].split(".")[0], _MODULES.get(provider, provider)


def _between(pair: Tuple[str, str], lines: Sequence[str]) -> bool:
    """Whether an import failed in a line of one package, at a name of the other."""
    importing, lacking = pair
    frames = [line for line in lines[1:] if not line.startswith("after ")]
    return bool(
        importing
        and frames
        and frames[-1].startswith(f"{importing}/")
        and re.search(rf"(?:from|named) '{re.escape(lacking)}[.']", lines[0])
    )


def _spoken(record: Mapping[str, Any], module: str, lines: Sequence[str]) -> Iterator[_Said]:
    """Yield what check said of an import: of the module itself, or of a package that it imports."""
    own = module.split(".")[0].replace("_", "-")
    for finding in record["findings"]:
        if finding["verdict"] != "violated":
            continue
        message = f"{finding['severity']} {finding['rule']}: {finding['message']}"
        if finding["code"] in MEASURED:
            entry = record["statements"].get(finding["rule"])
            # Behind the two packages of a statement stand those that import the first of them.
            importers = finding["packages"][2:]
            if entry and (own in importers or (module + ".").startswith(entry["entry"] + ".")):
                words = (entry["name"] or entry["module"].split(".")[-1],)
                pair = entry["path"].split("/")[0], entry["module"].split(".")[0]
                yield _Said(message, words, pair)
        elif finding["severity"] == "error" and _concerns(finding, module, lines):
            yield _Said(message)


def _concerns(finding: Mapping[str, Any], module: str, lines: Sequence[str]) -> bool:
    """Whether an error about packages is one about an import that failed: it is about the imported
    package, or its packages stand in the traceback.
    """
    names = set(finding["packages"])
    own = module.split(".")[0].replace("_", "-")
    text = " ".join(lines)
    if not lines:
        return False  # it may be about what happens later
    in_text = sum(name.replace("-", "_") in text or name in text for name in names)
    return own in names or in_text >= min(2, len(names))


def wilson(successes: int, trials: int, z: float = 1.96) -> Tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's score; (0, 1) where nothing was tried."""
    if not trials:
        return 0.0, 1.0
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


#: What tells something of a range: inside only what fails, beside it only what works.
_SHOWS = {
    **dict.fromkeys(("blocks", "degrades"), ("fails", "alike")),
    "allowed": ("works",),
    "stack": ("fails", "alike", "works"),
}


def stratum(record: Mapping[str, Any]) -> str:
    """The kind of a trial, and of pairs whether others' metadata forbid them and torch is there."""
    if record["kind"] == "stack" or record["state"] != "tried":
        return str(record["kind"])
    forced = ", against metadata" if record.get("forced") else ""
    return f"{record['kind']}, with{'' if 'torch' in record['installed'] else 'out'} torch{forced}"


class Judged(NamedTuple):
    """What became of a trial. outcomes: of each module; work: a line for each disagreement."""

    kind: str
    stratum: str
    state: str
    row: str
    outcomes: Tuple[str, ...]
    work: Tuple[str, ...] = ()


def judged(record: Mapping[str, Any]) -> Judged:
    """Return what became of a trial."""
    verdicts = judge(record)
    return Judged(
        record["kind"],
        stratum(record),
        record["state"],
        record["row"],
        tuple(verdict.outcome for verdict in verdicts),
        tuple(_work(record, verdict) for verdict in verdicts if verdict.outcome in _DISAGREEMENTS),
    )


#: What is kept of a record as it is.
_KEPT = ("seed", "python", "kind", "requirements", "before", "torch", "row", "state")


def kept_entry(record: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what the repository keeps of a trial: what was drawn and what became of it."""
    verdict = judged(record)
    entry = {field: record[field] for field in _KEPT if field in record}
    outcomes = dict(zip(record.get("errors", ()), verdict.outcomes))
    return {**entry, "stratum": verdict.stratum, "outcomes": outcomes}


def kept_verdicts(entries: Sequence[Mapping[str, Any]]) -> List[Judged]:
    """Return what became of trials that were kept."""
    return [
        Judged(
            entry["kind"],
            entry["stratum"],
            entry["state"],
            entry["row"],
            tuple(entry["outcomes"].values()),
        )
        for entry in entries
    ]


_DISAGREEMENTS = ("false alarm", "miss")


def summary(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each kind of trial and its strata, then each disagreement with what was
    installed.
    """
    return tally([judged(record) for record in records])


def tally(trials: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines of ``summary`` for trials that were judged."""
    work: List[str] = []
    strata = {name for trial in trials for name in (trial.kind, trial.stratum)}
    for kind in sorted(strata):
        of_kind = [trial for trial in trials if kind in (trial.kind, trial.stratum)]
        counts: Counter[str] = Counter(trial.state for trial in of_kind if trial.state != "tried")
        right = wrong = 0
        rows = set()
        for trial in of_kind:
            counts.update(trial.outcomes if kind != "stack" else ())
            rows.add(trial.row)
            if not set(trial.outcomes).isdisjoint(_DISAGREEMENTS):
                wrong += 1
                work += trial.work if kind == trial.kind else ()
            elif not set(trial.outcomes).isdisjoint(_SHOWS[trial.kind]):
                right += 1
            elif kind == "stack" and trial.state == "tried":
                counts["says nothing"] += 1
        low, high = wilson(right, right + wrong)
        rest = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        share = f"{100 * right / (right + wrong):.1f} %" if right + wrong else "-"
        yield (
            f"{kind}: {right} of {right + wrong} as said, {share} "
            f"({100 * low:.1f} to {100 * high:.1f}); of {len(of_kind)} drawn: {rest}"
            + (f"; {len(rows)} statements" if kind != "stack" else "")
        )
    yield from work


def _work(record: Mapping[str, Any], verdict: Verdict) -> str:
    names = {word.partition("==")[0] for word in record["requirements"]}
    installed = [
        f"{name}=={version}"
        for name, version in record["installed"].items()
        if name in names or name.replace("-", "_") in verdict.text
    ]
    return (
        f"{verdict.outcome}  {verdict.module}  {' '.join(installed)}  ({record['before']}, torch "
        f"{record['installed'].get('torch', 'none')}, row {record['row'] or 'none'}): "
        f"{verdict.text[:700]}"
    )
