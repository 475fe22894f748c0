"""What people paste into issues → facts.

Every reader looks at every line; the most specific one takes it.
"""

from __future__ import annotations

import re
from typing import Optional

from ..errors import InputError
from ..model.facts import Facts
from .clean_text import Line, clean_lines
from .collect_env import CollectEnvReader
from .container_spec import ContainerReader
from .draft import INTENT, LABEL, Draft
from .launch_settings import LaunchReader
from .machine_limits import LimitsReader
from .nvidia_output import NvidiaReader
from .package_lists import PackageReader
from .prose import ProseReader

__all__ = ["parse_report"]

FORMATS = (
    "torch, vllm or sglang collect_env, transformers-cli env, accelerate env, ds_report, pip list, "
    "pip freeze, pip show, uv pip list, conda list, "
    "nvidia-smi (table, csv, -L), nvcc --version, "
    "docker run, compose and Kubernetes fragments, ulimit -a, df -h /dev/shm, free, ldd --version, "
    "uname -a, environment variables"
)
_ASSIGNMENT = re.compile(
    r"(?:.{0,120}?\bENV\s+|export\s+|set\s+|declare\s+-x\s+|-e\s+|--env\s+)?([A-Z_][A-Z0-9_]{1,80})\s?[=:]\s?(.*)$"
)
_DOCKER_ENV = re.compile(r".{0,120}?\bENV\s+([A-Z_][A-Z0-9_]{1,80})\s+(\S.*)$")
_INLINE = re.compile(
    r"(?<![\w$])(?:export\s+)?([A-Z][A-Z0-9]*_[A-Z0-9_]{1,80})=(\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s\"',;]{1,300})"
)
_RAY = re.compile(r"\bRay:\s*(\d[\w.+-]{0,40})")
_RAY_PYTHON = re.compile(r"\bPython:\s*(\d[\w.+]{0,40})")
_PATH_VERSION = re.compile(r"cudnn[/_-]?v?(\d+\.\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)


_SIDE = re.compile(
    r"(?:ray )?(cluster|head(?: node)?|worker(?: node)?s?|client|driver|(?:this |joining "
    r")?process|job)\b[^:]{0,20}:"
    r"\s*(?:.{0,40}\b)?ray[ :=v]{1,3}(\d+\.\d+[\w.]*)"
    r"(?:.{0,20}?python[ :=v]{1,3}(\d\.\d{1,2}(?:\.\d{1,2})?))?",
    re.IGNORECASE,
)


class _RayReader:
    """Ray's message about different versions, in two blocks or with a line for each side."""

    def __init__(self) -> None:
        self._side = ""
        self._since = 0

    def read(self, line: Line, draft: Draft) -> bool:
        text = line.text
        heading = "was started with" in text or "were started with" in text
        if heading:
            before = text.split("started with")[0].lower()
            self._side = "process" if "process" in before else "cluster"
            self._since = line.number
        elif self._read_sides(text, line, draft):
            return True
        if not self._side or line.number > self._since + 4:
            self._side = ""
            return False
        ray, python = _RAY.search(text), _RAY_PYTHON.search(text)
        if not heading and ray is None and python is None:
            return False
        if ray:
            draft.put(f"ray.{self._side}_version", ray.group(1), line)
            if self._side == "process":
                draft.distribution("ray", ray.group(1), line, LABEL)
        if python:
            draft.put(f"ray.{self._side}_python", python.group(1), line)
            if self._side == "process":
                draft.put("python.version", python.group(1), line, LABEL)
        return True

    def _read_sides(self, text: str, line: Line, draft: Draft) -> bool:
        match = None
        for part in re.split(r"\s*[;|]\s*", text[:300]) if "ray" in text.lower() else ():
            match = _SIDE.match(part)
            if match:
                side = (
                    "cluster"
                    if match.group(1).lower().startswith(("cluster", "head"))
                    else "process"
                )
                draft.put(f"ray.{side}_version", match.group(2), line)
                if match.group(3):
                    draft.put(f"ray.{side}_python", match.group(3), line)
        return match is not None


class _VariableReader:
    """Assignments as a shell, a Dockerfile or collect_env writes them."""

    def read(self, line: Line, draft: Draft) -> bool:
        match = _ASSIGNMENT.match(line.text) or _DOCKER_ENV.match(line.text)
        if match:
            value = match.group(2).strip()
            if value[:1] in ("'", '"') and value[-1:] == value[:1] and len(value) > 1:
                value = value[1:-1]
            if value.lower() not in (
                "not set",
                "unset",
                "(not set)",
                "none",
                "n/a",
            ) and draft.variable(match.group(1), value, line):
                return len(_INLINE.findall(line.text)) < 2 or self._inline(line, draft)
        if "=" in line.text:
            self._inline(line, draft)
        return False

    @staticmethod
    def _inline(line: Line, draft: Draft) -> bool:
        for match in list(_INLINE.finditer(line.text))[:50]:
            draft.variable(match.group(1), match.group(2).strip("\"'"), line)
        return True


def parse_report(text: str) -> Facts:
    """Read everything that a pasted text tells of an environment.

    Lines may be missing, mixed, indented or quoted. Of two statements the more specific one holds,
    then the first; the other is noted in the evidence. Nothing is executed. Raises
    :class:`InputError` where nothing at all was recognised, or where the text is too large.
    """
    draft = Draft()
    nvidia, packages, collect, container, limits = (
        NvidiaReader(),
        PackageReader(),
        CollectEnvReader(),
        ContainerReader(),
        LimitsReader(),
    )
    readers = (
        _RayReader(),
        nvidia,
        packages,
        collect,
        container,
        limits,
        LaunchReader(),
        _VariableReader(),
        ProseReader(),
    )
    last: Optional[Line] = None
    for line in clean_lines(text):
        last = line
        if not line.text:
            continue
        for reader in readers:
            if reader.read(line, draft):
                break
    if last is not None:
        packages.finish(draft)
        collect.finish(draft)
        container.finish(last, draft)
        limits.finish(draft)
        _derive(last, draft)
    facts = draft.facts()
    if not any(True for _ in facts):
        raise InputError(
            f"nothing about an environment was recognised in the report; what is read: {FORMATS}"
        )
    return facts


def _derive(last: Line, draft: Draft) -> None:
    """What follows from variables and the image without any doubt."""
    variables = draft.variables
    home = variables.get("CUDA_HOME") or variables.get("CUDA_PATH")
    if home and home.startswith("/"):
        first = variables.get("PATH", "").split(":")[0].rstrip("/")
        nvcc = first == home.rstrip("/") + "/bin"
        draft.toolkit(
            home, draft.claimed("toolkit.version") if nvcc else None, last, "CUDA_HOME", nvcc
        )
    image = variables.get("CUDA_VERSION") or variables.get("NV_CUDA_LIB_VERSION", "").split("-")[0]
    if image and re.fullmatch(r"\d{1,2}\.\d{1,2}(?:\.\d{1,3})?", image):
        draft.put("image.cuda_version", image, last, LABEL, "CUDA_VERSION")
    for folder in variables.get("LD_LIBRARY_PATH", "").split(":"):
        match = _PATH_VERSION.search(folder)
        if match:
            draft.put(
                "cudnn.system_version",
                match.group(1),
                last,
                INTENT,
                f"LD_LIBRARY_PATH has {folder}",
            )
            break
    if "WSL_DISTRO_NAME" in variables:
        draft.put("os.wsl", True, last, LABEL)
