"""Impossible requests drawn at random, and what judges their refusals: the releases' own metadata,
the rows bound to one release at a time, a SAT solver, and the ways out taken as they are printed.
"""

from __future__ import annotations

import random
import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envdoctor.errors import InputError
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.locking import lock
from envdoctor.lock.solver.building import build_problem
from envdoctor.lock.solver.candidates import Catalog, Limits
from envdoctor.lock.solver.explanation import WORDS_OF_MANY, refusal_of
from envdoctor.lock.solver.misfit import Misfit
from envdoctor.lock.solver.problem import Problem
from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import Matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.request import parse_root
from envdoctor.model.resolution import Explanation, Resolution, Statement
from envdoctor.model.versions import try_version

from .oracle import FoundedOracle, SatOracle

ROOTS = (
    "torch",
    "transformers",
    "vllm",
    "accelerate",
    "peft",
    "torchvision",
    "bitsandbytes",
    "xformers",
    "ray",
    "trl",
    "deepspeed",
    "sglang",
    "torchao",
    "flash-attn",
    "outlines",
    "verl[vllm]",
    "openrlhf[vllm]",
    "numpy",
    "triton",
)
MACHINES = (
    ("H100", "580.95.05"),
    ("H100", "535.129.03"),
    ("A100", "470.82.01"),
    ("V100", "470.82.01"),
    ("V100", "580.95.05"),
    ("B200", "580.95.05"),
    ("B200", "550.54.15"),
    ("RTX 4090", "525.60.13"),
    ("T4", "550.54.15"),
)
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
GLIBC = ("2.17", "2.28", "2.35", "2.35", "2.39")


class Ask(NamedTuple):
    """What somebody asks for. ``profile`` and ``python``: None where it is left open."""

    profile: Optional[str]
    roots: Tuple[str, ...]
    assumed: Tuple[str, ...]
    python: Optional[str]

    @property
    def words(self) -> str:
        """The request as a command."""
        parts = [*(("--profile", self.profile) if self.profile else ()), *self.roots]
        parts += ["--python-version", self.python] if self.python else []
        return " ".join([*parts, "--assume", *self.assumed])


class Judged(NamedTuple):
    """A refusal, what is wrong with it, and which of its sentences nothing here can judge."""

    ask: Ask
    explanation: Explanation
    faults: Tuple[str, ...]
    open: Tuple[str, ...]


def refusals(count: int, seed: int, matrix: Matrix) -> Iterator[Judged]:
    """Yield so many refusals of requests that are drawn until they are refused."""
    chance = random.Random(seed)
    while count:
        ask = draw(chance, matrix)
        try:
            resolution = answer(ask, matrix)
        except InputError:  # a package that the profile takes from elsewhere
            continue
        if isinstance(resolution, Explanation):
            count -= 1
            yield judge_refusal(ask, resolution, matrix)


def draw(chance: random.Random, matrix: Matrix) -> Ask:
    """A profile or some packages, one of them pinned to a release of any age, on some machine."""
    gpu, driver = chance.choice(MACHINES)
    assumed = (f"gpu={gpu}", f"nvidia-driver={driver}", f"glibc={chance.choice(GLIBC)}")
    profile = chance.choice(sorted(matrix.profiles)) if chance.random() < 0.3 else None
    roots: List[str] = []
    for text in chance.sample(ROOTS, chance.randint(0 if profile else 1, 3)):
        package = matrix.package(text.partition("[")[0])
        assert package is not None
        final = [str(number) for number, _ in package.releases() if not number.is_prerelease]
        pick = chance.choice(final[-60:])
        roots.append(text + chance.choice(("", f"=={pick}", f"=={pick}", f">={pick}", f"<{pick}")))
    return Ask(profile, tuple(roots), assumed, chance.choice((None, *PYTHONS)))


def answer(ask: Ask, matrix: Matrix) -> object:
    """What the lock of a request is."""
    python = ask.python or (None if ask.profile else "3.12")
    return lock(
        ask.roots, (facts_of(ask.assumed),), matrix, python=python, profile=ask.profile, others=True
    )


def facts_of(assumed: Sequence[str]) -> Facts:
    return Facts(parse_assumptions(list(assumed)))


def judge_refusal(ask: Ask, found: Explanation, matrix: Matrix) -> Judged:
    """Read a refusal as somebody would who has to rely on it."""
    facts = facts_of(ask.assumed)
    reader = _Reader(ask, found, facts, matrix)
    for cause in found.causes:
        reader.read(cause)
    faults = reader.faults
    first = found.causes[0].text
    if " itself asks for " not in first and not first.startswith("it is for Python"):
        faults += _refuted(found, facts, matrix)
    faults += [] if found.ways_out else ["no way out is printed"]
    faults += ["a way out is printed twice"] * (len(set(found.ways_out)) < len(found.ways_out))
    for way in found.ways_out:
        fault = try_way(way, ask, matrix)
        faults += [f"the way out does not work: {way}: {fault}"] if fault else []
    return Judged(ask, found, tuple(faults), tuple(reader.open))


def _refuted(found: Explanation, facts: Facts, matrix: Matrix) -> List[str]:
    """A SAT solver says that there is nothing, that the causes suffice, and that none is idle."""
    if not found.request.roots:
        return []
    catalog = Catalog(matrix, found.request)
    whole = build_problem(catalog, (facts,), overrides_allowed=99)
    faults = []
    if whole.nodes and _has_model(whole):
        faults.append("there is a solution")
    refusal = refusal_of(catalog, (facts,))
    structure = [
        nogood for nogood in refusal.problem.nogoods if nogood.why.kind in ("extra", "override")
    ]

    def stand(*left_out: Tuple[str, ...]) -> bool:
        rest = [
            nogood
            for key, every in refusal.groups.items()
            if key not in left_out
            for nogood in every
        ]
        oracle = SatOracle(refusal.problem.variables, [*structure, *rest])
        try:
            return oracle.satisfiable()
        finally:
            oracle.close()

    if refusal.problem.nodes:
        faults += ["the causes do not refute the request"] if stand() else []
        faults += [f"the cause {key} is idle" for key in refusal.groups if not stand(key)]
    return faults


def _has_model(problem: Problem) -> bool:
    oracle = FoundedOracle(problem, problem.nogoods)
    try:
        return oracle.satisfiable()
    finally:
        oracle.close()


# --------------------------------------------------------------------------------------------------
# sentences

_RANGE = r"\d[^\s,:;]*(?: (?:to|and) \d[^\s,:;]*(?: but \d[^\s,:;]*(?: and \d[^\s,:;]*)?)?)?"
_RANGES = rf"(?:{_RANGE}(?:, {_RANGE})*|\d+ releases from \S+ to [^\s,:;]+)"
_NODE = r"[a-z0-9][a-z0-9.-]*(?:\[[^\]]*\])?"
_EDGE = re.compile(rf"(?:(?P<node>{_NODE}) )?(?P<ranges>{_RANGES}) needs? (?P<wanted>.*)")
_OF_ONE = re.compile(
    rf"(?P<node>{_NODE}) (?P<ranges>{_RANGES}) (?:needs? (?P<wanted>{_NODE}) of one release each|"
    rf"each need their own range of (?P<ranged>{_NODE})) \((?P<pieces>.*)\)"
)
_UNREAD = re.compile(
    rf"; the [\w ]+ of (?P<node>{_NODE}) (?P<ranges>{_RANGES}) was not read, and is taken to be that of"
)
_SUBJECT = re.compile(rf"(?P<node>{_NODE}) (?P<ranges>{_RANGES})(?P<rest>.*)")


class _Reader:
    """Holds each sentence of a refusal against the releases that it names."""

    def __init__(self, ask: Ask, found: Explanation, facts: Facts, matrix: Matrix) -> None:
        self._ask = ask
        self._found = found
        self._facts = facts
        self._matrix = matrix
        self.faults: List[str] = []
        self.open: List[str] = []
        python = found.request.python
        self._environment = {
            "python_version": ".".join(python.split(".")[:2]),
            "python_full_version": python if python.count(".") > 1 else f"{python}.0",
            "sys_platform": found.request.platform,
            "platform_system": "Linux",
            "platform_machine": found.request.architecture,
            "os_name": "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }

    def read(self, cause: Statement) -> None:
        text = cause.text
        if cause.kind == "request":
            if text.startswith("you asked for "):
                asked = text[len("you asked for ") :] in self._ask.roots
            else:
                pattern = r"(\S+) (?:itself )?asks for (\S+)(?:, and you for (\S+))?"
                match = re.fullmatch(pattern, text)
                asked = match is not None and self._is_asked(match[1], match[2], match[3])
            self.faults += [] if asked else [f"nobody asked: {text}"]
        elif cause.kind == "metadata" and not re.match(r"and \d+ more", text):
            self._read_edge(text)
        elif cause.kind in ("python", "date", "hardware") and not cause.row:
            self._read_host(text)
        elif cause.row and cause.kind != "build":
            self._read_row(cause)
        else:
            self.open.append(text)

    def _is_asked(self, profile: str, own: str, besides: Optional[str]) -> bool:
        """Whether a profile says so in its own requirements, and the user besides."""
        name, _, wanted = profile.partition(":")
        described = self._matrix.profile(name)
        return (
            described is not None
            and any(
                own in (parse_root(text).text for text in named.requirements)
                for named in described.requests
                if named.name == wanted
            )
            and (besides is None or besides in self._ask.roots)
        )

    # what releases require

    def _read_edge(self, text: str) -> None:
        gone = text.endswith(", which the index does not have")
        text = text.replace(", which the index does not have", "")
        one = _OF_ONE.fullmatch(text)
        if one is not None:
            node, wanted = one["node"], one["wanted"] or one["ranged"]
            for version in self._releases(node, one["ranges"]):
                specifier = self._asked(node, version, wanted)
                pinned = str(specifier).startswith("==") or one["ranged"]
                if specifier is None or not pinned:
                    self.faults.append(f"{node} {version} needs {wanted}{specifier}: {text}")
            for piece in one["pieces"].split("; "):
                ranges, _, pin = piece.partition(": ")
                self._hold(node, ranges, wanted, "" if pin == "any" else pin, text)
            return
        node = wanted = ""
        for piece in text.split("; "):
            match = _EDGE.fullmatch(piece)
            if match is None:
                self.open.append(text)
                return
            node = match["node"] or node
            words = match["wanted"].split(" ")
            if not wanted:
                wanted, words = words[0], words[1:]
            pin = " ".join(words)
            self._hold(node, match["ranges"], wanted, pin, text)
            if gone and self._serving(wanted, pin):
                self.faults.append(f"the index has {self._serving(wanted, pin)}: {text}")

    def _hold(self, node: str, ranges: str, wanted: str, pin: str, text: str) -> None:
        said = _specifier(pin)
        for version in self._releases(node, ranges):
            specifier = self._asked(node, version, wanted)
            if specifier is None:
                self.faults.append(f"{node} {version} does not need {wanted}: {text}")
            elif said is not None and specifier != said and not self._same(wanted, specifier, said):
                self.faults.append(f"{node} {version} needs {wanted}{specifier}: {text}")

    def _asked(self, node: str, version: Version, wanted: str) -> Optional[SpecifierSet]:
        """What a release asks of another package on this Python and platform."""
        name, _, extra = node.rstrip("]").partition("[")
        package = self._matrix.package(name)
        release = package.release(try_version(version.public)) if package is not None else None  # type: ignore[arg-type]
        if release is None:
            return None
        release = Catalog(self._matrix, self._found.request).served(release)
        lines = list(release.requires or ())
        found: Optional[SpecifierSet] = None
        for line in lines:
            try:
                requirement = Requirement(line)
            except InvalidRequirement:
                continue
            if requirement.name.lower().replace("_", "-").replace(".", "-") != wanted:
                continue
            here = [{**self._environment, "extra": one} for one in ("", extra)]
            marker = requirement.marker
            if marker is None or any(marker.evaluate(one) for one in here):
                found = (found or SpecifierSet()) & requirement.specifier
        return found

    def _same(self, name: str, one: SpecifierSet, other: SpecifierSet) -> bool:
        """Whether two specifiers admit the same releases."""
        package = self._matrix.package(name)
        return package is not None and all(
            one.contains(str(number), True) == other.contains(str(number), True)
            for number, _ in package.releases()
        )

    def _serving(self, name: str, pin: str) -> List[str]:
        package, said = self._matrix.package(name), _specifier(pin)
        if package is None or said is None:
            return []
        return [str(number) for number, _ in package.releases() if said.contains(str(number), True)]

    # what machines admit

    def _read_host(self, text: str) -> None:
        match = _SUBJECT.fullmatch(text)
        if match is None:
            self.open.append(text)
            return
        catalog = Catalog(self._matrix, self._found.request)
        limits = Limits(
            try_version(dict(a.split("=", 1) for a in self._ask.assumed)["glibc"]), True
        )
        rest = match["rest"]
        table = catalog.table(match["node"].partition("[")[0])
        named = {str(version) for version in self._releases(match["node"], match["ranges"])}
        for candidate in table.candidates:
            if str(candidate.version) not in named:
                continue
            refusal = catalog.refusal(table.name, candidate, limits)
            if refusal is None:
                self.faults.append(f"{table.name} {candidate.version} is admitted: {text}")
            elif not any(words in rest for words in (*_said(refusal), *WORDS_OF_MANY.values())):
                self.faults.append(f"{table.name} {candidate.version} {refusal.words()}: {text}")
        needs = re.findall(r"needs? Python (\S+), not ", rest)
        late = re.search(r"uploaded after (\S+?)(?:;|$)", rest)
        package = self._matrix.package(table.name)
        assert package is not None
        for text_of in sorted(named) if (needs and "wheel" not in rest) or late else ():
            number = try_version(text_of)
            release = package.release(number) if number is not None else None
            if release is None:
                continue
            release = catalog.served(release)
            asked = (release.requires_python or "").replace(" ", "")
            late_enough = late is not None and release.released > late[1]
            python = self._environment["python_full_version"]
            if not late_enough and SpecifierSet(asked.rstrip(",")).contains(python):
                self.faults.append(f"{table.name} {number} needs Python {asked}: {text}")

    def _read_row(self, cause: Statement) -> None:
        row = self._matrix.row(cause.row)
        if row is None:
            self.open.append(cause.text)
            return
        subjects, _, _ = cause.text.partition(f": {self._matrix.complete(row).title}")
        if subjects == cause.text:
            subjects = ""
        named: Dict[str, List[Version]] = {}
        for part in subjects.split(" with ") if subjects else ():
            match = _SUBJECT.fullmatch(part)
            if match is None:
                self.open.append(cause.text)
                return
            named[match["node"]] = self._releases(match["node"], match["ranges"])
        unread = {
            (name, version)
            for name, ranges in _UNREAD.findall(cause.text)
            for version in self._releases(name, ranges)
        }
        for name, versions in named.items():
            for version in versions:
                if (name, version) in unread:
                    continue
                others = [(other, many) for other, many in named.items() if other != name]
                if not self._violates(row, [(name, [version]), *others]):
                    self.faults.append(f"{name} {version} does not violate {row.id}: {cause.text}")

    def _violates(self, row: object, named: Sequence[Tuple[str, Sequence[Version]]]) -> bool:
        """Whether some choice of these releases violates a row on the target."""

        def sets(rest: Sequence[Tuple[str, Sequence[Version]]]) -> Iterator[Dict[str, Version]]:
            if not rest:
                yield {}
                return
            for chosen in sets(rest[1:]):
                for version in rest[0][1]:
                    yield {**chosen, rest[0][0]: version}

        here = Evidence("drawn")
        for number, chosen in enumerate(sets(named)):
            if number > 400:
                return False
            installed = {name: Distribution(name, str(v)) for name, v in chosen.items()}
            facts = self._facts.updated(
                {
                    "os.platform": Known(self._found.request.platform, here),
                    "os.architecture": Known(self._found.request.architecture, here),
                    "python.version": Known(self._environment["python_full_version"], here),
                    "distributions": Known(installed, here),
                    "distributions.complete": Known(True, here),
                }
            )
            outcome = bind(row, derive_target(facts, self._matrix)).outcome  # type: ignore[arg-type]
            if outcome == "violated":
                return True
        return False

    def _releases(self, node: str, ranges: str) -> List[Version]:
        """The releases that printed ranges name: of a range all that lie in it but early ones that
        are not an end of it.
        """
        package = self._matrix.package(node.partition("[")[0])
        assert package is not None, node
        every = sorted({Version(str(number)) for number, _ in package.releases()})
        counted = re.fullmatch(r"(\d+) releases from (\S+) to (\S+)", ranges)
        if counted is not None:
            ends = [Version(counted[2]), Version(counted[3])]
            if len([one for one in every if ends[0] <= one <= ends[1]]) < int(counted[1]):
                self.open.append(f"{node} {ranges}")
            return ends
        found: Set[Version] = set()
        for part in re.findall(_RANGE, ranges):
            span, _, but = part.partition(" but ")
            low, _, high = span.replace(" and ", " to ").partition(" to ")
            ends = [Version(low), Version(high or low)]
            left_out = {Version(one) for one in but.split(" and ") if one}
            found.update(ends)
            found.update(
                one
                for one in every
                if ends[0] <= one <= ends[1] and one not in left_out and not one.is_prerelease
            )
        return sorted(found)


def _said(misfit: Misfit) -> Tuple[str, str]:
    """What is said of a release, of it alone and of many."""
    return misfit.words(), misfit.words(many=True)


def _specifier(pin: str) -> Optional[SpecifierSet]:
    try:
        return SpecifierSet(f"=={pin}" if pin[:1].isdigit() else pin)
    except InvalidSpecifier:
        return None


# --------------------------------------------------------------------------------------------------
# ways out


def try_way(way: str, ask: Ask, matrix: Matrix) -> str:
    """Do what a way out says; what comes of it instead of the lock that it promises, or nothing."""
    words, _, promised = way.rpartition(": ")
    profile = re.match(
        r"ask for --profile (\S+)(?: --python-version (\S+))?(?: \(.*\), which fits| and (.*)|$)",
        way,
    )
    if profile is not None:
        python = profile[2] or re.search(r"--python-version (\S+)$", way)
        named = python if isinstance(python, str) or python is None else python[1]
        ask = ask._replace(profile=profile[1], python=named or ask.python)
        return try_way(profile[3], ask, matrix) if profile[3] else _fault_of(ask, (), matrix)
    left_out = re.match(r"leave out (\S+(?:, \S+)*?)(?: and (.*)|: .*|$)", way)
    if left_out is not None:
        gone = {parse_root(text).name for text in left_out[1].rstrip(":").split(", ")}
        kept = tuple(text for text in ask.roots if parse_root(text).name not in gone)
        ask = ask._replace(roots=kept)
        return (
            try_way(left_out[2], ask, matrix)
            if left_out[2]
            else _fault_of(ask, (), matrix, promised)
        )
    allowed: Tuple[str, ...] = ()
    for step in re.split(r" and (?=update |use |ask |without |allow |leave )", words):
        changed = _changed(step, ask, matrix)
        index = re.match(r"allow builds from the index (\S+)", step)
        if index is not None:
            allowed = (index[1],)
        elif changed is None:
            return f"nobody can do that: {step!r}"
        else:
            ask = changed
    return _fault_of(ask, allowed, matrix, promised)


def _changed(step: str, ask: Ask, matrix: Matrix) -> Optional[Ask]:
    """A request after one step, or None where it says nothing that can be done."""
    assumed: Mapping[str, str] = dict(text.partition("=")[::2] for text in ask.assumed)  # type: ignore[misc]
    patterns = (
        (r"update the driver to (\S+) or newer", "nvidia-driver"),
        (r"use a system with glibc (\S+) or newer", "glibc"),
    )
    for pattern, name in patterns:
        match = re.fullmatch(pattern, step)
        if match is not None:
            assumed = {**assumed, name: match[1]}
            return ask._replace(assumed=tuple(f"{key}={value}" for key, value in assumed.items()))
    if step == "use a GPU that the driver supports":
        assumed = {**assumed, "gpu": "V100"}  # drivers of all branches know it
        return ask._replace(assumed=tuple(f"{key}={value}" for key, value in assumed.items()))
    match = re.fullmatch(r"use a GPU of compute capability (.*)", step)
    if match is not None:
        # Any of them has to do: the first is the hardest.
        models = [
            gpu.name
            for wanted in match[1].split(", ")
            for gpu in matrix.gpus
            if gpu.compute_capability == wanted
        ]
        if not models:
            return None
        assumed = {**assumed, "gpu": models[0]}
        return ask._replace(assumed=tuple(f"{key}={value}" for key, value in assumed.items()))
    match = re.fullmatch(r"use Python (\S+)", step)
    if match is not None:
        return ask._replace(python=match[1])
    match = re.fullmatch(r"leave out (\S+)", step)
    if match is not None:
        kept = tuple(text for text in ask.roots if text != match[1])
        return ask._replace(roots=kept) if kept != ask.roots else None
    match = re.fullmatch(r"ask for (\S+?)(?:, which is for CUDA \S+ too)?", step)
    if match is not None:
        names = {parse_root(text).name for text in ask.roots}
        plain = parse_root(match[1])
        own = [plain.text if parse_root(t).name == plain.name else t for t in ask.roots]
        return ask._replace(roots=tuple(own)) if plain.name in names else None
    match = re.fullmatch(r"ask for (\S+) without (\S+)", step)
    if match is not None:
        own = [
            match[1] if parse_root(text).name == parse_root(match[1]).name else text
            for text in ask.roots
        ]
        return ask._replace(roots=tuple(own)) if own != list(ask.roots) else None
    return ask if step == "without the date" else None


def _fault_of(ask: Ask, allowed: Sequence[str], matrix: Matrix, promised: str = "") -> str:
    python = ask.python or (None if ask.profile else "3.12")
    resolution = lock(
        ask.roots,
        (facts_of(ask.assumed),),
        matrix,
        python=python,
        profile=ask.profile,
        allow_index=allowed,
        others=True,
    )
    if not isinstance(resolution, Resolution):
        return f"{ask.words}: " + "; ".join(cause.text for cause in resolution.causes)[:300]
    pins = {pin.name: str(pin.version) for pin in resolution.pins}
    said = re.findall(rf"({_NODE}) (\d[^\s,]*)(?: \(\d+ months behind\))?(?:,|$)", promised)
    wrong = [f"{name} {pins.get(name)}" for name, version in said if pins.get(name) != version]
    return f"{ask.words} gives {', '.join(wrong)}" if wrong else ""
