"""``environment.yml`` and ``recipe.yaml``: the pins as conda sees them.

What is compiled against torch moves as one: torch from a conda channel beside wheels that were
built on the wheel of torch loads two CUDA runtimes at best. So torch and all that needs it come
from the channel only if each of them has a package there, from the default index, and no pin of
them breaks metadata; else the whole group stands under ``pip:``. conda's own CUDA libraries come
with its pytorch.

A recipe cannot name what pip installs. Its metapackage carries ``requirements.txt``, to be
installed after it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Iterator, List, NamedTuple, Set, Tuple

from ...model.resolution import Pin, Resolution
from .words import header

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["CondaPin", "Division", "divide", "render_environment", "render_recipe"]

_CHANNEL = "conda-forge"


class CondaPin(NamedTuple):
    """One conda requirement: package, version, pattern of the build string ("cuda*"), and the
    distribution that it stands for.
    """

    package: str
    version: str
    build: str
    distribution: str

    @property
    def text(self) -> str:
        """The requirement as conda's MatchSpec: ``pytorch ==2.9.0 cuda*``."""
        return f"{self.package} =={self.version}" + (f" {self.build}" if self.build else "")


class Division(NamedTuple):
    """The lines of a lock: those that a conda channel has (``bounds`` beside them), and those that
    pip installs.
    """

    conda: Tuple[CondaPin, ...]
    bounds: Tuple[str, ...]
    pip: Tuple[Tuple[str, str], ...]  # name, version
    reason: str = ""  # why torch and what needs it come from pip


def divide(resolution: Resolution, matrix: Matrix) -> Division:
    """Part the lines of a lock between conda and pip."""
    group = _built_for_torch(resolution)
    reason = _why_pip(resolution, group, matrix)
    conda: List[CondaPin] = []
    pip: List[Tuple[str, str]] = []
    for pin in resolution.pins:
        entry, version = matrix.conda.get(pin.name), str(pin.version)
        package = entry.package if entry is not None else None
        in_group = pin.name in group
        if in_group and not reason:
            # The builds of torch in a channel bring NVIDIA's libraries themselves.
            if package is not None and not pin.name.startswith("nvidia-"):
                conda.append(CondaPin(package, version, _build(pin, resolution), pin.name))
        elif package is not None and not in_group and _is_of_index(pin):
            conda.append(CondaPin(package, version, "", pin.name))
        else:
            pip.append((pin.name, version))
    chosen = {pin.name for pin in resolution.pins}
    pip += [
        (line.name, line.version) for line in resolution.closure.lines if line.name not in chosen
    ]
    cuda = resolution.requires.cuda
    bounds: Tuple[str, ...] = ()
    if cuda and not reason and any(pin.distribution == "torch" for pin in conda):
        major = int(cuda.split(".")[0])
        bounds = (f"cuda-version >={major},<{major + 1}",)
    return Division(tuple(conda), bounds, tuple(pip), reason)


def _is_of_index(pin: Pin) -> bool:
    return pin.index_name == "pypi" and not pin.from_source


def _built_for_torch(resolution: Resolution) -> Set[str]:
    """Return torch, what needs it, directly or not, Triton and NVIDIA's libraries."""
    group = {"torch"}
    size = 0
    while size < len(group):
        size = len(group)
        group |= {pin.name for pin in resolution.pins if group & set(pin.requires)}
    return {
        pin.name
        for pin in resolution.pins
        if pin.name in group or pin.name == "triton" or pin.name.startswith("nvidia-")
    }


def _why_pip(resolution: Resolution, group: Set[str], matrix: Matrix) -> str:
    """Return why the group cannot come from a conda channel; "" where it can."""
    names = matrix.conda
    overridden = sorted(
        override.name for override in resolution.overrides if override.name in group
    )
    if overridden:
        return f"{', '.join(overridden)} contradicts metadata of a wheel on purpose"
    pins = {pin.name: pin for pin in resolution.pins}
    elsewhere = sorted(name for name in group if pins[name].index_name != "pypi")
    if elsewhere:
        return f"{', '.join(elsewhere)} comes from the index {pins[elsewhere[0]].index_name}"
    missing = sorted(
        name
        for name in group
        if not name.startswith("nvidia-") and (name not in names or names[name].package is None)
    )
    shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return f"no conda package is known of {shown}" if missing else ""


def _build(pin: Pin, resolution: Resolution) -> str:
    return ("cuda*" if resolution.requires.cuda else "cpu*") if pin.name == "torch" else ""


def _virtual(resolution: Resolution, matrix: Matrix) -> List[str]:
    """Return bounds on conda's virtual packages.

    ``__cuda`` is the CUDA that the driver reports, so it follows from the lowest driver.
    """
    requires = resolution.requires
    bounds = (
        [f"__glibc >={requires.glibc}"] if requires.glibc and requires.platform == "linux" else []
    )
    branch = matrix.driver_branches.get((requires.driver or "").split(".")[0])
    if branch is not None:
        bounds.append(f"__cuda >={branch.cuda}")
    return bounds


def _name(resolution: Resolution) -> str:
    asked = resolution.request.profile or (
        resolution.request.roots[0].name if resolution.request.roots else "lock"
    )
    return re.sub(r"[^a-z0-9]+", "-", asked.lower()).strip("-") or "lock"


def _python(resolution: Resolution) -> str:
    return ".".join(resolution.requires.python.split(".")[:2])


def _yaml(text: str) -> str:
    """Return a scalar that YAML cannot take for something else."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def render_environment(resolution: Resolution, version: str, matrix: Matrix) -> str:
    """Return the text of ``environment.yml``."""
    division = divide(resolution, matrix)
    lines = [
        *header(resolution, version, "environment.yml"),
        (
            "# conda names are reported, no channel was read: the versions may not be there yet. "
            "Wheels, not conda's builds, were looked into."
        ),
    ]
    if division.reason:
        lines.append(f"# torch and what needs it stand under pip: {division.reason}")
    dependencies = (
        f"python ={_python(resolution)}",
        "pip",
        *_virtual(resolution, matrix),
        *division.bounds,
        *(pin.text for pin in division.conda),
    )
    lines += [
        (
            "# create: conda env create -f environment.yml, then in that environment: "
            "sh install.sh (hashes, overrides, what is built or from git)"
        ),
        f"name: {_name(resolution)}",
        "channels:",
        f"  - {_CHANNEL}",
        "  - nodefaults",
        "dependencies:",
        *(f"  - {_yaml(text)}" for text in dependencies),
        *_pip_lines(resolution, division),
    ]
    if resolution.settings:
        lines += [
            "variables:",
            *(f"  {name}: {_yaml(value)}" for name, value in sorted(resolution.settings.items())),
        ]
    return "\n".join(lines) + "\n"


def _pip_lines(resolution: Resolution, division: Division) -> Iterator[str]:
    """Yield what conda gives to pip, and as comments what install.sh installs after it."""
    later = {
        *(pin.name for pin in resolution.pins if pin.from_source or pin.index_name != "pypi"),
        *(override.name for override in resolution.overrides),
        *resolution.closure.unhashed,
    }
    lines = [f"{name}=={version}" for name, version in division.pip if name not in later]
    if lines:
        yield "  - pip:"
        yield from (f"      - {_yaml(text)}" for text in lines)
    for name, version in division.pip:
        if name in later:
            yield f"      # by install.sh: {name}=={version}"


def render_recipe(resolution: Resolution, version: str, matrix: Matrix) -> str:
    """Return the text of ``recipe.yaml``: a metapackage of rattler-build's format 1."""
    division = divide(resolution, matrix)
    run = [
        f"python {_python(resolution)}.*",
        *_virtual(resolution, matrix),
        *division.bounds,
        *(pin.text for pin in division.conda),
    ]
    wanted = ", ".join(root.text for root in resolution.request.roots) or resolution.request.profile
    summary = f"What {wanted} takes, chosen by envdoctor {version}"
    name = f"envdoctor-lock-{_name(resolution)}"
    carried = [f"{name}=={pinned}" for name, pinned in division.pip]
    lines = [
        *header(resolution, version, "recipe.yaml"),
        (
            "# conda names are reported, no channel was read. Build: rattler-build build --recipe "
            "recipe.yaml"
        ),
        "schema_version: 1",
        "package:",
        f"  name: {name}",
        f"  version: {_yaml(resolution.matrix_date.replace('-', '.'))}",
        "build:",
        "  number: 0",
        "  noarch: generic",
    ]
    if carried:
        place = f"$PREFIX/share/{name}"
        lines += [
            "  script:",
            f"    - mkdir -p {place}",
            f"    - cp requirements.txt {place}/requirements.txt",
        ]
        lines += ["source:", "  path: requirements.txt"]
    lines += [
        "requirements:",
        "  run:",
        *(f"    - {_yaml(text)}" for text in run),
        "about:",
        f"  summary: {_yaml(summary)}",
    ]
    if carried:
        after = (
            f"After it, install what conda does not bring ({len(carried)} distributions): "
            f"$CONDA_PREFIX/share/{name}/requirements.txt says how."
        )
        lines.append(f"  description: {_yaml(after)}")
        lines += ["extra:", "  pip:", *(f"    - {_yaml(text)}" for text in carried)]
    return "\n".join(lines) + "\n"
