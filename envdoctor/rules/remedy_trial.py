"""Remedies held against the environment that they would leave behind: one that does not cure, that
brings something new to be warned of, or that nothing here can install is none. Where no other is
left, why there is none is said. What was measured of two packages is cured
by the nearest release of either that cures these two and breaks nothing else.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.facts import Distribution, is_unindexed
from ..model.finding import Remedy
from ..model.requirement import try_requirement
from ..model.versions import try_version
from .built_on_torch import ways_by_torch
from .installable import (
    admitted,
    as_it_is_carried_out,
    build_of,
    label_of_index,
    refused_here,
    takes,
)
from .replaced_packages import with_packages
from .requirement_lines import meets, served_here, unconditional
from .wheel_tags import serves_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Dict,
        FrozenSet,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
    )

    from ..model.facts import Facts
    from ..model.finding import Finding
    from ..model.requirement import Requirement
    from ..model.versions import Version

__all__ = [
    "as_first",
    "environment_after",
    "is_of_line",
    "refused",
    "tried_remedies",
    "without_repeated",
]

_MOST = 24  # environments that are judged for what is no error
_MOST_NEAREST = 4  # releases of one package that are tried as the nearest cure
_MOST_MINORS = 24  # of a package that is missing, of which the last release is tried
_MOST_BUILDS = 12  # of torch
_MOST_REQUIRED = 12  # packages that an installer changes with those that are asked for
_UPGRADING = frozenset(["--force-reinstall", "--upgrade", "-U"])
#: What another build of torch cures.
_CURED_BY_BUILDS = frozenset(["ED101", "ED120", "ED123"])
#: What another release of the package that asks cures.
_OF_REQUIRERS = frozenset(["ED301", "ED304"])
_OF_LIBRARIES = "ED409"
#: What was measured of two packages, release by release.
_OF_PAIRS = ("ED308", "ED309", _OF_LIBRARIES)


def tried_remedies(
    findings: Sequence[Finding],
    facts: Facts,
    matrix: Any,
    judge: Callable[[Facts], Sequence[Finding]],
    within: Sequence[str] = (),
) -> List[Finding]:
    """Return findings whose remedies go with what else is there.

    Args:
        findings: What was found. All remedies of errors are tried, and those of warnings and
            advice while few environments were judged; what those of any finding install has to
            have a release for the Python that is there.
        facts: What was judged.
        matrix: What is known of releases.
        judge: Judges other facts in the same way.
        within: Requirements: what lines of logs ask of packages, which no facts show.
    """
    trial = _Trial(findings, facts, matrix, judge, within)
    return [_tried(finding, trial) for finding in findings]


def _tried(finding: Finding, trial: _Trial) -> Finding:
    ways = ways_by_torch(finding, trial.facts)
    if ways is not None:
        finding = finding._replace(remedies=ways)
    is_judged = finding.verdict == "violated" and trial.may_judge(finding)
    fitting: List[Remedy] = []
    others: List[Remedy] = []
    for remedy in finding.remedies:
        remedy = as_it_is_carried_out(trial.with_release(remedy), trial.facts, trial.matrix)
        objection = refused_here(remedy, trial.facts, trial.matrix)
        if not objection and is_judged:
            objection = trial.objection(remedy, finding)
        other = trial.instead(remedy, finding) if objection and is_judged else None
        if other is not None:
            fitting.append(other)
        elif objection:
            others.append(refused(remedy, objection))
        else:
            fitting.append(trial.with_torch(trial.with_bound(remedy)) if is_judged else remedy)
    if is_judged and finding.severity != "advice":
        if finding.code in _OF_REQUIRERS:
            fitting += trial.nearest_requirer(finding, beside=bool(fitting))
        build = trial.other_build(finding) if finding.code in _CURED_BY_BUILDS else None
        if build is not None:  # beside another driver, in the place of what names no release
            fitting = [*(fitting if finding.code == "ED101" else ()), build]
        row = trial.matrix.row(finding.row) if finding.row else None
        if row is not None and (not fitting or _is_of_measurement(finding, row)):
            fitting = list(trial.nearest_cures(row)) or fitting
    changed = (*map(as_first, fitting[:1]), *fitting[1:]) or tuple(others[:1])
    return finding if changed == finding.remedies else finding._replace(remedies=changed)


def without_repeated(findings: Sequence[Finding]) -> List[Finding]:
    """Return findings, what follows from another one without what that says already: its commands,
    and the words that a line of a log has for whatever may stand behind it.
    """
    roots = {finding.key: finding for finding in findings}
    return [_beside_root(finding, roots.get(finding.caused_by or "")) for finding in findings]


def _beside_root(finding: Finding, root: Optional[Finding]) -> Finding:
    offered = [] if root is None else [way for way in root.remedies if way.is_cure]
    if not offered:
        return finding
    known = {way.commands for way in offered if way.commands}
    kept = () if is_of_line(finding) else finding.remedies
    return finding._replace(remedies=tuple([way for way in kept if way.commands not in known]))


def is_of_line(finding: Finding) -> bool:
    """Tell whether a finding is what a line of a log says, and no row's."""
    return finding.code.endswith("95") and not finding.row


def as_first(remedy: Remedy) -> Remedy:
    """Return a remedy without the "Or" by which it followed one that is none."""
    beginning = next((words for words in ("Or, ", "Or ") if remedy.text.startswith(words)), "")
    text = remedy.text[len(beginning) :]
    return remedy._replace(text=f"{text[:1].upper()}{text[1:]}") if beginning else remedy


def refused(remedy: Remedy, objection: str) -> Remedy:
    """Return in the place of a remedy why it is none."""
    text = remedy.text.rstrip(".")
    words = f"{text[:1].lower()}{text[1:]}; {objection}"
    return Remedy(f"None that passes this check is known. What does not: {words}", (), "refused")


class _Trial:
    """What judges the environments that remedies leave behind, each once."""

    def __init__(
        self,
        findings: Sequence[Finding],
        facts: Facts,
        matrix: Any,
        judge: Callable[[Facts], Sequence[Finding]],
        within: Sequence[str] = (),
    ) -> None:
        self._within = [entry for line in within if (entry := try_requirement(line)) is not None]
        self.facts = facts
        self.matrix = matrix
        self._known = {finding.key for finding in findings}
        self._judge = judge
        self._judged: Dict[FrozenSet[Tuple[str, Optional[str]]], Sequence[Finding]] = {}

    def may_judge(self, finding: Finding) -> bool:
        """Tell whether the remedies of a finding are tried."""
        return finding.severity == "error" or len(self._judged) < _MOST

    def _after(self, changed: Mapping[str, Distribution]) -> Sequence[Finding]:
        """Return what is found once these are in the place of what is there."""
        key = frozenset((name, entry.version) for name, entry in changed.items())
        if key not in self._judged:
            self._judged[key] = self._judge(with_packages(self.facts, changed, "remedy"))
        return self._judged[key]

    def _brings(self, changed: Mapping[str, Distribution]) -> str:
        """Return in words the first error or warning about what was changed that was not known; ""
        for none.
        """
        for finding in self._after(changed) if changed else ():
            about = {finding.component, *finding.packages}
            is_new = _counts(finding) and finding.key not in self._known
            if is_new and not about.isdisjoint(changed):
                return f"then, though: {finding.message}"
        return ""

    def objection(self, remedy: Remedy, finding: Finding) -> str:
        """Return in words what fails, or is warned of, after a remedy and is not now, or that it
        leaves the finding as it is; "" for nothing.
        """
        changed = _changed(remedy, self.facts, self.matrix)
        if not changed:
            return ""
        torch = self.facts.value("distributions", {}).get("torch")
        if "torch" in changed and torch is not None and is_unindexed(torch):
            return f"it replaces torch {torch.version}, {build_of(self.facts)}."
        wanted = self._taken_away(changed)
        if wanted:
            return wanted
        brought = self._brings(changed)
        if brought:
            return brought
        stays = any(
            entry.key == finding.key and entry.verdict == "violated"
            for entry in self._after(changed)
            if _counts(entry) or not _counts(finding)
        )
        return "what is said here would hold all the same." if stays else ""

    def _taken_away(self, changed: Mapping[str, Distribution]) -> str:
        """Return in words what a text itself asks an installer for and a change takes away; "" for
        nothing.
        """
        asked = self.facts.value("report.asked", {})
        there = self.facts.value("distributions", {})
        for name in changed.keys() & asked.keys():
            before = try_version(there[name].version) if name in there else None
            after = try_version(changed[name].version)
            is_met = before is None or meets(before, asked[name]) is not False
            if is_met and after is not None and meets(after, asked[name]) is False:
                return f"the text itself asks for {name}{asked[name]}."
        return (
            self._asked_by_lines(changed)
            or self._asked_by_text(changed)
            or self._model_taken_away(changed)
        )

    def _asked_by_text(self, changed: Mapping[str, Distribution]) -> str:
        """Return in words what a text says that a package of it requires, which holds now and not
        after a change; "" for nothing.
        """
        there = self.facts.value("distributions", {})
        for requirer, lines in self.facts.value("report.asked_otherwise", {}).items():
            for asked in map(try_requirement, lines.split(", ")):
                if asked is None or asked.name not in changed or requirer in changed:
                    continue
                before = try_version(there[asked.name].version) if asked.name in there else None
                after = try_version(changed[asked.name].version)
                if before is None or meets(before, asked.specifier) is not True:
                    continue
                if after is not None and meets(after, asked.specifier) is False:
                    return f"the text says that {asked.name}{asked.specifier} is required."
        return ""

    def _asked_by_lines(self, changed: Mapping[str, Distribution]) -> str:
        """Return in words what a line of a log asks of a release that is not so; "" for nothing.
        Where who asks for the package changes with it, it may do without.
        """
        for asked in self._within:
            after = try_version(changed[asked.name].version) if asked.name in changed else None
            if after is None or meets(after, asked.specifier) is not False:
                continue
            others = [entry for name, entry in changed.items() if name != asked.name]
            if not any(self._requires(entry, asked.name) for entry in others):
                return f"the line of the log asks for {asked.name}{asked.specifier}."
        return ""

    def _requires(self, entry: Distribution, name: str) -> bool:
        return any(asked.name == name for asked in unconditional(entry, self.facts, self.matrix))

    def _model_taken_away(self, changed: Mapping[str, Distribution]) -> str:
        """Return in words that a release does not know the model that is run, "" where it does;
        what another package brings of a model counts where that is there.
        """
        run = self.facts.value("request")
        family = (run.setting("model_family") or "") if run is not None else ""
        there = self.facts.value("distributions", {})
        rows = self.matrix.rows_of_family(family, changed) if family else ()
        for row in rows:
            release, _, *own = row.terms
            before, after = (
                try_version(entries[release.component].version)
                if release.component in entries
                else None
                for entries in (there, changed)
            )
            if row.effect == "note" or any(term.component in there for term in own):
                continue
            if after in release.argument and before not in release.argument:
                return f"then, though: {row.title}, which is run here."
        return ""

    def instead(self, remedy: Remedy, finding: Finding) -> Optional[Remedy]:
        """Return what cures in the place of a remedy that does not; None where nothing is known."""
        return self.within_all(remedy, finding) or self.beyond(remedy, finding)

    def beyond(self, remedy: Remedy, finding: Finding) -> Optional[Remedy]:
        """Return the remedy with the next release that cures, where the nearest does not or brings
        something else: of each minor behind it the last.
        """
        call = remedy.commands[0] if len(remedy.commands) == 1 else None
        if not isinstance(call, InstallerCall) or len(call.packages) != 1:
            return None
        changed = _changed(remedy, self.facts, self.matrix)
        requirement = try_requirement(call.packages[0])
        if requirement is None or requirement.name not in changed:
            return None
        nearest = try_version(changed[requirement.name].version)
        last = {
            version.release[:2]: version
            for version in admitted(self.matrix.package(requirement.name), requirement.specifier)
            if nearest is not None and version > nearest
        }
        for version in list(last.values())[:_MOST_NEAREST]:
            exact = call._replace(packages=(f"{requirement.name}=={version}",))
            other = remedy._replace(commands=(exact,))
            fails = self.objection(other, finding)
            if not fails and not refused_here(other, self.facts, self.matrix):
                text = f"{remedy.text.rstrip('.')}: {requirement.name} {version}, the nearest that"
                return other._replace(text=f"{text} brings nothing else.")
        return None

    def within_all(self, remedy: Remedy, finding: Finding) -> Optional[Remedy]:
        """Return in the place of what one line of a log asks for the nearest release that all of
        its lines ask for; None where there is none, or it does not cure.
        """
        call = remedy.commands[0] if len(remedy.commands) == 1 else None
        if not isinstance(call, InstallerCall) or len(call.packages) != 1:
            return None
        asked = try_requirement(call.packages[0])
        if asked is None or not is_of_line(finding):
            return None
        lines = [entry.specifier for entry in self._within if entry.name == asked.name]
        package = self.matrix.package(asked.name)
        there = try_version(self.facts.version_of(asked.name))
        fitting = admitted(package, ",".join(lines)) if len(lines) > 1 else []
        if there is not None:
            fitting = [entry for entry in _by_distance(package, there, None) if entry in fitting]
        else:
            fitting = list(reversed(fitting))
        for release in fitting[:_MOST_NEAREST]:
            other = _exactly(asked.name, release, "")
            fails = self.objection(other, finding)
            if not fails and not refused_here(other, self.facts, self.matrix):
                words = f"{other.text.rstrip('.')}, which has all that lines of the log ask for."
                return other._replace(text=words)
        return None

    def with_release(self, remedy: Remedy) -> Remedy:
        """Return a remedy that installs what is not there in the release that goes with what is:
        of each minor the last, the newest with which nothing new is said.
        """
        call = remedy.commands[0] if len(remedy.commands) == 1 else None
        if not isinstance(call, InstallerCall) or call.action != "install" or call.options:
            return remedy
        requirement = try_requirement(call.packages[0]) if len(call.packages) == 1 else None
        there = self.facts.value("distributions", {})
        if requirement is None or requirement.specifier or requirement.name in there or not there:
            return remedy
        package = self.matrix.package(requirement.name)
        served = [
            version
            for version in admitted(package, "")
            if serves_platform(package.release(version), self.facts)
            and _is_for_python(package.release(version), self.facts)
        ]
        last = list({version.release[:2]: version for version in served}.values())
        for version in last[: -_MOST_MINORS - 1 : -1]:
            added = {requirement.name: Distribution(requirement.name, str(version))}
            if not self._brings(_with_requirements(added, (), self.facts, self.matrix)):
                if version == last[-1]:
                    return remedy
                exact = call._replace(packages=(f"{requirement.name}=={version}",))
                words = f": {version} is the newest that goes with what is here."
                return remedy._replace(text=remedy.text.rstrip(".") + words, commands=(exact,))
        return remedy

    def with_bound(self, remedy: Remedy) -> Remedy:
        """Return a remedy that fits as what an installer makes of it: where the newest release that
        it admits would break something and the nearest does not, the nearest; where what is beside
        it is not all known, none of a major that came after the nearest.
        """
        nearest = _changed(remedy, self.facts, self.matrix)
        newest = _changed(remedy, self.facts, self.matrix, newest=True)
        if not nearest or nearest == newest or len(remedy.commands) != 1:
            return remedy
        call = remedy.commands[0]
        if not isinstance(call, InstallerCall):
            return remedy
        if self.facts.value("distributions.complete") is not True:
            packages = tuple([_within_major(line, nearest, newest) for line in call.packages])
            if packages != call.packages:
                words = remedy.text
                for before, after in zip(call.packages, packages):
                    words = words.replace(before, after)
                bounded = remedy._replace(text=words, commands=(call._replace(packages=packages),))
                return self.with_bound(bounded)
        if not self._brings(newest):
            return remedy
        asked = [entry.name for line in call.packages if (entry := try_requirement(line))]
        if not nearest.keys() >= set(asked) or len(asked) != len(call.packages):
            return remedy
        exact = {name: f"{name}=={nearest[name].version}" for name in asked}
        releases = ", ".join(f"{name} {nearest[name].version}" for name in sorted(asked))
        return remedy._replace(
            text=f"{remedy.text.rstrip('.')}: {releases}; newer ones break something else here.",
            commands=(call._replace(packages=tuple(exact.values())),),
        )

    def with_torch(self, remedy: Remedy) -> Remedy:
        """Return a remedy with the torch that an installer brings in the place of the one that is
        there, since what it installs pins it: all that is compiled for torch hangs on that.
        """
        call = remedy.commands[0] if len(remedy.commands) == 1 else None
        torch = _changed(remedy, self.facts, self.matrix).get("torch")
        if torch is None or not isinstance(call, InstallerCall) or call.options or call.indexes:
            return remedy
        asked = [entry.name for line in call.packages if (entry := try_requirement(line))]
        if "torch" in asked:
            return remedy
        named = call._replace(packages=(*call.packages, f"torch=={torch.version}"))
        words = f"{remedy.text.rstrip('.')}, with torch {torch.version}, which it pins."
        return remedy._replace(text=words, commands=(named,))

    def other_build(self, finding: Finding) -> Optional[Remedy]:
        """Return the first other build of torch that cures a finding and brings nothing."""
        from .other_builds import other_builds

        for remedy in other_builds(finding, self.facts, self.matrix)[:_MOST_BUILDS]:
            remedy = as_it_is_carried_out(remedy, self.facts, self.matrix)
            if not self._fails(remedy, lambda entry: entry.key == finding.key):
                return remedy
        return None

    def nearest_cures(self, row: Any) -> Iterator[Remedy]:
        """Yield for each package of a row the nearest release that the row does not speak of, with
        which nothing is said against the pair any more and nothing else fails.
        """
        installed = self.facts.value("distributions", {})
        pair = frozenset(row.packages[:2])
        stays = ""
        # A library that is too old is changed before what is linked to it.
        linked = row.code == _OF_LIBRARIES
        for term in sorted(row.terms, key=lambda term: linked and term.component != row.component):
            there = installed.get(term.component)
            version = try_version(there.version) if there is not None else None
            if (term.scope, term.attribute, term.operator) != ("env", "version", "in"):
                continue
            if version is None or version not in term.argument:
                continue
            newer = _is_to_be_newer(row, term.component)
            end = term.argument.intervals[-1][1]
            if newer and end is not None and self.matrix.package(term.component) is None:
                yield _from(term.component, end, stays)
                stays = term.component
                continue
            releases = _by_distance(self.matrix.package(term.component), version, newer)
            bound = _bound_of_fix(row, term.component)
            fitting = [
                release
                for release in releases
                if release not in term.argument and meets(release, bound) is not False
            ]
            # Of a release that was published anew the last.
            fitting = list({release.release: release for release in fitting}.values())
            for release in fitting[:_MOST_NEAREST]:
                remedy = _exactly(term.component, release, stays)
                if not self._fails(remedy, lambda entry: _is_about(entry, pair)):
                    yield remedy
                    stays = term.component
                    break

    def nearest_requirer(self, finding: Finding, beside: bool) -> List[Remedy]:
        """Return the nearest release of the one that asks for another release, and takes the one
        that is there; beside: another way is there, too.
        """
        requirers = [name for name in finding.packages if name != finding.component]
        installed = self.facts.value("distributions", {})
        there, other = (
            installed.get(requirers[0]) if requirers else None,
            installed.get(finding.component),
        )
        version = try_version(there.version) if there is not None else None
        wanted = try_version(other.version) if other is not None else None
        package = self.matrix.package(requirers[0]) if len(requirers) == 1 else None
        if version is None or wanted is None or package is None:
            return []
        of_other = self.matrix.package(finding.component)
        known_other = of_other.release(wanted) if of_other is not None else None
        day = known_other.released if known_other is not None else None
        if not day:
            return []
        fitting = [
            release
            for release in _by_distance(package, version, None)
            # An old release that bounds nothing did not know of what came after it.
            if (package.release(release).released or "") >= day
            and takes(served_here(package.release(release), self.facts), finding.component, wanted)
        ]
        for release in fitting[:2]:
            remedy = _exactly(requirers[0], release, finding.component if beside else "")
            if not self._fails(remedy, lambda entry: entry.key == finding.key):
                return [remedy]
        return self._both_moved(finding, requirers[0], version, wanted)

    def _both_moved(
        self, finding: Finding, requirer: str, version: Version, wanted: Version
    ) -> List[Remedy]:
        """Return the next release of the one that asks with a release of the other one that both it
        and the text itself ask for, as one command.
        """
        asked = self.facts.value("report.asked", {}).get(finding.component, "")
        package = self.matrix.package(requirer)
        newer = _by_distance(package, version, True) if asked else []
        of_other = admitted(self.matrix.package(finding.component), asked)
        for release in newer[:_MOST_NEAREST]:
            served = served_here(package.release(release), self.facts)
            fitting = [entry for entry in of_other if takes(served, finding.component, entry)]
            fitting = [entry for entry in fitting if entry > wanted] or fitting[-1:]
            if not fitting:
                continue
            both = (f"{requirer}=={release}", f"{finding.component}=={fitting[0]}")
            text = f"Install {requirer} {release} with {finding.component} {fitting[0]}: it takes "
            remedy = Remedy(
                f"{text}what the text asks for, {finding.component}{asked}.",
                (InstallerCall("install", both),),
            )
            if not self._fails(remedy, lambda entry: entry.key == finding.key):
                return [remedy]
        return []

    def _fails(self, remedy: Remedy, is_that: Callable[[Finding], bool]) -> bool:
        """Tell whether a remedy leaves what it is to cure, brings something, or cannot be carried
        out here.
        """
        changed = _changed(remedy, self.facts, self.matrix)
        after = self._after(changed) if changed else ()
        return (
            any(map(is_that, after))
            or bool(self._taken_away(changed))
            or bool(self._brings(changed))
            or bool(refused_here(remedy, self.facts, self.matrix))
        )


def _is_of_measurement(finding: Finding, row: Any) -> bool:
    """Tell whether the remedies of a finding are no more than what the measurement of a pair names:
    a bound for all releases, not the next one of these two.
    """
    return finding.code in _OF_PAIRS and all(
        remedy.text == row.fix for remedy in finding.remedies if remedy.commands
    )


def _bound_of_fix(row: Any, name: str) -> str:
    """Return what somebody who wrote a row says of the releases that cure it; "" for nothing, and
    where a measurement names one bound for all releases.
    """
    pins = map(try_requirement, () if row.origin == "derived" else row.pins)
    return next((pin.specifier for pin in pins if pin is not None and pin.name == name), "")


def _is_about(finding: Finding, pair: FrozenSet[str]) -> bool:
    """Tell whether a finding says that these packages do not go together."""
    return _counts(finding) and pair <= {finding.component, *finding.packages}


def _exactly(name: str, release: Version, stays: str) -> Remedy:
    """Return the remedy that installs one release; stays: what another remedy changes instead."""
    words = f"Or, where {stays} has to stay, install" if stays else "Install"
    call = InstallerCall("install", (f"{name}=={release}",))
    return Remedy(f"{words} {name} {release}.", (call,))


def _from(name: str, end: Version, stays: str) -> Remedy:
    """Return the remedy that installs what comes behind a range, of a package whose releases are
    not known.
    """
    first = ".".join(map(str, end.release))
    words = f"Or, where {stays} has to stay, install" if stays else "Install"
    call = InstallerCall("install", (f"{name}>={first}",))
    return Remedy(f"{words} {name} {first} or newer.", (call,))


def _is_to_be_newer(row: Any, name: str) -> Optional[bool]:
    """Tell on which side of what is there a package of a row is well, None for either: newer where
    it is too old, or where the other one is too new for it.
    """
    if row.kind not in ("too-old", "too-new"):
        return None
    return bool((row.kind == "too-old") == (name == row.component))


def _by_distance(package: Any, version: Version, newer: Optional[bool]) -> List[Version]:
    """Return the final releases beside a version, those next to it first.

    newer: on which side they are; None for both, a newer one before an older one that is as far.
    """
    finals = [entry for entry in package.versions if not entry.is_prerelease] if package else []
    sides: List[Tuple[int, Version]] = []
    if newer is not False:
        above = [entry for entry in finals if entry > version]
        sides += [(2 * place, entry) for place, entry in enumerate(above)]
    if newer is not True:
        below = [entry for entry in reversed(finals) if entry < version]
        sides += [(2 * place + 1, entry) for place, entry in enumerate(below)]
    return [entry for _, entry in sorted(sides)]


def environment_after(remedy: Remedy, facts: Facts, matrix: Any) -> Optional[Facts]:
    """Return facts as a remedy leaves them; None where it changes nothing that is there."""
    changed = _changed(remedy, facts, matrix)
    return with_packages(facts, changed, "remedy") if changed else None


def _counts(finding: Finding) -> bool:
    """Tell whether a finding is an error or a warning."""
    return finding.verdict == "violated" and finding.severity != "advice"


def _changed(
    remedy: Remedy, facts: Facts, matrix: Any, newest: bool = False
) -> Dict[str, Distribution]:
    """Return what a remedy installs over what is there, each at the nearest release, or at the
    newest, and what an installer changes with it.
    """
    before = facts.value("distributions", {})
    changed: Dict[str, Distribution] = {}
    alone: List[Distribution] = []
    for call in remedy.commands:
        if not isinstance(call, InstallerCall) or call.action != "install":
            continue
        for line in call.packages:
            requirement = try_requirement(line)
            if requirement is None or not requirement.specifier:
                continue
            # What a text does not name is there in the release that a remedy leaves of it.
            there = before.get(requirement.name) or Distribution(requirement.name, None)
            if _stays(there, requirement, call):
                continue
            version = None if newest else there.version
            release = _nearest(
                matrix, requirement.name, requirement.specifier, version, newest, facts
            )
            if release is not None:
                installed = _released(there, release, label_of_index(call))
                changed[there.name] = installed
                alone += [installed] if "--no-deps" in call.options else []
    return _with_requirements(changed, alone, facts, matrix)


def _within_major(
    line: str, nearest: Mapping[str, Distribution], newest: Mapping[str, Distribution]
) -> str:
    """Return a requirement without an upper end as one that ends with the major of the nearest
    release, where an installer would take a later one.
    """
    requirement = try_requirement(line)
    name, asked = (requirement.name, requirement.specifier) if requirement is not None else ("", "")
    if not asked.startswith(">") or "," in asked or name not in nearest or name not in newest:
        return line
    near, far = try_version(nearest[name].version), try_version(newest[name].version)
    if near is None or far is None or near.release[0] >= far.release[0]:
        return line
    return f"{line},<{near.release[0] + 1}"


def _released(there: Distribution, release: Version, label: str = "") -> Distribution:
    return there._replace(
        version=f"{release}{label}", requires=None, constraint="", tags=(), build=""
    )


def _with_requirements(
    changed: Dict[str, Distribution], alone: Sequence[Distribution], facts: Facts, matrix: Any
) -> Dict[str, Distribution]:
    """Return what an installer changes: what is asked for and, of what is there, what that
    requires in another release, the newest that meets it. alone: whose requirements do not count.
    """
    after = dict(changed)
    waiting = [entry for entry in changed.values() if entry not in alone]
    known = facts.value("distributions", {})
    while waiting and len(after) < len(changed) + _MOST_REQUIRED:
        for requirement in unconditional(waiting.pop(0), facts, matrix):
            there = known.get(requirement.name)
            if there is None or requirement.name in after or not requirement.specifier:
                continue
            version = try_version(there.version)
            if version is None or meets(version, requirement.specifier) is not False:
                continue
            release = _nearest(matrix, requirement.name, requirement.specifier, None, True, facts)
            if release is not None:
                after[there.name] = _released(there, release)
                waiting.append(after[there.name])
    return after


def _stays(there: Distribution, requirement: Requirement, call: InstallerCall) -> bool:
    """Tell whether an installer leaves what is there, since it meets what is asked for."""
    version = try_version(there.version)
    if version is None or meets(version, requirement.specifier) is not True:
        return False
    if "--force-reinstall" in call.options:
        return False
    return requirement.specifier.startswith("==") or not _UPGRADING.intersection(call.options)


def _nearest(
    matrix: Any, name: str, specifier: str, version: Optional[str], newest: bool, facts: Facts
) -> Optional[Version]:
    """Return the release in a range that is the nearest to a version: the next newer one, else the
    next older one; of a version that is not known the one at the end that the range begins with.
    newest: the one that an installer takes. Those that are for another Python count where no other
    is.
    """
    package = matrix.package(name)
    every = admitted(package, specifier)
    fitting = [entry for entry in every if _is_for_python(package.release(entry), facts)] or every
    here = try_version(version)
    if newest:
        return fitting[-1] if fitting else None
    if here is None:
        is_open = specifier.startswith(">") and "<=" not in specifier
        fitting = fitting[:1] if is_open else fitting
    newer = [entry for entry in fitting if here is not None and entry >= here]
    return newer[0] if newer else fitting[-1] if fitting else None


def _is_for_python(release: Any, facts: Facts) -> bool:
    python = try_version(facts.value("python.version"))
    asked = served_here(release, facts).requires_python
    return python is None or not asked or meets(python, asked) is not False
