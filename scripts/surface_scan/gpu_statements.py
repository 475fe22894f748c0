"""Statements about GPUs that the code of a package refuses: in C++ for every use of its kernels, in
Python under a setting that leads to the check.

The checks in Python are those of functions that people's runs come to (``starts`` of
packages.toml): what raises under ``if self.setting:``. They may ask functions of other modules, and
of torch, by release.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Collection,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from envdoctor.matrix.measured_rows import GPU

from .collect import NATIVE
from .documents import runs
from .gpu_answers import (
    CAPABILITIES,
    UNKNOWN,
    Device,
    answer_of,
    capability_of,
    is_true,
    known_answer,
    refused_spans,
    value_of,
)
from .release import Release
from .setting_checks import SettingCheck

if TYPE_CHECKING:
    from .measure import Measurement

__all__ = ["gpu_statements"]

_TORCH = "torch"


class _Refusal(NamedTuple):
    """What releases refuse in one way. gpus: compute capabilities, of a statement the first and the
    last. setting: that leads to it, "" for none. torch: its releases
    beside which they do, by place; None for all.
    """

    setting: str
    use: str
    gpus: Collection[str]
    torch: Optional[Tuple[int, ...]] = None


class _Witness(NamedTuple):
    message: str
    path: str
    line: int


def gpu_statements(measurement: Measurement, consumer: str) -> List[Dict[str, Any]]:
    """Return the statements about GPUs that releases of a package refuse."""
    releases = measurement.releases(consumer)
    refusals: Dict[_Refusal, Dict[int, _Witness]] = {}
    for number, release in enumerate(releases):
        for refusal, witness in (
            *_in_extensions(release, measurement),
            *_under_settings(release, measurement),
        ):
            for span in refused_spans(refusal.gpus):
                one = refusal._replace(gpus=tuple(span))
                refusals.setdefault(one, {}).setdefault(number, witness)
    torch = [release.archive.version for release in measurement.releases(_TORCH)]
    fixes = measurement.packages.refused_gpu.get(consumer, {})
    statements = []
    for refusal, places in refusals.items():
        statement = _statement(refusal, places, releases, torch)
        later = max(places) + 1
        if later < len(releases) and not _is_refused_from(later, refusal, refusals):
            statement["pin"] = f"{consumer}>={releases[later].archive.version}"
        elif refusal.setting in fixes:
            statement["fix"] = fixes[refusal.setting]
        statements.append(statement)
    return statements


def _is_refused_from(
    number: int, refusal: _Refusal, refusals: Mapping[_Refusal, Mapping[int, _Witness]]
) -> bool:
    """Tell whether that release or a later one refuses some of these GPUs, in whatever way."""
    first, last = map(CAPABILITIES.index, refusal.gpus)
    for other, places in refusals.items():
        since, until = map(CAPABILITIES.index, other.gpus)
        overlaps = since <= last and first <= until
        if other.setting == refusal.setting and overlaps and max(places) >= number:
            return True
    return False


def _statement(
    refusal: _Refusal,
    places: Mapping[int, _Witness],
    releases: Sequence[Release],
    torch: Sequence[str],
) -> Dict[str, Any]:
    numbers = sorted(places)
    newest = releases[numbers[-1]].archive
    asked = [[f"--{refusal.setting}", "true"]] if refusal.setting else []
    if refusal.torch is not None:
        beside = runs(torch, refusal.torch)
        asked.append([_TORCH, "||".join(f">={since},<={until}" for since, until in beside)])
    words = [refusal.setting, "with-torch" if refusal.torch is not None else ""]
    first, last = refusal.gpus
    statement: Dict[str, Any] = {
        "id": "-".join(filter(None, [f"refuses-gpus-{first}-{last}", *words])),
        "provider": GPU,
        "module": "",
        "name": "",
        "effect": "degrades",
        "verb": "refuses",
        "text": _common([witness.message for _, witness in sorted(places.items())]),
        "in": runs([release.archive.version for release in releases], numbers),
        "lacking": [[first, last]],
        "kind": "arch-missing",
        "component": newest.package,
        "archive": newest.file,
        "path": places[numbers[-1]].path,
        "line": places[numbers[-1]].line,
    }
    if refusal.use:
        statement["use"] = refusal.use
    if asked:
        statement["with"] = asked
    return statement


def _common(messages: Sequence[str]) -> str:
    """What messages of several releases begin with, in whole sentences; the newest where that is
    nothing.
    """
    begin = messages[-1]
    while not all(message.startswith(begin) for message in messages):
        begin = begin[:-1]
    if begin != messages[-1]:
        begin = begin[: begin.rfind(".") + 1]
    return begin or messages[-1]


# in C++


def _in_extensions(
    release: Release, measurement: Measurement
) -> Iterator[Tuple[_Refusal, _Witness]]:
    """Yield what the C++ of a source archive refuses, where there are several sources with such
    checks what all refuse.
    """
    checks = [
        (path, check)
        for path, key in sorted(release.archive.members.items())
        if path.endswith(NATIVE) and (check := measurement.readings.device_check(key)) is not None
    ]
    refused = frozenset(CAPABILITIES).intersection(*(check.refused for _, check in checks))
    if checks and refused:
        path, first = checks[0]
        yield _Refusal("", "", refused), _Witness(first.message, path, first.line)


# in Python


def _under_settings(
    release: Release, measurement: Measurement
) -> Iterator[Tuple[_Refusal, _Witness]]:
    """Yield what a release refuses whatever torch is there, and beside some of its releases
    alone.
    """
    starts = measurement.packages.starts.get(release.archive.package, {})
    for start, use in starts.items():
        module, _, name = start.partition(":")
        key = release.source_key(module)
        checks, switches = measurement.readings.setting_checks(key, name) if key else ((), {})
        for check in checks:
            witness = _Witness(check.message, release.path_of(module), check.line)
            asked = _Asked(check, switches, _Functions(release, module, measurement))
            for refusal in asked.refusals(measurement.releases(_TORCH)):
                yield refusal._replace(use=use), witness


class _Functions:
    """What functions answer that a module of a release calls."""

    def __init__(self, release: Release, module: str, measurement: Measurement) -> None:
        self._release = release
        self._module = module
        self._measurement = measurement
        #: Of torch, that were asked for: what they answer hangs on its release.
        self.of_torch: Set[str] = set()
        self._places: Dict[Tuple[str, str], str] = {}

    def device(self, text: str, names: Mapping[str, Any], torch: Optional[Release]) -> Device:
        """Return a GPU, with names that are known where a check stands, beside a release of
        torch.
        """

        def answer_in(release: Release, module: str, name: str) -> Any:
            """What a function answers that a module of a release has under a name in dots."""
            top = name.partition(".")[0]
            if top == _TORCH and release.archive.package != _TORCH:
                self.of_torch.add(name)
                place, _, name = name.rpartition(".")
                return UNKNOWN if torch is None else answer_in(torch, place, name)
            known = known_answer(f"{module}.{name}")
            if known is not UNKNOWN or top != name:
                return known
            place = self._definition(release, module, name)
            key = release.source_key(place) if place else ""
            function = self._measurement.readings.function(key, name) if key else None
            if function is None:
                return UNKNOWN
            inner = Device(capability, {}, lambda other: answer_in(release, place, other))
            return answer_of(function, inner)

        capability = capability_of(text)
        outer = self._release, self._module
        return Device(capability, names, lambda name: answer_in(*outer, name))

    def _definition(self, release: Release, module: str, name: str) -> str:
        if release is not self._release:
            return release.definition(module, name)
        if (module, name) not in self._places:
            self._places[module, name] = release.definition(module, name)
        return self._places[module, name]


class _Asked(NamedTuple):
    """A check with what is known where it stands."""

    check: SettingCheck
    switches: Mapping[str, bool]
    functions: _Functions

    def refusals(self, torch: Sequence[Release]) -> Iterator[_Refusal]:
        """Yield what is refused whatever torch is there, and beside some releases of it alone."""
        always = self._refused(None)
        if always:
            yield _Refusal(self.check.setting, "", always)
        by_gpus: Dict[FrozenSet[str], List[int]] = {}
        for place, release in enumerate(torch if self.functions.of_torch else ()):
            beside = self._refused(release) - always
            if beside:
                by_gpus.setdefault(beside, []).append(place)
        for gpus, places in by_gpus.items():
            yield _Refusal(self.check.setting, "", gpus, tuple(places))

    def _refused(self, torch: Optional[Release]) -> FrozenSet[str]:
        """The compute capabilities on which all tests hold; none where that is all."""
        names = {**self.switches, f"self.{self.check.setting}": True}
        refused = []
        for text in CAPABILITIES:
            device = self.functions.device(text, names, torch)
            if all(is_true(value_of(test, device)) is wanted for test, wanted in self.check.tests):
                refused.append(text)
        return frozenset(refused if len(refused) < len(CAPABILITIES) else ())
