"""What is tried: pairs of releases at the ends of measured ranges, and stacks at random dates."""

from __future__ import annotations

import datetime
import functools
import json
import random
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from envdoctor.matrix.loader import Matrix
from envdoctor.model.requirement import try_requirement
from envdoctor.model.version import Version
from envdoctor.model.versions import VersionSet, parse_version

__all__ = [
    "KINDS",
    "PYTHON",
    "TORCHES",
    "Releases",
    "Statements",
    "Trial",
    "built_for",
    "draw",
    "needs_torch",
    "torch_in",
    "torch_of",
]

#: Kinds of trials: a statement that blocks or degrades, a release just outside one, a whole stack.
KINDS = ("blocks", "degrades", "allowed", "stack")

#: The release of torch for environments of each day on, the first for all before: torch and CUDA
#: are 5 GB a release, and what is asked is whether names are there.
TORCHES = (("2025-01-29", "2.6.0"), ("2026-10-28", "2.15.0"))
PYTHON = "3.11"
#: Older releases were not measured.
_MEASURED = "2023-01-01"
_FIRST = "2023-10-02"
#: Random days on which stacks are resolved, the same for every seed: those of a day share much.
_DAYS = 72
#: Extensions that only a machine with a CUDA toolkit builds.
_BUILT = frozenset(("flash-attn", "mamba-ssm", "causal-conv1d", "apex", "auto-gptq", "gptqmodel"))
#: Roots of drawn stacks. Engines come with a gigabyte of their own and are drawn less often.
_ROOTS = (
    *("transformers", "trl", "peft", "accelerate", "datasets", "diffusers", "deepspeed"),
    *("sentence-transformers", "gradio", "wandb", "torchao", "bitsandbytes", "optimum", "ray"),
    *("lm-eval", "evaluate", "timm", "tensordict", "liger-kernel", "outlines", "xgrammar"),
    *("compressed-tensors", "lightning", "torchmetrics", "open-clip-torch", "mlflow", "openai"),
    *("lm-format-enforcer", "mistral-common", "ms-swift", "llamafactory", "tensorboard"),
    *("torchdata", "torchtune", "math-verify", "pytorch-lightning", "gguf", "fastapi"),
)
_ENGINES = ("vllm", "sglang", "verl", "unsloth", "llmcompressor", "axolotl", "lmdeploy")


class Trial(NamedTuple):
    """What is installed and imported.

    requirements: pinned ones come first. before: the day of the newest release that it may hold.
    torch: its release, "" where it is one of the requirements. imports: modules. row: the id that
    is spoken of, "" in a stack.
    """

    kind: str
    requirements: Tuple[str, ...]
    before: str
    torch: str
    imports: Tuple[str, ...]
    row: str

    @property
    def key(self) -> str:
        """The same for trials of the same."""
        words = (self.kind, *self.requirements, self.before, self.torch, "import", *self.imports)
        return " ".join(words)


class Published(NamedTuple):
    """A release as a draw needs it. requires: None where its metadata are not in the matrix."""

    version: Version
    day: str
    requires: Optional[Sequence[str]] = None


class Releases:
    """What can be installed of each package: from the matrix, else what was read for surfaces."""

    def __init__(self, matrix: Matrix, read: Mapping[str, Sequence[Tuple[str, str]]] = {}) -> None:
        """read: versions with their days, by package."""
        self._matrix = matrix
        self._read = read
        self._known: Dict[str, Dict[Version, Published]] = {}

    def floors(self, day: str) -> List[str]:
        """Return a requirement for each package that was read: none of its releases from before
        2023, to which a resolver goes back where newer ones have bounds. Of those that came later
        than a day nothing is said.
        """
        oldest = ((name, next(iter(self.of(name).values()), None)) for name in sorted(self._read))
        return [
            f"{name}>={release.version}"
            for name, release in oldest
            if release is not None and release.day <= day
        ]

    def of(self, name: str) -> Dict[Version, Published]:
        """Return final releases since 2023 that this Python takes, oldest first."""
        if name not in self._known:
            published = [
                release
                for release in self._published(name)
                if not release.version.is_prerelease and release.day >= _MEASURED
            ]
            published.sort(key=lambda release: release.version)
            self._known[name] = {release.version: release for release in published}
        return self._known[name]

    def _published(self, name: str) -> Iterator[Published]:
        package = self._matrix.package(name)
        if package is None:
            for text, day in self._read.get(name, ()):
                yield Published(parse_version(text), day)
            return
        for version, release in package.releases():
            if not release.yanked and _takes_python(release.requires_python):
                yield Published(version, release.released, release.requires)


class Statements:
    """The statements of ``matrices/surfaces`` that an import shows."""

    def __init__(self, folder: Path) -> None:
        self.measured: Dict[str, List[Version]] = {}
        self.all: List[Tuple[str, Mapping[str, Any]]] = []
        for path in sorted((folder / "surfaces").glob("*.json")):
            document = json.loads(path.read_text("utf-8"))
            name = document["name"]
            self.measured[name] = [parse_version(text) for text in document["measured"]]
            self.all += [
                (name, entry)
                for entry in document["statements"]
                if entry.get("entry") and entry["effect"] != "note"
            ]

    def of(self, effect: str) -> List[Tuple[str, Mapping[str, Any]]]:
        """Return those with an effect."""
        return [(name, entry) for name, entry in self.all if entry["effect"] == effect]

    def of_row(self, row: str) -> Mapping[str, Any]:
        """Return the statement behind a row's id, empty where there is none."""
        for name, entry in self.all:
            if row == f"{entry['id']}:{name}" or (
                entry.get("equal") and row.startswith(entry["id"]) and row.endswith(f":{name}")
            ):
                return entry
        return {}

    def speaks_of(self, consumer: str, provider: str, version: Version, other: Version) -> bool:
        """Tell whether a statement says that two releases do not fit."""
        return any(
            name == consumer
            and entry["provider"] == provider
            and version in span_set(entry["in"])
            and other in span_set(entry["lacking"])
            for name, entry in self.all
        )


def span_set(spans: Sequence[Sequence[str]]) -> VersionSet:
    """Return the versions from the first to the last of each span."""
    return _parsed("||".join(f">={first},<={last}" for first, last in spans))


@functools.cache
def _parsed(specifier: str) -> VersionSet:
    return VersionSet.parse(specifier)


def torch_of(day: str) -> str:
    """Return the release of torch that environments of a day get."""
    return [release for since, release in TORCHES if since <= max(day, TORCHES[0][0])][-1]


def torch_in(trial: Trial) -> str:
    """Return the release of torch that a trial gets where it needs one."""
    pinned = [word[7:] for word in trial.requirements if word.startswith("torch==")]
    return pinned[0] if pinned else trial.torch


def built_for(matrix: Matrix, torch: str) -> List[str]:
    """Return what comes in the build that goes with a release of torch, as far as it is known."""
    torch_package = matrix.package("torch")
    release = torch_package.release(parse_version(torch)) if torch_package else None
    asked = [try_requirement(line) for line in (release.requires or ())] if release else []
    pins = [
        f"{each.name}{each.specifier}"
        for each in asked
        if each is not None and each.name == "triton"
    ]
    for name in ("torchvision", "torchaudio", "xformers"):
        package = matrix.package(name)
        for version, other in reversed(package.releases() if package else ()):
            lines = [try_requirement(line) for line in other.requires or ()]
            if any(
                line and line.name == "torch" and line.specifier == f"=={torch}" for line in lines
            ):
                pins.append(f"{name}=={version}")
                break
    return pins


def needs_torch(
    matrix: Matrix, trial: Trial, resolves: Callable[[Trial], bool] = lambda _: False
) -> bool:
    """Tell whether what a trial asks for requires torch: as far as newest releases tell, else as a
    resolver does, since older ones may ask for more and some metadata stand in the index alone.
    """
    names = [word.partition("==")[0] for word in trial.requirements]
    return any(_requires_torch(matrix, name) for name in names) or resolves(trial)


@functools.cache
def _requires_torch(matrix: Matrix, name: str) -> bool:
    waiting, seen = [name], {name}
    while waiting and "torch" not in seen:
        package = matrix.package(waiting.pop())
        releases = package.releases() if package else ()
        for line in (releases[-1][1].requires or ()) if releases else ():
            requirement = try_requirement(line)
            if requirement is not None and not requirement.marker_extras:
                waiting += [requirement.name] if requirement.name not in seen else []
                seen.add(requirement.name)
    return "torch" in seen


def draw(
    generator: random.Random,
    matrix: Matrix,
    statements: Statements,
    kinds: Sequence[str],
    releases: Optional[Releases] = None,
) -> Iterator[Trial]:
    """Yield trials without end, some of them the same, of these releases (those of the matrix)."""
    drawn = _Draw(generator, matrix, statements, releases or Releases(matrix))
    while True:
        kind = generator.choice(kinds)
        trial = drawn.stack() if kind == "stack" else drawn.pair(kind)
        if trial is not None:
            yield trial


class _Draw:
    def __init__(
        self,
        generator: random.Random,
        matrix: Matrix,
        statements: Statements,
        releases: Releases,
    ) -> None:
        self._generator = generator
        self._matrix = matrix
        self._statements = statements
        self._known = releases
        self._effects = {effect: statements.of(effect) for effect in ("blocks", "degrades")}

    def stack(self) -> Optional[Trial]:
        """Two to six packages of one day, chosen by uv."""
        generator = self._generator
        first = datetime.date.fromisoformat(_FIRST)
        last = datetime.date.fromisoformat(self._matrix.date)
        days = random.Random(0).sample(range((last - first).days + 1), _DAYS)
        day = first + datetime.timedelta(days=generator.choice(days))
        roots = generator.sample(_ROOTS, generator.randint(2, 5))
        if generator.random() < 0.1:
            roots.append(generator.choice(_ENGINES))
        roots = [name for name in roots if self._first_day(name) < day.isoformat()]
        if len(roots) < 2:
            return None
        return Trial(
            "stack", tuple(sorted(roots)), day.isoformat(), torch_of(day.isoformat()), (), ""
        )

    def _first_day(self, name: str) -> str:
        return min((release.day for release in self._known.of(name).values()), default=_FIRST)

    def pair(self, kind: str) -> Optional[Trial]:
        """Two releases of which a statement speaks, or one of them beside a neighbour."""
        effect = kind if kind in self._effects else "blocks"
        consumer, entry = self._generator.choice(self._effects[effect])
        provider = entry["provider"]
        if consumer in _BUILT or any(asked == "-" for _, asked in entry.get("with", ())):
            return None
        others = self._releases(provider)
        versions = [
            version
            for version in self._statements.measured[consumer]
            if version in span_set(entry["in"]) and version in self._known.of(consumer)
        ]
        if not versions or not others:
            return None
        version = self._end(versions)
        allowed = [other for other in others if self._allows(consumer, version, provider, other)]
        lacking = [other for other in allowed if other in span_set(entry["lacking"])]
        if kind == "allowed":
            lacking = self._neighbours(consumer, version, provider, allowed)
        if not lacking:
            return None
        other = self._end(lacking)
        torch = self._torch_asked(consumer, version)
        if torch == "other":
            return None
        days = [self._released(consumer, version), self._released(provider, other), _FIRST]
        day = _end_of_quarter(datetime.date.fromisoformat(max(days)) + datetime.timedelta(days=3))
        extra = [name for name, asked in entry.get("with", ()) if asked == ""]
        return Trial(
            kind,
            (f"{consumer}=={version}", f"{provider}=={other}", *extra),
            day.isoformat(),
            "" if provider == "torch" else torch or torch_of(day.isoformat()),
            (entry["entry"],),
            f"{entry['id']}:{consumer}",
        )

    def _torch_asked(self, name: str, version: Version) -> str:
        """The release of torch that a package is built for, "" for any, "other" for one that no
        environment has.
        """
        for asked in self._asked(name, version, "torch"):
            if asked.startswith("=="):
                torch = asked[2:].strip()
                return torch if torch in {release for _, release in TORCHES} else "other"
        return ""

    def _asked(self, name: str, version: Version, other: str) -> Iterator[str]:
        """What a release's metadata ask of another package, whatever the machine."""
        for line in self._known.of(name)[version].requires or ():
            requirement = try_requirement(line)
            if requirement is not None and requirement.name == other and not requirement.marker:
                yield requirement.specifier

    def _end(self, versions: Sequence[Version]) -> Version:
        """One of a few releases: an end of them as often as any other."""
        generator = self._generator
        if generator.random() < 0.5:
            return generator.choice((versions[0], versions[-1]))
        return generator.choice(versions)

    def _neighbours(
        self, consumer: str, version: Version, provider: str, allowed: Sequence[Version]
    ) -> List[Version]:
        """The releases beside those of which a statement speaks."""
        spoken = [
            self._statements.speaks_of(consumer, provider, version, other) for other in allowed
        ]
        return [
            other
            for number, other in enumerate(allowed)
            if not spoken[number] and any(spoken[max(0, number - 1) : number + 2])
        ]

    def _releases(self, name: str) -> List[Version]:
        """The releases of a package that are tried, oldest first."""
        if name == "torch":
            return [parse_version(release) for _, release in TORCHES]
        return [] if name in _BUILT else list(self._known.of(name))

    def _released(self, name: str, version: Version) -> str:
        published = self._known.of(name).get(version)
        return published.day if published else _FIRST

    def _allows(self, consumer: str, version: Version, provider: str, other: Version) -> bool:
        """Whether the metadata of a release admit the other; extras are not asked for."""
        return all(
            other in _parsed(asked) for asked in self._asked(consumer, version, provider) if asked
        )


def _end_of_quarter(day: datetime.date) -> datetime.date:
    """Days at which environments stand still for a while: trials of one share what they hold."""
    month = (day.month + 2) // 3 * 3
    return datetime.date(day.year, month, 31 if month in (3, 12) else 30)


def _takes_python(specifier: Optional[str]) -> bool:
    return not specifier or parse_version(f"{PYTHON}.1") in VersionSet.parse(specifier)
