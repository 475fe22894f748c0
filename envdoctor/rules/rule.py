"""What a rule is and what it gets.

No rule lives here, so that every family can import this first.
"""

from __future__ import annotations

from ..matrix.bind import Target
from ..model.evidence import Absent, Evidence, Known, Unknown
from ..model.facts import Distribution, Facts, Gpu, is_unindexed
from ..model.finding import Finding
from ..model.record import NamedTuple
from ..model.report import Judged
from ..model.versions import DriverRelease, Version, try_driver_release, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Dict,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Set,
        Tuple,
        TypeVar,
    )

    from ..matrix.loader import Matrix

    T = TypeVar("T")

__all__ = [
    "Context",
    "Rule",
    "device_names",
    "distribution_evidence",
    "field_evidence",
    "is_installed",
    "is_unindexed",
    "minor_text",
    "model_kinds",
    "needs_cuda",
    "release_minor",
    "torch_cuda",
    "visible_count",
]


_NONE: Mapping[str, Distribution] = {}


class Context(NamedTuple):
    """What every rule gets: the facts of one target, the matrix, the derived target, and all nodes
    where several were given.
    """

    facts: Facts
    matrix: Matrix
    target: Target
    nodes: Tuple[Facts, ...] = ()
    today: str = ""  # ISO date; empty: not asked
    memo: Optional[Dict[str, Any]] = None  # what several rules work out once for this target
    examined: Optional[Set[Judged]] = None  # gets the rows that are held against this target

    def once(self, key: str, make: Callable[[], T]) -> T:
        """Return what ``make`` gives, worked out once per target."""
        if self.memo is None:
            return make()
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found

    @property
    def distributions(self) -> Mapping[str, Distribution]:
        """The known distributions by canonical name; empty where no list was read."""
        found: Mapping[str, Distribution] = self.facts.value("distributions", _NONE)
        return found

    def version(self, name: str) -> Optional[Version]:
        """Return the installed version of a distribution, or None where it is not known or not
        installed.
        """
        found = self.distributions.get(name)
        return try_version(found.version) if found is not None else None

    def fact_version(self, field: str) -> Optional[Version]:
        """Return a fact as a version, or None where it is not known or no version."""
        value = self.facts.value(field)
        return try_version(value) if isinstance(value, str) else None

    @property
    def driver(self) -> Optional[DriverRelease]:
        """The release of the loaded kernel driver, or None where it is not known."""
        driver: Optional[DriverRelease] = self.target.host.attributes.get("driver")
        return driver

    def driver_release(self, field: str) -> Optional[DriverRelease]:
        """Return a fact as the driver release that it names, or None where it is not known."""
        return try_driver_release(self.facts.value(field))

    def evidence(self, *fields: str) -> Tuple[Evidence, ...]:
        """Return where these fields were read, in order, without those of which nothing was
        learned.
        """
        found = []
        for field in fields:
            evidence = self.facts.evidence(field)
            if evidence is not None:
                value = self.facts.value(field)
                found.append(
                    Evidence(
                        evidence.source,
                        evidence.detail or f"{field} = {value}"
                        if isinstance(value, (str, int, float))
                        else evidence.detail,
                    )
                )
        return tuple(found)

    def installed(self, *names: str) -> Tuple[Evidence, ...]:
        """Return where the versions of these distributions were read."""
        listed = self.distributions
        return tuple(
            distribution_evidence(self.facts, listed[name]) for name in names if name in listed
        )

    def visible_gpus(self) -> Tuple[Gpu, ...]:
        """Return the devices that are not hidden; empty also where they are not known."""
        return tuple(
            device for device in self.facts.value("gpus", ()) if device.visible is not False
        )


class Rule(NamedTuple):
    """One rule, of a check or of a plan. ``name`` is a short kebab-case name, ``kind`` the main
    kind of its findings, ``summary`` one line for lists.

    The function's docstring has the sections "What it checks", "Why it matters", "How to fix" and
    "References", which ``envdoctor explain`` prints. In a family of ``registry.CHECKS`` it takes a
    ``Context``.

    half: "environment" where no fact of the host half (``model/facts.py``) is read: ``bake`` judged
        that, and a start of a baked image runs the others.
    """

    code: str
    name: str
    kind: str
    summary: str
    function: Callable[..., Iterator[Finding]]
    half: str = "host"


def distribution_evidence(facts: Facts, found: Distribution) -> Evidence:
    """Return where the version of a distribution was read."""
    listed = facts.evidence("distributions")
    return Evidence(
        found.location or (listed.source if listed is not None else "distributions"),
        f"{found.name} {found.version or '(version not known)'}",
    )


def needs_cuda(context: Context) -> Tuple[str, ...]:
    """Return what in this environment needs a CUDA device: torch of a CUDA build, or an engine that
    is there for nothing else.
    """
    found = []
    if isinstance(context.facts.get("torch.cuda"), Known) or (torch_cuda(context) is not None):
        found.append("torch")
    found.extend(
        name
        for name in ("vllm", "sglang", "sgl-kernel", "flash-attn", "deepspeed")
        if name in context.distributions
    )
    return tuple(found)


def torch_cuda(context: Context) -> Optional[Version]:
    """Return the CUDA version that torch is built with: read from its files, or of the build that
    its version names; None where it has none.
    """
    found = context.fact_version("torch.cuda")
    if found is not None:
        return found
    if isinstance(context.facts.get("torch.cuda"), Absent) or context.target.environment is None:
        return None
    value = context.target.environment("torch").attributes.get("cuda")
    return value if isinstance(value, Version) else None


def release_minor(version: Version) -> Tuple[int, int]:
    """Return the first two numbers of a release."""
    release = version.release
    return release[0], release[1] if len(release) > 1 else 0


def minor_text(version: Version) -> str:
    """Return the first two numbers of a release as text: ``12.4``."""
    return ".".join(map(str, version.release[:2]))


def model_kinds(context: Context) -> List[Tuple[Gpu, Optional[str]]]:
    """Return the visible devices, each with the kind of its model (datacenter, geforce …) where the
    model is known.
    """
    found = []
    for device in context.visible_gpus():
        model = context.matrix.gpu(device.name, device.pci_id)
        found.append((device, model.kind if model is not None else None))
    return found


def device_names(devices: Sequence[Gpu]) -> str:
    """Return the names of devices for a message, each name once."""
    return ", ".join(sorted({device.name or device.pci_id or "GPU" for device in devices}))


def is_installed(facts: Facts, *names: str) -> Optional[bool]:
    """Return whether one of some distributions is installed; None where the list is not complete
    enough to say.
    """
    found = [facts.distribution(name) for name in names]
    if any(isinstance(fact, Known) for fact in found):
        return True
    return None if any(isinstance(fact, Unknown) for fact in found) else False


def visible_count(facts: Facts) -> Optional[int]:
    """Return how many devices are not hidden, or None where they are not known."""
    devices = facts.value("gpus")
    return None if devices is None else sum(1 for device in devices if device.visible is not False)


def field_evidence(facts: Facts, *fields: str) -> Tuple[Evidence, ...]:
    """Return where these fields were read, without those of which nothing was learned."""
    found = (facts.evidence(field) for field in fields)
    return tuple(evidence for evidence in found if evidence is not None)
