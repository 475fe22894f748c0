"""A workload as facts, so that the rows of the matrix that ask for launch settings or an engine's
version can be bound to it.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ...intake.model_names import with_family
from ...model.evidence import Evidence, Fact, Known
from ...model.facts import Distribution, Facts
from ...model.versions import VersionSet, try_version
from ...model.workload import Workload

__all__ = ["with_workload"]

#: Releases of a framework that ask the engine for n samples of a prompt, where not all do; the
#: others repeat the prompt and ask for one. Read in the wheels of verl 0.3.0.post1, 0.4.1 and
#: 0.5.0, TRL 0.15.2 and 0.16.0, and in OpenRLHF 0.5.0 to 0.9.0.
_ENGINE_SAMPLES: Mapping[str, VersionSet] = {
    "verl": VersionSet.parse("<0.5"),
    "trl": VersionSet.parse(">=0.16"),
    "openrlhf": VersionSet([]),
}


def _engine_samples(workload: Workload) -> bool:
    """Tell whether the rollout's n is known to be the engine's."""
    releases = _ENGINE_SAMPLES.get(str(workload.value("framework")))
    version = try_version(str(workload.value("framework.version") or ""))
    return releases is None or (version is not None and version in releases)


def _engine_flags(workload: Workload) -> Dict[str, str]:
    """Return the launch settings of the engine that are another thing than the run's own: n, where
    the framework leaves the samples of a prompt to it, and sleep mode for any of its levels.
    """
    flags: Dict[str, str] = {}
    samples = workload.value("rollout.n")
    if samples is not None and _engine_samples(workload):
        flags["n"] = str(samples)
    if workload.value("rollout.sleep_level"):
        flags["enable_sleep_mode"] = "true"
    return flags


def with_workload(facts: Facts, workload: Workload) -> Facts:
    """Return the facts with what a run asks for: launch settings, its variables, and its engine
    where the script pins one.
    """
    place = workload.place("framework") or Evidence("the configuration")
    run = with_family(workload.updated({}, _engine_flags(workload)))
    stated = facts.value("request")
    table: Dict[str, Fact[Any]] = {
        "request": Known(run if stated is None else run.over(stated), Evidence(place.source))
    }
    variables = workload.value("variables")
    if variables:
        table["variables"] = Known(
            {**(facts.value("variables") or {}), **variables}, workload.place("variables") or place
        )
    engine = _pinned_engine(workload, place)
    if engine is not None and facts.version_of(engine.name) is None:
        table["distributions"] = Known(
            {**(facts.value("distributions") or {}), engine.name: engine},
            facts.evidence("distributions") or place,
        )
    return facts.updated(table)


def _pinned_engine(workload: Workload, place: Evidence) -> Optional[Distribution]:
    """Return the engine in the version that the script pins or installs."""
    name, version = workload.value("rollout.engine"), workload.value("rollout.version")
    if not name or not version:
        return None
    return Distribution(
        name, str(version), location=str(workload.place("rollout.version") or place)
    )
