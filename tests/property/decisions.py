"""What is decided on the scenarios of the tests: verdicts, repairs and locks, without their words.

    python -m tests.property.decisions plain|silenced [STEP]

prints it as JSON, of every STEP-th scenario of each kind. Silenced, every sentence that the program
makes is replaced by "x" where it is made: the messages of findings, the texts of remedies, reasons
and causes, details of evidence, quotes of sources, titles and fixes of rows, notes of tables; and
commands, gaps and lines as words.
"""

from __future__ import annotations

import json
import random
import sys
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, Dict, List

ROOT = Path(__file__).resolve().parent.parent.parent
#: Random environments of which some need another Python, and some have copies to give up.
ENVIRONMENTS = (3, 8, 21, 23, 52)

#: Module, record, its members that hold sentences; a module stands behind those that it imports.
SENTENCES = (
    ("envdoctor.model.evidence", "Evidence", ("detail",)),
    ("envdoctor.model.evidence", "Unknown", ("reason",)),
    ("envdoctor.model.row", "Source", ("quote",)),
    ("envdoctor.model.row", "Row", ("title", "fix", "established_by")),
    ("envdoctor.model.facts", "Oddity", ("detail",)),
    ("envdoctor.model.facts", "HealthFailure", ("reason",)),
    ("envdoctor.model.finding", "Remedy", ("text",)),
    ("envdoctor.model.finding", "Finding", ("message", "title")),
    ("envdoctor.model.request", "SourceStep", ("note",)),
    ("envdoctor.model.resolution", "Reason", ("text",)),
    ("envdoctor.model.resolution", "Override", ("title",)),
    ("envdoctor.model.resolution", "Statement", ("text",)),
    ("envdoctor.model.workload", "ConfigurationProblem", ("message",)),
    ("envdoctor.model.memory_plan", "MemoryTerm", ("formula", "note")),
    ("envdoctor.model.memory_plan", "Lever", ("price",)),
    ("envdoctor.matrix.tables", "Build", ("source",)),
    ("envdoctor.matrix.curated", "Model", ("note",)),
    ("envdoctor.lock.solver.problem", "Why", ("text",)),
)

#: Values that are worded where they are printed.
WORDED = (
    ("envdoctor.model.calls", "InstallerCall"),
    ("envdoctor.model.calls", "OwnCall"),
    ("envdoctor.model.finding", "Gap"),
    ("envdoctor.model.line", "TextLine"),
)


def silence() -> None:
    """Let the records be made with "x" for every sentence; before anything else imports them."""
    for module, name, members in SENTENCES:
        if module.startswith("envdoctor.lock"):
            import envdoctor.lock.solver.candidates  # noqa: F401 - what stands before it
        place = import_module(module)
        setattr(place, name, _silenced(getattr(place, name), members))
        if name == "Unknown":  # one is made where the module is
            place.FactTable.missing = place.Unknown("not read")
    from envdoctor.rules.tool import fault_finding

    for module, name in WORDED:
        getattr(import_module(module), name).__str__ = lambda _: "x"
    finding = fault_finding("check", ValueError("a sentence"))
    assert (finding.message, finding.remedies[0].text) == ("x", "x")


def _silenced(record: Any, members: Any) -> Any:
    places = [record._fields.index(member) for member in members]

    def without_words(made: Any) -> Any:
        values = list(made)
        for place in places:
            values[place] = "x" if values[place] else values[place]
        return tuple.__new__(type(made), values)

    class Silenced(record):  # type: ignore[misc]
        __slots__ = ()

        def __new__(cls, *values: Any, **named: Any) -> Any:
            return without_words(super().__new__(cls, *values, **named))

        def _replace(self, **changes: Any) -> Any:
            return without_words(super()._replace(**changes))

    Silenced.__name__, Silenced.__qualname__ = record.__name__, record.__qualname__
    Silenced.__annotations__ = record.__annotations__
    return Silenced


# --------------------------------------------------------------------------------------------------
# what is decided


def decisions(step: int = 1) -> Dict[str, Any]:
    """Return what is decided of every ``step``-th scenario of each kind, by their names."""
    from envdoctor.matrix.loader import load_matrix

    matrix = load_matrix()
    return {
        **_verdicts(matrix, step),
        **_machines(matrix),
        **_locks(matrix, step),
        **_repairs(matrix, step),
        **_plans(matrix, step),
    }


def _finding(finding: Any) -> List[Any]:
    return [
        finding.key,
        finding.kind,
        finding.severity,
        finding.verdict,
        finding.caused_by,
        finding.row,
        list(finding.rows),
        list(finding.packages),
        finding.missing,
        finding.effect,
        [list(remedy.commands) for remedy in finding.remedies],
    ]


def _machines(matrix: Any) -> Dict[str, Any]:
    """What no case has: a probe that failed, files that were altered, nodes that differ."""
    from envdoctor.model.evidence import Evidence, Known, Unknown
    from envdoctor.model.facts import (
        Distribution,
        Facts,
        HealthFailure,
        Library,
        LockOverride,
        Oddity,
        ShadowedModule,
        Xid,
    )
    from envdoctor.rules import judge

    def node(name: str, *changes: Any) -> Any:
        here = Evidence("test", "as it was read")
        listed = {
            entry.name: entry
            for entry in (
                Distribution("torch", "2.6.0", "/site/torch-2.6.0.dist-info"),
                Distribution("vllm", "0.8.5", "/site/v", requires=("torch==2.5.1", "ray>=2.43")),
                Distribution("transformers", "4.46.0", "/site/t", requires=("tokenizers<0.21",)),
                Distribution("tokenizers", "0.21.0", "/site/tokenizers"),
                Distribution("ray", "2.40.0", "/site/ray", requires_python=">=3.9,<3.12"),
            )
        }
        failed = Unknown("NVML: crashed with SIGSEGV", "nvidia")
        oddities = (
            Oddity("altered-files", "torch", "/site", "1 of 9 files: libtorch.so", True),
            Oddity("missing-files", "ray", "/site", "1 of 9 files: ray/data.txt"),
        )
        failures = (
            HealthFailure("dcgm", "memory of GPU 3", "1 DBE"),
            HealthFailure("dcgm", "software of GPU 0", "persistence mode is off", True),
        )
        soname, wheel = "libnvJitLink.so.12", "nvidia-nvjitlink-cu12"
        libraries = (
            Library("libnvJitLink", soname, "/cuda/lib/x", "12.1.105", "LD_LIBRARY_PATH"),
            Library("libnvJitLink", soname, "/s/x", "12.4.127", "wheel", False, "", wheel),
        )
        return Facts(
            {
                "libraries": Known(libraries, here),
                "shadowed_modules": Known((ShadowedModule("ray", "/job/ray.py"),), here),
                "python.working_directory": Known("/job", here),
                "lock.overrides": Known((LockOverride("vllm", "torch", "2.6.0", "row"),), here),
                "gpus.xids": Known((Xid("0000:18:00", 79, 2), Xid("0000:18:00", 31, 1)), here),
                "health.failures": Known(failures, here),
                "node.name": Known(name, here),
                "python.version": Known("3.12.4", here),
                "distributions": Known(listed, here),
                "distributions.complete": Known(True, here),
                "distributions.oddities": Known(oddities, here),
                "driver.nvml_error": failed,
                "driver.release": Known("550.54.15", here),
                **dict(changes),
            }
        )

    first = node("a")
    second = node("b", ("driver.release", Known("535.129.03", Evidence("test"))))
    return {
        f"machine {nodes[0].value('node.name')} of {len(nodes)}": [
            _finding(finding)
            for finding in judge(nodes[0], matrix, nodes=nodes, today=str(matrix.date))
        ]
        for nodes in ((first,), (second, first))
    }


def _verdicts(matrix: Any, step: int) -> Dict[str, Any]:
    loader = SourceFileLoader("score_cases", str(ROOT / "scripts" / "score_cases"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    score = module_from_spec(spec)
    sys.modules[loader.name] = score
    loader.exec_module(score)
    table = {}
    for name in ("public", "own", "logs"):
        cases = score.read_cases(str(ROOT / "tests" / "data" / "cases" / f"{name}.jsonl"))
        for case in cases[::step]:
            facts = score.facts_of(case, matrix)
            table[f"{name} {case['id']}"] = [
                _finding(finding)
                for with_log in (False, True)
                for finding in score.found_in(case, facts, matrix, with_log)
            ]
    return table


def _locks(matrix: Any, step: int) -> Dict[str, Any]:
    from envdoctor.intake.assumptions import parse_assumptions
    from envdoctor.lock.emit.requirements_txt import render
    from envdoctor.lock.solver import resolve
    from envdoctor.model.facts import Facts
    from envdoctor.model.request import Request, parse_root
    from envdoctor.model.resolution import Explanation

    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    text = (ROOT / "tests" / "data" / "scenarios" / "solver.toml").read_text(encoding="utf-8")
    nightly = {
        "name": "a release of which there are nightly builds, on a driver that would want these",
        "requests": ["torch==2.15.0"],
        "python": "3.12",
        "allow_index": ["pytorch"],
        "targets": [["gpu=H100", "nvidia-driver=560.35.03"]],
    }
    table: Dict[str, Any] = {}
    for scenario in [*tomllib.loads(text)["scenario"][::step], nightly]:
        request = Request(
            tuple(map(parse_root, scenario["requests"])),
            scenario["python"],
            as_of=scenario.get("as_of"),
            allow_index=tuple(scenario.get("allow_index", ())),
        )
        targets = [Facts(parse_assumptions(assumed)) for assumed in scenario.get("targets", [[]])]
        resolution = resolve(request, targets, matrix)
        if isinstance(resolution, Explanation):
            table[scenario["name"]] = [
                [[cause.kind, cause.row, cause.requirement] for cause in resolution.causes],
                len(resolution.ways_out),
            ]
            continue
        table[scenario["name"]] = [
            [
                [
                    *(pin.name, str(pin.version), pin.index_name, pin.from_source),
                    [[reason.kind, reason.row, reason.requirer] for reason in pin.reasons],
                ]
                for pin in resolution.pins
            ],
            [
                [entry.requirer, entry.name, entry.version, entry.row]
                for entry in resolution.overrides
            ],
            dict(resolution.settings),
            [reason.row for reason in resolution.warnings],
            resolution.requires,
            len(render(resolution, "0").splitlines()),
        ]
        if scenario["name"].startswith("S3"):
            table["a newer torch"] = _story(resolution, "torch", matrix)
    return table


def _story(found: Any, name: str, matrix: Any) -> List[Any]:
    """Why a lock that was written and read again pins what it pins, and no newer release."""
    from envdoctor.intake.lock_reader import parse_lock, target_facts
    from envdoctor.lock.emit.lock_json import render
    from envdoctor.lock.solver.pin import tell_pin

    lock = parse_lock(render(found, "0"), "envdoctor.lock.json")
    story = tell_pin(lock, name, None, target_facts(lock), matrix)
    return [
        story.requirers,
        [[reason.kind, reason.requirer, reason.requirement] for reason in story.pin.reasons],
        story.other,
        [[cause.kind, cause.row, cause.requirement] for cause in story.causes],
        story.instead,
    ]


def _repairs(matrix: Any, step: int) -> Dict[str, Any]:
    from envdoctor.fix.repair import plan
    from envdoctor.model.resolution import Explanation

    from ..lock.solver.environments import random_environment

    table: Dict[str, Any] = {}
    for seed in ENVIRONMENTS[::step]:
        facts = random_environment(random.Random(seed), matrix)
        change_plan = plan(facts, matrix, alternatives=False)
        if isinstance(change_plan, Explanation):
            table[f"environment {seed}"] = [
                [cause.kind, cause.row, cause.requirement] for cause in change_plan.causes
            ]
            continue
        table[f"environment {seed}"] = [
            [
                [
                    *(change.name, change.before, change.after, change.kind, change.index_name),
                    *(change.top, change.reason.kind, change.reason.row),
                ]
                for change in change_plan.changes
            ],
            [finding.key for finding in change_plan.errors],
            [finding.key for finding in change_plan.remaining],
            [
                [entry.requirer, entry.name, entry.version, entry.row]
                for entry in change_plan.overrides
            ],
            dict(change_plan.settings),
            len(change_plan.broken),
        ]
    return table


def _plans(matrix: Any, step: int) -> Dict[str, Any]:
    from envdoctor.app import plan
    from envdoctor.intake.assumptions import parse_assumptions
    from envdoctor.model.facts import Facts

    facts = Facts(parse_assumptions(["gpu=H100:8", "memory=400GiB", "shm=64MiB"]))
    old = (
        "python -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 "
        "--vllm_num_engines 2 --vllm_tensor_parallel_size 2 --pretrain google/gemma-2-9b "
        "--prompt_max_len 1024 --generate_max_len 7168 --vllm_gpu_memory_utilization 0.5"
    )
    scripts = sorted((ROOT / "tests" / "data" / "workloads").glob("*.sh"))
    runs = [(None, [str(path)]) for path in scripts] + [("openrlhf==0.2.5", old.split())]
    table: Dict[str, Any] = {}
    for framework, words in runs[::step]:
        result, code = plan(words, facts, matrix, framework=framework)
        table[f"plan of {words[-1]}"] = [
            code,
            [_finding(finding) for finding in result.findings],
            [
                [
                    *(pool.name, pool.verdict, len(pool.missing), len(pool.doubts)),
                    [[term.name, term.low, term.high] for term in pool.terms],
                ]
                for pool in result.plan.pools
            ],
            result.plan.cache and [result.plan.cache.verdict, len(result.plan.cache.missing)],
            [[lever.pool, lever.settings, lever.after, lever.verdict] for lever in result.levers],
        ]
    return table


if __name__ == "__main__":
    if sys.argv[1] == "silenced":
        silence()
    print(json.dumps(decisions(*map(int, sys.argv[2:]))))
