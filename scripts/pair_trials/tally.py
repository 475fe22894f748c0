"""What trials showed, against what check said: agreement, false alarm, miss, with intervals."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from .draw import Statements

__all__ = ["Verdict", "judge", "summary", "wilson"]

_GPU = re.compile(
    r"libcuda\.so\.1|no NVIDIA driver|No CUDA GPUs are available|0 active drivers|NVML"
    r"|Torch not compiled with CUDA|no GPU|GPU.*not (?:found|available)|CUDA_HOME",
    re.IGNORECASE,
)
_MISSING = re.compile(r"No module named '([\w.]+)'|(\w+) is not installed|requires (\w+) to be ins")
_OF_NAMES = re.compile(r"cannot import name|No module named|has no attribute|ImportError")
#: What speaks of names that packages do not have.
_MEASURED = ("ED308", "ED309")


class Verdict(NamedTuple):
    """outcome: fails (as said), works (as said), false alarm, miss; or why a trial says nothing:
    gpu, incomplete (a package that no metadata ask for), masked (another fault comes first).
    """

    outcome: str
    module: str
    text: str


def judge(record: Mapping[str, Any], statements: Statements) -> List[Verdict]:
    """Return the verdict on each module of a trial; none where it was not tried."""
    if record["state"] != "tried":
        return []
    return [
        _of_module(record, module, lines, statements) for module, lines in record["errors"].items()
    ]


def _of_module(
    record: Mapping[str, Any], module: str, lines: Sequence[str], statements: Statements
) -> Verdict:
    said = list(_spoken(record, module, lines, statements))
    text = " | ".join(lines)
    if not lines:
        return Verdict("false alarm" if said else "works", module, said[0][0] if said else "")
    if _GPU.search(text):
        return Verdict("gpu", module, text)
    if said:
        named = [message for message, words in said if all(word in text for word in words)]
        return Verdict("fails" if named else "masked", module, text)
    missing = _MISSING.search(text)
    name = next(filter(None, missing.groups())).split(".")[0] if missing else ""
    if (
        name
        and name.replace("_", "-").lower() not in record["installed"]
        and not any(name == other.replace("-", "_") for other in record["installed"])
    ):
        top = {words[0] for words in _TOPS.get(name, ())}
        if not top & set(record["installed"]):
            return Verdict("incomplete", module, text)
    return Verdict("miss" if _OF_NAMES.search(text) else "masked", module, text)


#: Modules whose distribution has another name.
_TOPS: Dict[str, Tuple[Tuple[str, ...], ...]] = {
    "pkg_resources": (("setuptools",),),
    "google": (("protobuf",),),
    "awq": (("autoawq",),),
}


def _spoken(
    record: Mapping[str, Any], module: str, lines: Sequence[str], statements: Statements
) -> Iterator[Tuple[str, Tuple[str, ...]]]:
    """Yield what check said of an import: the sentence, and words that its error has to hold."""
    for finding in record["findings"]:
        if finding["verdict"] != "violated":
            continue
        message = f"{finding['severity']} {finding['rule']}: {finding['message']}"
        if finding["code"] in _MEASURED:
            entry = statements.of_row(finding["rule"])
            if entry and (module + ".").startswith(entry["entry"] + "."):
                yield message, (entry["name"] or entry["module"].split(".")[-1],)
        elif finding["severity"] == "error" and _concerns(finding, module, lines):
            yield message, ()


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


def summary(records: Sequence[Mapping[str, Any]], statements: Statements) -> Iterator[str]:
    """Yield a line for each kind of trial, then each disagreement with what was installed."""
    work: List[str] = []
    for kind in sorted({record["kind"] for record in records}):
        of_kind = [record for record in records if record["kind"] == kind]
        counts: Counter[str] = Counter(
            record["state"] for record in of_kind if record["state"] != "tried"
        )
        right = wrong = 0
        for record in of_kind:
            verdicts = judge(record, statements)
            outcomes = [verdict.outcome for verdict in verdicts]
            counts.update(outcomes if kind != "stack" else ())
            bad = [verdict for verdict in verdicts if verdict.outcome in ("false alarm", "miss")]
            # Beside what is said to break, only what works tells anything of the end of the range.
            outcomes_that_count = ("works",) if kind == "allowed" else ("fails", "works")
            good = [verdict for verdict in verdicts if verdict.outcome in outcomes_that_count]
            if bad:
                wrong += 1
                work += [_work(record, verdict) for verdict in bad]
            elif good:
                right += 1
            elif kind == "stack" and record["state"] == "tried":
                counts["says nothing"] += 1
        low, high = wilson(right, right + wrong)
        rest = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        share = f"{100 * right / (right + wrong):.1f} %" if right + wrong else "-"
        yield (
            f"{kind}: {right} of {right + wrong} as said, {share} "
            f"({100 * low:.1f} to {100 * high:.1f}); of {len(of_kind)} drawn: {rest}"
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
