"""What is wrong with settings whatever the framework: keys that nobody knows, keys of another
version, values that cannot be.
"""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from math import prod
from typing import Any, List, Mapping, Optional, Sequence, Set, Tuple

from ...model.evidence import Evidence, Fact, Known, Unknown
from ...model.redaction import redacted_start
from ...model.workload import ConfigurationProblem
from .adapter import Run
from .configuration import Configuration
from .key_tables import KeyTable
from .settings import Setting

__all__ = [
    "key_problems",
    "lost_lines_problem",
    "narrowed",
    "nearest_key",
    "possible_versions",
    "remark_problem",
    "unknown_keys",
    "value_problems",
]

#: Keys for which the one that was meant is looked for; whoever has more, has another problem.
_MOST_NEAREST = 40
_MUST_EXIST = ("", "~", "--")
_HYDRA = ("hydra.", "hydra/")


def key_problems(
    configuration: Configuration, settings: Sequence[Setting], *, exact: bool
) -> List[ConfigurationProblem]:
    """Report the keys that the framework does not know.

    ``exact``: all keys of the run's own framework are known, so that one more is refused.
    """
    table, versions = configuration.table, configuration.versions
    problems: List[ConfigurationProblem] = []
    seen: Set[str] = set()
    possible = set(versions)
    for setting in settings:
        if setting.key in seen or _may_be_new(setting):
            continue
        seen.add(setting.key)
        where = table.versions_taking(setting.key)
        if not possible.isdisjoint(where):
            continue
        if table.own:
            kind = "unknown-key"
            message = f"{table.own} of this checkout has no key {setting.key}"
        elif where:
            kind = "other-version"
            message = (
                f"{configuration.span} has no key {setting.key}; {table.framework} "
                f"{_span(where)} has it"
            )
        else:
            kind = "unknown-key"
            message = f"no version of {table.framework} that is known here has a key {setting.key}"
        few = len(problems) < _MOST_NEAREST
        nearest = nearest_key(setting.key, table, versions) if few else ""
        problems.append(
            ConfigurationProblem(kind, setting.place, setting.key, message, nearest, exact)
        )
    return problems


def _may_be_new(setting: Setting) -> bool:
    """Whether the key need not be in the framework's configuration."""
    key = setting.key
    return not key or key.startswith(_HYDRA) or setting.operator in ("+", "++") or "@" in key


def unknown_keys(table: KeyTable, settings: Sequence[Setting]) -> int:
    """Count the keys that must exist and that the best of the versions does not know."""
    wanted = [
        setting.key
        for setting in settings
        if setting.operator in _MUST_EXIST and not setting.key.startswith(_HYDRA)
    ]
    return len(wanted) - max(_scores(table, wanted).values(), default=0)


def _scores(table: KeyTable, wanted: Sequence[str]) -> Counter[str]:
    """Return how many of the keys each version takes."""
    scores: Counter[str] = Counter()
    for key, count in Counter(wanted).items():
        for version in table.versions_taking(key):
            scores[version] += count
    return scores


def narrowed(table: KeyTable, settings: Sequence[Setting]) -> Tuple[Tuple[str, ...], Fact[Any]]:
    """Return the versions that know the most of the keys, and what that tells of the version."""
    score = _scores(table, [setting.key for setting in settings if setting.operator in _MUST_EXIST])
    best = max(score.values(), default=0)
    versions = tuple(version for version in table.versions if score[version] == best)
    if len(versions) == len(table.versions):
        return versions, Unknown("nothing tells the version; say it with --framework")
    return versions, Unknown(f"by its keys {_span(versions)}")


def possible_versions(
    table: KeyTable, run: Run, settings: Sequence[Setting], known: Sequence[str] = ()
) -> Tuple[Tuple[str, ...], Fact[Any]]:
    """Return the versions that a run may be of: the one that is stated, else those by its keys.

    ``known``: the versions that count, where the table does not describe the run in all of them.
    The fact is the version, or what tells of it.
    """
    known = tuple(known or table.versions)
    matched = tuple(version for version in table.match(run.version) if version in known)
    if matched:
        return matched, Known(run.version, _stated_by(run))
    versions, version = narrowed(table, settings)
    return tuple(name for name in versions if name in known) or known, version


def _stated_by(run: Run) -> Evidence:
    """Where the version of a run is stated: in its checkout, or on the command line."""
    if run.checkout is not None and run.checkout.place:
        return run.checkout.place
    return Evidence("--framework", run.version)


def nearest_key(key: str, table: KeyTable, versions: Sequence[str]) -> str:
    """Return the key that was probably meant: of the same last part, else the closest."""
    named = table.keys_by_last_part(versions)
    last = key.rpartition(".")[2]
    same = named.get(last) or [
        name for tail in get_close_matches(last, named, 1, 0.8) for name in named[tail]
    ]
    return (get_close_matches(key, same, 1, 0.0) or [""])[0]


def remark_problem(kind: str, place: Evidence, text: str) -> ConfigurationProblem:
    """What bash would stumble over, in the words of a configuration; ``kind`` is that of a remark
    of the shell's reader, "not-an-identifier" or "ends-early".
    """
    if kind == "not-an-identifier":
        name = text.partition(" ")[2].partition("=")[0]
        message = (
            f"bash refuses '{redacted_start(text, 100)}': a name with dots is no variable, and the "
            "framework does not read it from the environment"
        )
        return ConfigurationProblem(
            kind,
            place,
            name,
            message,
            f"{redacted_start(text.partition(' ')[2], 100)} as an argument of the training command",
        )
    asked = " and ".join("an argument" if name == "@" else name for name in text.split())
    message = (
        f"as it stands the script ends here, before it starts anything: {asked or 'a value'} "
        "has to be set; planned is what stands below"
    )
    return ConfigurationProblem(kind, place, "", message, certain=False)


def lost_lines_problem(lines: Sequence[Tuple[Evidence, str]]) -> ConfigurationProblem:
    """Return as one what a lost backslash, or a comment between the lines of a command, cuts off:
    the place and the text of each line.
    """
    place, first = lines[0]
    last, _ = lines[-1]
    key, *others = dict.fromkeys(text.partition("=")[0].split()[0] for _, text in lines)
    if others:
        message = (
            f"{len(lines)} lines down to {last.source} stand as commands of their own, so the "
            "training command never sees them; the line before each has to end in a backslash, and "
            f"no comment may stand between them: {redacted_start(', '.join((key, *others)), 100)}"
        )
    else:
        message = (
            "this stands as a command of its own, so the training command never sees it; the line "
            f"before has to end in a backslash: {redacted_start(first, 100)}"
        )
    return ConfigurationProblem("lost-line", place, key, message)


def value_problems(
    fields: Mapping[str, Fact[Any]], keys: Mapping[str, str]
) -> List[ConfigurationProblem]:
    """Report values that cannot be, in fields that every framework shares."""
    problems: List[ConfigurationProblem] = []

    def report(field: str, message: str, nearest: str = "", *, certain: bool = True) -> None:
        fact = fields[field]
        place = fact.evidence if isinstance(fact, Known) else Evidence("")
        problems.append(
            ConfigurationProblem(
                "impossible-value", place, keys.get(field, ""), message, nearest, certain
            )
        )

    share = _value(fields, "rollout.gpu_memory_utilization")
    if share is not None and not 0 < share <= 1:
        meant = f"{share / 100:g}" if 1 < share <= 100 else ""
        report(
            "rollout.gpu_memory_utilization",
            f"a share of the GPU's memory lies above 0 and at most at 1, found {share:g}",
            meant,
        )
    for field in (
        "nodes",
        "gpus_per_node",
        "rollout.tensor_parallel",
        "rollout.n",
        "data.max_prompt_length",
        "data.max_response_length",
        "data.train_batch_size",
    ):
        number = _value(fields, field)
        if number is not None and number < 1:
            # Trainers that draw sample by sample are told of no batch.
            is_certain = number < 0 or field != "data.train_batch_size"
            report(field, f"expected at least 1, found {number}", certain=is_certain)
    swap = _value(fields, "rollout.swap_space")
    if swap is not None and swap < 0:
        report("rollout.swap_space", f"expected no negative size, found {swap} bytes")
    _report_parallelism(fields, report)
    _report_batches(fields, report)
    return problems


def _report_parallelism(fields: Mapping[str, Fact[Any]], report: Any) -> None:
    gpus, nodes, tensor = (
        _value(fields, name) for name in ("gpus_per_node", "nodes", "rollout.tensor_parallel")
    )
    if gpus and nodes:
        _report_copies(fields, report, gpus * nodes)
    if not gpus or not tensor:
        return
    total = gpus * (nodes or 1)
    field = "rollout.tensor_parallel"
    if nodes and tensor > total:
        message = f"an engine over {tensor} GPUs does not fit into the run's {total}"
        report(field, message, str(gpus))
    elif tensor > gpus and _value(fields, "algorithm") != "serve":  # a server may span nodes
        message = f"an engine over {tensor} GPUs does not fit into a node's {gpus}"
        report(field, message, str(gpus), certain=False)
    elif _value(fields, "colocated") is not False and total % tensor:
        report(field, f"{total} GPUs cannot be split into engines of {tensor}")


#: What one copy of a trained model is spread over.
_WAYS = ("tensor_parallel", "pipeline_parallel", "sequence_parallel")


def _report_copies(fields: Mapping[str, Fact[Any]], report: Any, total: int) -> None:
    """Report a trained model whose copies take more GPUs than there are, or do not divide them
    (megatron/core/parallel_state.py; torch's init_device_mesh).
    """
    for role in ("actor", "critic"):
        sizes = {f"{role}.{way}": _value(fields, f"{role}.{way}") or 1 for way in _WAYS}
        ways = prod(sizes.values())
        absent = _value(fields, f"{role}.present") is False
        if ways <= 1 or total % ways == 0 or absent or _value(fields, "colocated") is False:
            continue
        parts = " × ".join(str(size) for size in sizes.values() if size > 1)
        largest = max(sizes, key=lambda field: sizes[field])
        report(largest, f"{total} GPUs cannot be split into copies of the {role} over {parts}")


def _report_batches(fields: Mapping[str, Fact[Any]], report: Any) -> None:
    for role in ("actor", "critic"):
        mini = _value(fields, f"{role}.mini_batch")
        if not mini or _value(fields, f"{role}.present") is False:
            continue
        ranks = _data_parallel_ranks(fields, role)
        if ranks:
            _report_split(fields, role, mini, ranks, report)


def _data_parallel_ranks(fields: Mapping[str, Fact[Any]], role: str) -> int:
    """Return the ranks that FSDP divides a mini batch among; 0 where that is not known."""
    gpus, nodes = _value(fields, "gpus_per_node"), _value(fields, "nodes")
    if not gpus or not nodes or _value(fields, f"{role}.strategy") not in ("fsdp", "fsdp2"):
        return 0
    return int(gpus * nodes // prod(_value(fields, f"{role}.{way}") or 1 for way in _WAYS))


def _report_split(
    fields: Mapping[str, Fact[Any]], role: str, mini: int, ranks: int, report: Any
) -> None:
    samples = _value(fields, "rollout.n") or 1
    micro = _value(fields, f"{role}.micro_batch")
    each = mini * samples // ranks
    if each < 1:
        report(
            f"{role}.mini_batch",
            f"a mini batch of {mini} × {samples} sequences leaves none for some of {ranks} ranks",
        )
    elif micro and each % micro:
        report(
            f"{role}.mini_batch",
            f"{mini} × {samples} sequences over {ranks} ranks are {each} for each, which micro "
            f"batches of {micro} do not divide",
        )


def _value(fields: Mapping[str, Fact[Any]], field: str) -> Optional[Any]:
    fact = fields.get(field)
    return fact.value if isinstance(fact, Known) else None


def _span(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
