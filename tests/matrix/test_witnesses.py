"""Rows, rules and signatures on the threads that they cite: the environment lines of a thread,
which ``tests/data/cases`` keeps, make them fire through the reader, and no longer once a fact that they
speak of is another one. What cites a thread without such lines says there why not.
"""

import json
import re
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Tuple

import pytest

from envdoctor import app
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Gpu
from envdoctor.model.versions import parse_version, try_version

MATRIX = load_matrix()
ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "data" / "cases"
RULES = "".join(path.read_text("utf-8") for path in (ROOT / "envdoctor/rules").glob("*.py"))
_THREAD = re.compile(r"github\.com/[^/\s]+/([^/\s]+)/(?:issues|pull|discussions)/(\d+)")
ROWS = {row.id: row for row in map(MATRIX.complete, MATRIX.rows()) if row.origin != "derived"}
SIGNATURES = {signature.id: signature for signature in MATRIX.signatures}


class Witness(NamedTuple):
    """What a thread tells of the environment and of the log, and of which rows, signatures and rules
    (by code) it is a source. ``silent``: why they do not fire on it.
    """

    of: Tuple[str, ...]
    thread: Tuple[str, ...]
    text: str = ""
    log: str = ""
    silent: str = ""
    counter: Optional[Dict[str, str]] = None  # a line, and how it reads where they do not fire


def threads_in(text):
    """The repository, which may have moved, and the number of each thread that a text names."""
    return frozenset(match.groups() for match in _THREAD.finditer(text or ""))


def cited(name):
    """The threads that a row or a signature cites; for a code, those of all rules."""
    if name in ROWS:
        return threads_in(" ".join(source.address or "" for source in ROWS[name].sources))
    if name in SIGNATURES:
        return threads_in(SIGNATURES[name].source.address)
    return threads_in(RULES)


def read(path):
    """The lines of one file of ``tests/data/cases``."""
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


ENTRIES = read(CASES / "witnesses.jsonl")


#: The environment lines of threads that are cases, too.
KEPT = {
    thread: case["env_text"]
    for path in sorted(CASES.glob("*.jsonl"))
    for case in (read(path) if path.name != "witnesses.jsonl" else ())
    for thread in threads_in(case.get("url"))
    if (case.get("env_text") or "").strip()
}


def witnesses():
    """What is kept of threads: first what the entries say, then the cases of threads that a row
    cites and no entry is about.
    """
    said = set()
    for entry in ENTRIES:
        for thread in threads_in(entry.get("url")):
            said.update((name, thread) for name in entry["of"])
            text = entry.get("env_text", "") or ("" if "log" in entry else KEPT.get(thread, ""))
            kept = {key: entry[key] for key in ("log", "silent", "counter") if key in entry}
            yield Witness(tuple(entry["of"]), thread, text, **kept)
    for row in ROWS.values():
        for thread in cited(row.id) & set(KEPT):
            if (row.id, thread) not in said:
                yield Witness((row.id,), thread, KEPT[thread])


def labelled(name, witness):
    return pytest.param(name, witness, id=f"{name}-{'-'.join(witness.thread)}")


ALL = sorted(witnesses())
WITNESSES = [labelled(name, witness) for witness in ALL for name in witness.of]
FIRING = [labelled(name, witness) for witness in ALL if not witness.silent for name in witness.of]


def facts_of(text):
    return parse_report(text, MATRIX.package)


def fires(name, facts):
    """Whether a row or a rule is violated: a row by itself, or by another that says it of the same
    packages.
    """
    row: Any = ROWS.get(name)
    for finding in app.judge(facts, MATRIX):
        if finding.verdict != "violated":
            continue
        if name in (finding.row, *finding.rows, finding.code):
            return True
        if row is not None and row.packages and set(row.packages) <= set(finding.packages):
            return True
    return False


def is_named(name, log, tmp_path):
    """Whether a log of this one line is explained by a signature."""
    path = tmp_path / "run.log"
    path.write_text(log + "\n", encoding="utf-8")
    return name in {
        trace.finding.subject for trace in app.diagnose([str(path)], None, MATRIX).traces
    }


@pytest.mark.parametrize(("name", "witness"), WITNESSES)
def test_the_thread_is_one_that_is_cited(name, witness):
    assert name in ROWS or name in SIGNATURES or re.fullmatch(r"ED\d{3}", name)
    assert witness.thread in cited(name)


@pytest.mark.parametrize(
    ("name", "witness"), [entry for entry in WITNESSES if entry.values[1].text]
)
def test_a_row_fires_on_its_own_thread_or_says_why_not(name, witness):
    facts = facts_of(witness.text)
    if witness.silent:
        assert not any(
            name in (finding.row, *finding.rows) and finding.verdict == "violated"
            for finding in app.judge(facts, MATRIX)
        )
    else:
        assert fires(name, facts)


@pytest.mark.parametrize(("name", "witness"), [entry for entry in FIRING if entry.values[1].log])
def test_a_signature_is_named_on_its_own_thread(name, witness, tmp_path):
    assert is_named(name, witness.log, tmp_path)


GPUS = (
    Gpu("NVIDIA A100-SXM4-80GB", compute_capability="8.0"),
    Gpu("NVIDIA H100 80GB HBM3", compute_capability="9.0"),
    Gpu("NVIDIA GeForce RTX 4090", compute_capability="8.9"),
    Gpu("Tesla T4", compute_capability="7.5"),
)


def without_package(term, facts):
    there = dict(facts.value("distributions", {}))
    removed = term.argument and there.pop(term.component, None)
    return {"distributions": there} if removed else None


def other_release(term, facts):
    """Another release of the package, one that the term does not speak of; none where it speaks of
    all of them.
    """
    there = facts.value("distributions", {})
    installed, package = there.get(term.component), MATRIX.package(term.component)
    if installed is None or package is None:
        return None
    fitting = [
        release
        for release in package.versions
        if release not in term.argument and not release.is_prerelease
    ]
    if not fitting:
        return without_package(term, facts)
    other = installed._replace(
        version=str(fitting[-1]), requires=None, tags=(), constraint="", build=None
    )
    return {"distributions": {**there, term.component: other}}


def other_gpu(term, facts):
    for gpu in GPUS if facts.value("gpus") else ():
        capability = parse_version(gpu.compute_capability)
        fits = {
            "sm": gpu.compute_capability in term.argument,
            "compute_capability": term.operator == "in" and capability in term.argument,
            "model": MATRIX.gpu(gpu.name, None).name in term.argument,
        }
        if not fits.get(term.attribute, True):
            return {"gpus": (gpu,)}
    return None


def without_variable(term, facts):
    variables = dict(facts.value("variables", {}))
    if variables.pop(term.component, None) is None:
        return None
    return {"variables": variables}


def other_host(term, facts):
    field, others = {
        "python": ("python.version", ("3.9.19", "3.11.9", "3.13.1")),
        "glibc": ("glibc.version", ("2.17", "2.39")),
        "architecture": ("os.architecture", ("x86_64", "aarch64")),
    }.get(term.attribute, ("", ()))
    for value in others if facts.value(field) else ():
        if (value if term.operator == "any" else try_version(value)) not in term.argument:
            return {field: value}
    return None


OTHERS = {
    ("env", "version", "in"): other_release,
    ("env", "version", "present"): without_package,
    ("gpu", "sm", "any"): other_gpu,
    ("gpu", "model", "any"): other_gpu,
    ("gpu", "compute_capability", "in"): other_gpu,
    ("var", "value", "any"): without_variable,
    ("var", "prefixes", "has"): without_variable,
    ("host", "python", "in"): other_host,
    ("host", "glibc", "in"): other_host,
    ("host", "architecture", "any"): other_host,
}


def counters(name, witness):
    """The witness with one fact changed, for each term of the row that can be: on none of them the
    row may fire.
    """
    facts = facts_of(witness.text)
    if witness.counter:
        ((line, other),) = witness.counter.items()
        assert line in witness.text.splitlines(), line
        yield facts_of(witness.text.replace(line, other))
    for term in ROWS[name].terms if name in ROWS else ():
        change = OTHERS.get((term.scope, term.attribute, term.operator))
        changed = change(term, facts) if change is not None else None
        for field, value in (changed or {}).items():
            evidence = facts.evidence(field) or Evidence("report")
            yield facts.updated({field: Known(value, evidence)})


COUNTED = [
    (*entry.values, facts)
    for entry in FIRING
    if entry.values[1].text
    for facts in counters(*entry.values)
]


@pytest.mark.parametrize(("name", "witness", "facts"), COUNTED)
def test_it_is_silent_where_a_fact_is_another_one(name, witness, facts):
    assert not any(
        name in (finding.row, finding.code) and finding.verdict == "violated"
        for finding in app.judge(facts, MATRIX)
    )


def test_nearly_every_witness_has_a_counter_witness():
    """So that the test above does not pass for want of one."""
    lonely = {name for name, witness in (entry.values for entry in FIRING) if witness.text} - {
        name for name, *_ in COUNTED
    }
    assert not lonely


def test_what_cites_a_thread_has_a_witness_or_an_entry_that_says_why_not():
    tried = {name for entry in ENTRIES for name in entry["of"]}
    tried |= {name for witness in ALL for name in witness.of}
    citing = {name for name in (*ROWS, *SIGNATURES) if cited(name)}
    assert not citing - tried, "neither a witness nor an entry in tests/data/cases/witnesses.jsonl"
    assert not threads_in(RULES) - {witness.thread for witness in ALL}


def test_each_entry_is_a_witness_or_says_why_there_is_none():
    for entry in ENTRIES:
        keys = set(entry) - {"of", "url", "date", "counter"}
        assert entry["of"]
        assert keys or threads_in(entry["url"]) <= set(KEPT), entry
        assert keys <= {"env_text", "log", "silent", "unread"}, entry
        assert ("url" in entry) is ("date" in entry) or "unread" in entry, entry
        assert "url" in entry or keys in ({"silent"}, {"unread"}), entry


def test_the_gap_does_not_grow():
    """Rows by what is known of their threads: to be brought to what they are when one is added."""
    citing = {name for name in ROWS if cited(name)}
    fired = {name for name, _ in (entry.values for entry in FIRING)} & citing
    unread = {name for entry in ENTRIES if "unread" in entry for name in entry["of"]} & citing
    assert len(fired) >= 66
    assert len(unread - fired) <= 17
