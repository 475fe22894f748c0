"""Remedies of one report hold together: environments at random, the texts of the training cases,
and findings by hand. The oracle of ranges is ``packaging``, that of remedies a new report of the
environment that they leave behind.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from envdoctor import app
from envdoctor.fix import joint_remedies
from envdoctor.fix.joint_remedies import reconciled
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.finding import Finding, Remedy

MATRIX = load_matrix()
CASES = Path(__file__).parents[1] / "data" / "cases"
NAMES = [
    "torch",
    "vllm",
    "transformers",
    "accelerate",
    "peft",
    "trl",
    "deepspeed",
    "flash-attn",
    "xformers",
    "triton",
    "numpy",
    "torchvision",
    "torchaudio",
    "sglang",
    "flashinfer-python",
    "bitsandbytes",
    "tokenizers",
    "huggingface-hub",
    "safetensors",
    "datasets",
    "ray",
    "pydantic",
    "outlines",
    "xgrammar",
]


def releases(name):
    package = MATRIX.package(name)
    return [str(version) for version in package.versions if not version.is_prerelease]


def drawn(seed):
    """Some packages, each at a release of its newer half, as they never stand together."""
    rng = random.Random(seed)
    chosen = {}
    for name in rng.sample(NAMES, rng.randint(5, 10)):
        known = releases(name)
        place = min(0.999, max(0.0, rng.gauss(0.75, 0.15)))
        chosen[name] = known[int(len(known) * place)]
    return chosen


def text_of(versions):
    lines = [f"{name}=={version}" for name, version in versions.items()]
    return "\n".join(["Python version: 3.10.12", "Operating system: Linux", *lines])


def checked(text):
    facts = parse_report(text, MATRIX.package)
    return app.check(facts, MATRIX).findings


def commands_of(findings):
    """Every remedy that is shown, with the finding that shows it and what it installs."""
    for finding in findings:
        for remedy in finding.remedies if finding.verdict == "violated" else ():
            lines = [
                Requirement(line)
                for call in remedy.commands
                if isinstance(call, InstallerCall) and call.action == "install"
                for line in call.packages
            ]
            if lines:
                yield finding, remedy, lines


def contradictions(findings):
    """Pairs of shown commands of two findings that leave no release of a package."""
    asked = [
        (finding.key, line)
        for finding, _, lines in commands_of(findings)
        for line in lines
        if MATRIX.package(line.name) is not None
    ]
    return [
        (one, other)
        for (key, one), (of, other) in itertools.combinations(asked, 2)
        if key != of
        and one.name == other.name
        and not any(
            one.specifier.contains(version) and other.specifier.contains(version)
            for version in releases(one.name)
        )
    ]


def with_installed(versions, lines):
    """What is there after an installer took for each line the release that is nearest."""
    after = dict(versions)
    for line in lines:
        if line.name in after and not line.specifier.contains(after[line.name], prereleases=True):
            fitting = [entry for entry in releases(line.name) if line.specifier.contains(entry)]
            here = Version(after[line.name])
            newer = [entry for entry in fitting if Version(entry) > here]
            after[line.name] = newer[0] if newer else fitting[-1]
    return after


#: All of these contradict themselves where nothing reconciles them.
FEW = (44, 53, 63)
DRAWN = [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 160))]


@pytest.mark.parametrize("seed", DRAWN)
def test_no_two_commands_contradict_each_other_and_none_breaks_anything(seed):
    versions = drawn(seed)
    findings = checked(text_of(versions))
    assert contradictions(findings) == []
    keys = {finding.key for finding in findings}
    for finding, _, lines in commands_of(findings):
        if finding.severity == "advice":
            continue  # of which no remedy is tried
        after = checked(text_of(with_installed(versions, lines)))
        fresh = [entry for entry in after if entry.severity == "error" and entry.key not in keys]
        assert [entry.message for entry in fresh if entry.verdict == "violated"] == []


def test_the_drawn_environments_contradict_themselves_where_nothing_reconciles_them(monkeypatch):
    monkeypatch.setattr(
        "envdoctor.fix.joint_remedies.reconciled", lambda findings, *_: list(findings)
    )
    assert all(contradictions(checked(text_of(drawn(seed)))) for seed in FEW)


def texts():
    for name in ("public", "own"):
        for line in (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            stated = "\n".join(f"{key}: {value}" for key, value in case["facts"].items())
            text = stated if case["env_kind"] == "stated" else case["env_text"]
            log = case.get("error") or ""
            yield pytest.param(
                f"{text}\n\n{log if isinstance(log, str) else chr(10).join(log)}", id=case["id"]
            )


@pytest.mark.slow
@pytest.mark.parametrize("text", list(texts()))
def test_no_report_of_a_case_contradicts_itself(text, tmp_path):
    path = tmp_path / "issue.txt"
    path.write_text(text, encoding="utf-8")
    facts = parse_report(text, MATRIX.package)
    assert contradictions(app.check(facts, MATRIX, logs=[str(path)]).findings) == []


# --------------------------------------------------------------------------------------------------
# by hand

FACTS = parse_report("peft 0.14.0\ntransformers 4.46.3\n", MATRIX.package)


def install(*requirements, action="install"):
    return Remedy(f"{action} {requirements}.", (InstallerCall(action, requirements),))


def finding(component, *remedies, severity="error"):
    return Finding("ED308", component, "too-old", severity, "It fails.", remedies=remedies)


def reconcile(*findings, judge=lambda _: ()):
    return reconciled(findings, FACTS, MATRIX, judge)


def test_what_holds_together_stays_as_it_is():
    findings = [finding("peft", install("peft<0.14")), finding("trl", install("peft>=0.10"))]
    assert reconcile(*findings) == findings


def test_an_alternative_that_contradicts_another_finding_goes():
    both = finding("peft", install("peft<0.14"), install("transformers==4.48.0"))
    only = finding("trl", install("transformers>=4.49"))
    assert reconcile(both, only) == [both._replace(remedies=both.remedies[:1]), only]


def test_nothing_yields_to_what_is_open_or_less_grave():
    both = finding("peft", install("peft<0.14"), install("transformers==4.48.0"))
    open_one = finding("trl", install("transformers>=4.49"))._replace(verdict="undetermined")
    assert reconcile(both, open_one) == [both, open_one]
    advised = finding("trl", install("transformers>=4.49"), severity="advice")
    assert reconcile(both, advised)[0] == both


def test_what_no_change_cures_together_is_said_once_and_the_first_stays():
    """The environment itself is well: there is nothing that ``fix`` would change."""
    first, second = finding("peft", install("peft<0.12")), finding("trl", install("peft>=0.15"))
    kept, refused = reconcile(first, second)
    assert kept == first
    (remedy,) = refused.remedies
    assert remedy.is_refused
    assert not remedy.commands
    assert "ED308 of peft asks for something else" in remedy.text


def test_no_change_is_looked_for_where_only_one_asks_for_what_a_goal_wants(monkeypatch):
    """An advice against a warning: no change cures two, and the search is the slowest part."""
    goals = []
    monkeypatch.setattr(
        "envdoctor.fix.joint_remedies._planned",
        lambda _facts, _matrix, goal, _within: goals.append(goal),
    )
    first = finding("peft", install("peft<0.12"), severity="warning")
    kept, refused = reconcile(first, finding("trl", install("peft>=0.15"), severity="advice"))
    assert (kept, goals) == (first, [])
    assert refused.remedies[0].is_refused
    reconcile(first, finding("trl", install("peft>=0.15"), severity="warning"))
    assert goals == ["healthy"]


def test_to_install_and_to_remove_the_same_contradict_each_other():
    first = finding("peft", install("peft", action="uninstall"))
    _, refused = reconcile(first, finding("trl", install("peft>=0.15")))
    assert refused.remedies[0].is_refused


def test_one_change_takes_the_place_of_what_contradicts_itself():
    findings = checked(text_of(drawn(FEW[-1])))
    shown = [remedy for _, remedy, _ in commands_of(findings)]
    assert sum(remedy.text.startswith("Together, as what cures one") for remedy in shown) == 1
    words = [remedy.text for entry in findings for remedy in entry.remedies]
    assert any(text.endswith("cures this, too.") for text in words)


def test_what_the_first_remedy_cures_too_has_none_of_its_own(tmp_path):
    """trl 0.7 does not import with peft 0.10 either: the release that has the name does."""
    text = (
        "Python 3.10.12\ntrl 0.7.0\npeft 0.10.0\ntransformers 4.51.3\ntorch 2.6.0\n"
        "Traceback (most recent call last):\n"
        '  File "/w/train.py", line 2, in <module>\n    from trl import GRPOTrainer\n'
        "ImportError: cannot import name 'GRPOTrainer' from 'trl' (/v/trl/__init__.py)\n"
    )
    path = tmp_path / "issue.txt"
    path.write_text(text)
    facts = parse_report(text, MATRIX.package)
    first, *others = app.check(facts, MATRIX, logs=[str(path)]).findings
    assert first.code == "ED395"
    assert first.remedies[0].commands[0].packages == ("trl==0.14.0",)
    words = {way.text for entry in others if "trl" in entry.packages for way in entry.remedies}
    assert words == {"What cures ED395 of trl cures this, too."}


def test_a_joint_change_gives_what_a_line_of_the_log_asks_for(tmp_path):
    """tokenizers 0.14.0 asks for an older huggingface-hub than the one that lacks the name."""
    text = (
        "transformers==4.35.0\ntokenizers==0.14.0\nhuggingface-hub==0.17.3\n\n"
        "ImportError: cannot import name 'HF_HOME' from 'huggingface_hub.constants'\n"
    )
    path = tmp_path / "issue.txt"
    path.write_text(text)
    facts = parse_report(text, MATRIX.package)
    findings = app.check(facts, MATRIX, logs=[str(path)]).findings
    (command,) = [call for entry in findings for way in entry.remedies for call in way.commands]
    pins = {Requirement(line).name: Requirement(line).specifier for line in command.packages}
    assert pins["huggingface-hub"].contains("0.19.2")
    assert not pins["tokenizers"].contains("0.14.0")


@pytest.mark.parametrize(("number", "is_listed"), [(8, True), (9, False)])
def test_a_change_of_many_packages_is_a_command(number, is_listed, monkeypatch):
    """Nobody reads forty requirements one by one; the command shows them, and changes nothing."""
    changed = [f"{name}==1.0" for name in NAMES[:number]]
    joint = Remedy("Together.", (InstallerCall("install", tuple(changed)),))
    findings = [
        Finding("ED302", name, "missing", "warning", f"{name} is missing.", remedies=(install,))
        for name in NAMES[:2]
        for install in (Remedy(f"Install {name}.", (InstallerCall("install", (name,)),)),)
    ]
    cured = frozenset(finding.key for finding in findings)
    change = joint_remedies._JointChange(joint, cured)
    monkeypatch.setattr(joint_remedies, "_joint_change", lambda *_: change)
    monkeypatch.setattr(joint_remedies, "_hold_together", lambda *_: False)
    facts = parse_report("numpy 1.26.4\n", MATRIX.package)
    first, second = reconciled(findings, facts, MATRIX, lambda _: ())
    (way,) = first.remedies
    assert (way == joint) is is_listed
    assert is_listed or (
        f"{number} packages" in way.text and str(way.commands[0]) == "envdoctor fix"
    )
    assert second.remedies[0].text.startswith("What cures")
