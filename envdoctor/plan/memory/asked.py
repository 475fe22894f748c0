"""A workload as facts, so that the rows of the matrix that ask for launch settings or an engine's
version can be bound to it.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ...model.evidence import Evidence, Fact, Known
from ...model.facts import Distribution, Facts
from ...model.versions import VersionSet, try_version
from ...model.workload import Workload

__all__ = ["with_workload"]

#: Fields and the launch settings that rows and rules know them by.
_SETTINGS: Mapping[str, str] = {
    "rollout.tensor_parallel": "tensor_parallel_size",
    "rollout.enforce_eager": "enforce_eager",
    "rollout.free_cache_engine": "free_cache_engine",
    "rollout.load_format": "load_format",
    "nodes": "num_nodes",
}
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


def with_workload(facts: Facts, workload: Workload) -> Facts:
    """Return the facts with what a run asks for: launch settings, its variables, and its engine
    where the script pins one.
    """
    request: Dict[str, str] = dict(facts.value("request") or {})
    for field, name in _SETTINGS.items():
        value = workload.value(field)
        if value is not None:
            request[name] = str(value)
    samples = workload.value("rollout.n")
    if samples is not None and _engine_samples(workload):
        request["n"] = str(samples)
    level, v1 = workload.value("rollout.sleep_level"), workload.value("rollout.v1")
    if level:
        request["enable_sleep_mode"] = "true"
    if v1 is not None:
        request["engine"] = "V1" if v1 else "V0"
    place = workload.place("framework") or Evidence("the configuration")
    table: Dict[str, Fact[Any]] = {"request": Known(request, Evidence(place.source))}
    variables = workload.value("variables")
    if variables:
        table["variables"] = Known(
            {**(facts.value("variables") or {}), **variables}, workload.place("variables") or place
        )
    engine, version = workload.value("rollout.engine"), workload.value("rollout.version")
    if engine and version and facts.version_of(engine) is None:
        known = dict(facts.value("distributions") or {})
        known[engine] = Distribution(
            engine, str(version), location=str(workload.place("rollout.version") or place)
        )
        table["distributions"] = Known(known, facts.evidence("distributions") or place)
    return facts.updated(table)
