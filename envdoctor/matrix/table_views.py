"""What the matrix holds in tables: drivers, toolkits, GPUs, profiles, texts of logs."""

from __future__ import annotations

from ..model.row import Source
from . import compiled
from .tables import (
    Board,
    Capability,
    CodeDemand,
    CudaMajor,
    DriverBranch,
    ForwardCompat,
    GpuModel,
    NgcImage,
    SourceBuild,
    ToolkitRelease,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

    from ..model.signature import Signature
    from .curated import CondaPackage, Model, Profile

__all__ = ["TableViews"]


class TableViews:
    """The tables of a compiled core and the files beside it, each made on first use."""

    def __init__(self, core: Dict[str, Any], files: Any) -> None:
        self._core = core
        self._files = files
        self._tables: Dict[str, Any] = {}

    @property
    def date(self) -> str:
        """The date of the newest entry ("2026-11-21")."""
        return str(self._core["date"])

    @property
    def origin(self) -> str:
        """Where it was loaded from: "built-in", or the folder of an update."""
        return str(self._core.get("origin", "built-in"))

    def _table(self, name: str, make: Any) -> Any:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = make(self._core["tables"].get(name, ()))
        return table

    @property
    def driver_branches(self) -> Mapping[str, DriverBranch]:
        """Driver branches by number ("570"), oldest first."""
        branches: Mapping[str, DriverBranch] = self._table(
            "branch",
            lambda entries: {
                entry["branch"]: DriverBranch(
                    entry["branch"],
                    entry["cuda"],
                    entry["kind"],
                    entry["end_of_life"],
                    entry["status"],
                    Source(entry["source"]),
                )
                for entry in entries
            },
        )
        return branches

    @property
    def cuda_majors(self) -> Mapping[int, CudaMajor]:
        """Minor-version compatibility by CUDA major."""
        majors: Mapping[int, CudaMajor] = self._table(
            "major",
            lambda entries: {
                entry["major"]: CudaMajor(
                    entry["major"], entry["min_driver"], Source(entry["source"])
                )
                for entry in entries
            },
        )
        return majors

    @property
    def toolkits(self) -> Mapping[str, ToolkitRelease]:
        """CUDA toolkit releases by version ("12.8.1"), oldest first."""
        toolkits: Mapping[str, ToolkitRelease] = self._table(
            "toolkit",
            lambda entries: {
                entry["version"]: ToolkitRelease(
                    entry["version"],
                    entry["branch"],
                    entry["driver"],
                    entry["min_driver"],
                    entry["compat_driver"],
                    entry["trust"],
                    Source(entry["source"]),
                )
                for entry in entries
            },
        )
        return toolkits

    @property
    def forward_compat(self) -> Mapping[str, ForwardCompat]:
        """Admitted base branches by the CUDA version of cuda-compat ("12.4")."""
        packages: Mapping[str, ForwardCompat] = self._table(
            "forward_compat",
            lambda entries: {
                entry["cuda"]: ForwardCompat(
                    entry["cuda"], tuple(entry["branches"]), Source(entry["source"])
                )
                for entry in entries
            },
        )
        return packages

    @property
    def ngc_images(self) -> Sequence[NgcImage]:
        """NVIDIA's framework images by month, oldest first."""
        images: Sequence[NgcImage] = self._table(
            "ngc_image",
            lambda entries: sorted(
                NgcImage(entry["month"], entry["cuda"], Source(entry["source"]))
                for entry in entries
            ),
        )
        return images

    @property
    def capabilities(self) -> Mapping[str, Capability]:
        """Compute capabilities by number ("9.0"), oldest first."""
        capabilities: Mapping[str, Capability] = self._table(
            "capability",
            lambda entries: {
                entry["capability"]: Capability(
                    entry["capability"],
                    entry["architecture"],
                    entry["first_cuda"],
                    entry["last_cuda"],
                    entry["first_driver"],
                    entry["last_driver"],
                    entry["trust"],
                    Source(entry["source"]),
                )
                for entry in entries
            },
        )
        return capabilities

    @property
    def boards(self) -> Mapping[str, Board]:
        """Boards that do not take every build for Arm servers, by the name of their GPU."""
        boards: Mapping[str, Board] = self._table(
            "board",
            lambda entries: {
                entry["gpu"]: Board(
                    entry["gpu"],
                    entry["system"],
                    entry["cuda"],
                    entry["builds"],
                    Source(entry["source"]),
                )
                for entry in entries
            },
        )
        return boards

    @property
    def code_demands(self) -> Mapping[str, CodeDemand]:
        """Packages that need code for the GPU, by name."""
        demands: Mapping[str, CodeDemand] = self._table(
            "code",
            lambda entries: {
                entry["package"]: CodeDemand(
                    entry["package"],
                    entry["effect"],
                    entry["symptom"],
                    entry["trust"],
                    Source(entry["source"]),
                )
                for entry in entries
            },
        )
        return demands

    @property
    def source_builds(self) -> Mapping[str, Sequence[SourceBuild]]:
        """What building releases without a wheel takes, by distribution."""
        builds: Mapping[str, Sequence[SourceBuild]] = self._table("sdist", _source_builds)
        return builds

    @property
    def retired(self) -> Mapping[str, str]:
        """Ids of rows that were deleted, and of the derived ones that say the same."""
        entries = self._core["tables"].get("retired", ())
        return {entry["row"]: entry["said_by"] for entry in entries}

    def table_entry(self, table: str, key: str) -> Mapping[str, Any]:
        """Return an entry of a curated table as it is written, with source, date, trust and origin;
        empty where there is none.
        """
        name = compiled.KEYS[table]
        return next(
            (entry for entry in self._core["tables"].get(table, ()) if str(entry[name]) == key), {}
        )

    def table_entries(self, table: str) -> Sequence[Mapping[str, Any]]:
        """Return all entries of a curated table (``compiled.KEYS`` names them; "gpu" comes from
        ``gpu_entries``).
        """
        entries: Sequence[Mapping[str, Any]] = self._core["tables"].get(table, ())
        return entries

    def gpu_entries(self) -> List[Dict[str, Any]]:
        """Return all GPU models with PCI ids, aliases and provenance; reads the texts."""
        texts = self._files.texts()
        index = self._core["gpus"]
        entries: List[Dict[str, Any]] = []
        for values in index["models"]:
            model = GpuModel(*values)
            source, date, trust = texts.get(f"gpu:{model.name}", ("", "", ""))
            entries.append(
                {
                    "name": model.name,
                    "compute_capability": model.compute_capability,
                    "type": model.kind,
                    "architecture": model.architecture,
                    "memory": model.memory,
                    "pci_ids": [],
                    "known_as": [],
                    "source": source,
                    "date": date,
                    "trust": trust,
                }
            )
        for pci_id, numbers in index["pci"].items():
            for number in numbers:
                entries[number]["pci_ids"].append(pci_id)
        for name, number in index["names"].items():
            entries[number]["known_as"].append(name)
        return entries

    @property
    def profiles(self) -> Mapping[str, Any]:
        """Framework profiles by name, as their files say (checked; ``profile`` gives values)."""
        return self._once("profiles", self._files.profiles)  # type: ignore[no-any-return]

    def profile(self, name: str) -> Optional[Profile]:
        """Return a framework profile by name ("easyr1", whatever its case), or None."""
        from .curated import make_profile

        wanted = name.lower()
        for key, document in self.profiles.items():
            if key.lower() == wanted:
                return make_profile(key, document)
        return None

    @property
    def models(self) -> Tuple[Model, ...]:
        """All language models."""
        from .curated import make_model

        return tuple(make_model(entry) for entry in self._once("models", self._files.models))

    def model(self, name: str) -> Optional[Model]:
        """Return a model by name, repository, alias or path (``Qwen/Qwen2.5-7B-Instruct``), or None
        where its dimensions are not known.
        """
        from .curated import find_model, make_model

        entry = find_model(self._once("models", self._files.models), name)
        return None if entry is None else make_model(entry)

    def models_near(self, least: int, most: int) -> Tuple[Model, ...]:
        """Return the models of about as many parameters, half as many to half as many again; of
        sizes that nobody has the one that is nearest.
        """
        from .curated import make_model

        entries = self._once("models", self._files.models)
        near = [one for one in entries if least / 2 <= one["parameters"] <= most * 1.5]
        middle = (least + most) // 2
        nearest = sorted(entries, key=lambda one: abs(one["parameters"] - middle))[:1]
        return tuple(make_model(entry) for entry in near or nearest)

    @property
    def conda(self) -> Mapping[str, CondaPackage]:
        """What conda calls a distribution, by its canonical name; ``package`` is None where there
        is none, and no entry means not known.
        """
        from .curated import make_conda

        packages: Dict[str, CondaPackage] = {}
        for entry in self._once("conda", self._files.conda):
            packages.setdefault(entry["distribution"], make_conda(entry))
        return packages

    @property
    def signatures(self) -> Tuple[Signature, ...]:
        """What lines of logs mean."""
        from .signatures import make_signature

        entries = self._once("signatures", self._files.signatures).get("signatures", ())
        made: Tuple[Signature, ...] = self._once(
            "signatures made", lambda: tuple(make_signature(entry) for entry in entries)
        )
        return made

    @property
    def modules(self) -> Mapping[str, str]:
        """The distribution that installs a module of another name."""
        distributions: Mapping[str, str] = self._once("signatures", self._files.signatures).get(
            "modules", {}
        )
        return distributions

    def _once(self, name: str, read: Any) -> Any:
        key = f"curated:{name}"
        if key not in self._tables:
            self._tables[key] = read()
        return self._tables[key]

    def index_listing(self) -> Optional[Mapping[str, Any]]:
        """Return the committed listing of the package index (``matrices/index.json``), or None."""
        listing: Optional[Mapping[str, Any]] = self._files.index_listing()
        return listing

    @property
    def gpus(self) -> Tuple[GpuModel, ...]:
        """All GPU models."""
        return self._once(  # type: ignore[no-any-return]
            "gpus", lambda: tuple(GpuModel(*values) for values in self._core["gpus"]["models"])
        )

    def _joined_gpu_names(self) -> Mapping[str, int]:
        """Return models by their names without spaces, those that are one model's alone."""

        def join() -> Dict[str, int]:
            joined: Dict[str, Set[int]] = {}
            for name, number in self._core["gpus"]["names"].items():
                joined.setdefault(name.replace(" ", ""), set()).add(number)
            return {name: next(iter(of)) for name, of in joined.items() if len(of) == 1}

        return self._once("joined GPU names", join)  # type: ignore[no-any-return]

    def gpu(self, name: Optional[str], pci_id: Optional[str]) -> Optional[GpuModel]:
        """Return the model of a device, or None where neither says enough.

        The PCI id (``10de:2329`` or ``2329``) wins over the name; where several models share it,
        the name chooses among them, and what it cannot choose is None unless all have the same
        compute capability and kind. A name is taken whole: first as it is, then without form
        factor, memory size and count, at last without spaces (``RTX4090``). A part of a name never
        matches: ``RTX 6000`` is not ``RTX 6000 Ada``.
        """
        index = self._core["gpus"]
        models = index["models"]
        named = None
        if name:
            forms = [compiled.normalize_gpu(name, reduced=reduced) for reduced in (False, True)]
            named = next((index["names"][form] for form in forms if form in index["names"]), None)
            if named is None:
                joined = self._joined_gpu_names()
                forms = [form.replace(" ", "") for form in forms]
                named = next((joined[form] for form in forms if form in joined), None)
        if pci_id:
            vendor, _, device = pci_id.lower().replace("0x", "").rpartition(":")
            candidates = index["pci"].get(device) if vendor in ("", "10de") else None
            if candidates:
                chosen = named if named in candidates else candidates[0]
                if (
                    chosen == named
                    or len({tuple(models[number][1:3]) for number in candidates}) == 1
                ):
                    return GpuModel(*models[chosen])
                return None
        return None if named is None else GpuModel(*models[named])


def _source_builds(entries: Sequence[Mapping[str, Any]]) -> Dict[str, List[SourceBuild]]:
    from ..model.requirement import parse_requirement
    from ..model.versions import VersionSet

    builds: Dict[str, List[SourceBuild]] = {}
    for entry in entries:
        requirement = parse_requirement(entry["requirement"])
        build = SourceBuild(
            requirement.name,
            requirement.versions,
            tuple(entry["needs"]),
            entry["compiler"],
            VersionSet.parse(entry["python"]) if entry["python"] else None,
            entry["fetches"] or "",
            Source(entry["source"]),
        )
        builds.setdefault(requirement.name, []).append(build)
    return builds
