"""A trainer that is described by tables: its defaults, its settings by field of the workload, and
what its code does with them. One more is a subclass of :class:`Trainer` with two or three methods.

Settings come from a command, from files that it names, or from a file alone; what a checkout
declares (:mod:`.declared`) comes before the defaults of the table.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from ...model.record import NamedTuple
from .adapter import CERTAIN, Run, RunReading
from .attention import attention_of
from .configuration import Configuration, Converter, Fields, integer, share_gpus
from .declared import declared_defaults
from .key_tables import KeyTable, own_table
from .problems import value_problems
from .settings import Setting, as_option, flags, override, overrides
from .unread import other_models, unread_settings

__all__ = [
    "Launch",
    "Trainer",
    "TrainerReading",
    "options_and_overrides",
    "seen_gpus",
    "visible_devices",
]


class Launch(NamedTuple):
    """What a run sets. absent: a file of it that is not at hand, so that no default counts."""

    given: Sequence[Setting]
    files: Sequence[Setting] = ()
    absent: str = ""


class TrainerReading(NamedTuple):
    """What is being made of one run; ``fields`` and ``keys`` are filled in."""

    run: Run
    configuration: Configuration
    fields: Dict[str, Fact[Any]]
    keys: Dict[str, str]
    code: Evidence

    def get(self, *names: str, convert: Optional[Converter] = None) -> Fact[Any]:
        """Return a setting by its name; Unknown where it is neither set nor has a default."""
        return self.configuration.get(*names, convert=convert)

    def value(self, *names: str, convert: Optional[Converter] = None, default: Any = None) -> Any:
        """Return the value of a setting, or ``default`` where it is not known."""
        fact = self.configuration.get(*names, convert=convert)
        return fact.value if isinstance(fact, Known) else default

    def put(self, field: str, value: Any, fact: Optional[Fact[Any]] = None) -> None:
        """Note what a field is, at the place of a fact that it follows from, else by the code."""
        place = fact.evidence if isinstance(fact, (Known, Absent)) else self.code
        self.fields[field] = Known(value, place)

    def number(self, field: str) -> Optional[Any]:
        """Return the value of a field, where it is known."""
        fact = self.fields.get(field)
        return fact.value if isinstance(fact, Known) else None

    def consider(self, *names: str) -> None:
        """Note settings that were understood without their value."""
        self.configuration.asked.update(names)

    def accept(self, name: str, *endings: str) -> None:
        """Note a setting as understood where its value ends with one of these words."""
        setting = self.configuration.given.get(name)
        if setting is not None and str(setting.value).endswith(endings):
            self.consider(name)


class Trainer:
    """One framework; subclasses say how its runs are known, what they set and what it means."""

    name = ""
    layout = Layout()
    source = ""  # as evidence names the defaults
    option = ""  # "--" where keys are options
    #: Its own defaults, of the release that the adapter was written against.
    defaults: ClassVar[Mapping[str, Any]] = {}
    #: Where a checkout declares them: patterns of files, and the classes (none: options of
    #: argparse) in the order in which they count.
    declared: Tuple[Tuple[str, Tuple[str, ...]], ...] = ()
    fields: ClassVar[Fields] = {}
    #: Options that take no value.
    switches: Tuple[str, ...] = ()
    #: Settings that name an implementation of attention, or switch one on.
    attention: Tuple[str, ...] = ()

    def claims(self, run: Run) -> int:
        """By its program or module, or by a file that only it can read."""
        return CERTAIN if self.owns(run) else 0

    def defaults_of(self, run: Run) -> Mapping[str, Any]:  # noqa: ARG002 - some have several
        """Return the defaults of the release that the adapter was written against."""
        return self.defaults

    def fields_of(self, run: Run) -> Fields:  # noqa: ARG002 - the same for most
        """Return the settings of a run by field of the workload."""
        return self.fields

    def declared_in(self, run: Run) -> Sequence[Tuple[str, Tuple[str, ...]]]:  # noqa: ARG002
        """Return where a checkout declares the defaults of a run."""
        return self.declared

    def table(self, run: Run) -> KeyTable:
        """Return keys and defaults by the versions that a run may be of: what its checkout declares
        over those of the release that the adapter was written against.
        """
        declared = declared_defaults(run, self.declared_in(run))
        where = f"{self.source} of this checkout" if declared else self.source
        return own_table(self.name, ("",), {**self.defaults_of(run), **declared}, where)

    def owns(self, run: Run) -> bool:
        """Tell whether a run is certainly this framework's."""
        raise NotImplementedError

    def launch(self, run: Run) -> Launch:
        """Return what a run sets: by its options, where it has neither files nor overrides."""
        return Launch(flags(run.arguments, run.name, self.switches)[0])

    def derive(self, reading: TrainerReading) -> None:
        """Fill in what more than one setting decides, or the code."""
        raise NotImplementedError

    def read(self, run: Run) -> RunReading:
        """Read the run."""
        launch = self.launch(run)
        table = self.table(run)
        configuration = Configuration(
            table, table.versions, launch.given, launch.files, run.environ, absent=launch.absent
        )
        facts, names = configuration.read(self.fields_of(run), {})
        place = Evidence(run.name, run.entry)
        fields: Dict[str, Fact[Any]] = {
            "framework": Known(self.name, place),
            "actor.present": Known(True, place),
            "critic.present": Known(False, place),
            "reward.present": Known(False, place),
            "ref.optimizer": Known("none", place),
            "colocated": Known(True, place),
            **facts,
        }
        reading = TrainerReading(
            run, configuration, fields, names, Evidence(f"code of {self.source}")
        )
        self.derive(reading)
        fields.update(attention_of(configuration, *self.attention))
        if self.attention:
            given = [name for name in self.attention if name in configuration.given]
            named = [name for name in given if "eager" not in name]
            names["actor.attention"] = next(iter(named), self.attention[0])
        if isinstance(fields.get("checkpoint.limit"), Absent):
            reading.put("checkpoint.limit", 0, fields["checkpoint.limit"])
        unread = unread_settings(configuration, [*launch.files, *launch.given])
        fields.update(other_models(configuration, [*launch.files, *launch.given]))
        return RunReading(
            fields,
            {field: as_option(name, self.option) for field, name in reading.keys.items() if name},
            value_problems(fields, reading.keys),
            Known(run.version, place) if run.version else Unknown("nothing tells the version"),
            (*(f"{self.option}{name}" for name in unread), *self.doubts(reading)),
            configuration.totals,
        )

    def doubts(self, reading: TrainerReading) -> Sequence[str]:  # noqa: ARG002 - some have none
        """Return what of a run is not understood beside its settings."""
        return ()


def visible_devices(
    reading: TrainerReading, nodes: str = "NNODES", each: str = "NPROC_PER_NODE"
) -> None:
    """Fill in nodes and GPUs of a launcher that takes them from variables, and without these every
    GPU of the machine, where that is known.
    """
    run, fields = reading.run, reading.fields
    fields["nodes"] = _variable(run, nodes) or Known(1, Evidence(f"{nodes} is not set"))
    count = _variable(run, each) or seen_gpus(run)
    fields["gpus_per_node"] = count or Unknown("all GPUs that are visible")
    reading.keys["nodes"], reading.keys["gpus_per_node"] = nodes, each
    share_gpus(fields)


def seen_gpus(run: Run) -> Optional[Fact[Any]]:
    """Return how many GPUs a process sees: those of CUDA_VISIBLE_DEVICES, without it all of the
    machine; None where that is not known. A report may tell the kind of GPU alone.
    """
    visible = run.variables.get("CUDA_VISIBLE_DEVICES") or run.variables.get(
        "ASCEND_RT_VISIBLE_DEVICES"
    )
    if visible is not None:
        place = Evidence(f"{run.name}:{visible.line}", f"CUDA_VISIBLE_DEVICES={visible.text}")
        count = visible.text.count(",") + 1
        return Known(count, place) if visible.known and visible.text else None
    devices = run.facts.get("gpus") if run.facts is not None and run.at_hand else None
    if not isinstance(devices, Known):
        return None
    seen = sum(device.visible is not False for device in devices.value)
    return Known(seen, devices.evidence) if seen else None


def _variable(run: Run, name: str) -> Optional[Fact[Any]]:
    word = run.variables.get(name)
    if word is None:
        return None
    number = integer(word.text) if word.known else None
    place = Evidence(f"{run.name}:{word.line}", f"{name}={word.readable}")
    return Known(number, place) if number else Unknown(word.why or f"{place}: no number")


def options_and_overrides(run: Run) -> Tuple[List[Setting], List[Setting]]:
    """Return a command's ``--option value`` and its ``key=value``, which may follow a value."""
    pairs = [word for word in run.arguments if not word.text.startswith("-")]
    settings = overrides(tuple(pairs), run.name)
    written = {id(word) for word in pairs if override(word, run.name) is not None}
    rest = [word for word in run.arguments if id(word) not in written]
    return flags(rest, run.name)[0], list(settings)
