"""Reads the compiled form of the matrix: the core at once, everything else on first use."""

from __future__ import annotations

import json
import os

from . import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Mapping, Optional, Sequence

    from .tables import Package

__all__ = ["CompiledFiles", "read_core", "read_record", "read_text"]


def read_text(path: str, most: int = -1) -> str:
    """Return the text of a compiled file, at most so many bytes."""
    return read_bytes(path, most).decode("utf-8")


def read_bytes(path: str, most: int = -1) -> bytes:
    """Return a compiled file, at most so many bytes; inside a zipapp the importer of this module
    reads it.

    Raises:
        OSError: it is not there or cannot be read.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(most)
    except NotADirectoryError:
        loader: Any = globals()["__loader__"]
        try:
            content = loader.get_data(path)[: most if most >= 0 else None]
        except (AttributeError, OSError) as error:
            raise FileNotFoundError(path) from error
    return content


def read_core(folder: str) -> Optional[Dict[str, Any]]:
    """Return the core of a compiled folder, or None where it is not one that this version reads."""
    try:
        core: Dict[str, Any] = json.loads(read_text(os.path.join(folder, "core.json")))
    except (OSError, ValueError):
        return None
    return core if core.get("format") == compiled.FORMAT else None


def read_record(folder: str, name: str) -> Dict[str, Any]:
    """Return what was written down of the sources when they were compiled, nothing where it was
    not.
    """
    try:
        recorded: Dict[str, Any] = json.loads(read_text(os.path.join(folder, name)))
    except (OSError, ValueError):
        return {}
    return recorded


class CompiledFiles:
    """Texts and packages of the compiled form.

    ``source``: the folder beside it, which is read where it has changed since.
    """

    def __init__(self, folder: str, packages: Iterable[str], source: Optional[str] = None) -> None:
        self._folder = folder
        self._source = source
        self._packages = frozenset(packages)
        self._texts: Optional[Mapping[str, Any]] = None

    def texts(self) -> Mapping[str, Any]:
        """Return the texts of all rows by id."""
        if self._texts is None:
            self._texts = json.loads(read_text(os.path.join(self._folder, "texts.json")))
        return self._texts or {}

    def package(self, name: str) -> Optional[Package]:
        """Return one package, or None where the matrix has none of that name."""
        if name not in self._packages:
            return None
        path = os.path.join(self._folder, "packages", f"{name}.jsonl")
        return compiled.load_package(read_text(path))

    def surfaces(self) -> str:
        """Return what releases import and others do not have, "" where that was not measured."""
        try:
            return read_text(os.path.join(self._folder, "surfaces.txt"))
        except FileNotFoundError:
            return ""

    def profiles(self) -> Mapping[str, Any]:
        """Return the framework profiles by name."""
        return self._extra("profiles") or {}

    def models(self) -> Sequence[Mapping[str, Any]]:
        """Return the models in their checked form."""
        return self._extra("models") or []

    def model_families(self) -> Mapping[str, Any]:
        """Return which releases know which families of models."""
        return self._extra("model_families") or {}

    def conda(self) -> Sequence[Mapping[str, Any]]:
        """Return the conda names in their checked form."""
        return self._extra("conda") or []

    def signatures(self) -> Mapping[str, Any]:
        """Return the signatures of logs and the modules' distributions in their checked form."""
        return self._extra("signatures") or {}

    def index_listing(self) -> Optional[Mapping[str, Any]]:
        """Return the listing of the package index that the matrix was made from."""
        listing: Optional[Mapping[str, Any]] = self._extra("listing")
        return listing

    def measured(self, name: str) -> Optional[Mapping[str, Any]]:
        """Return a document of what was measured in the wheels and is read on demand alone: names
        or messages of a package (``names/vllm``), the index of either (``names``), or torch's
        ``symbols``; None where that was not measured.
        """
        source = self._changed_source(f"{name}.json")
        if source is not None:
            from .source import read_measured

            return read_measured(source, name)
        document: Optional[Mapping[str, Any]] = self._packed(f"{name}.z")
        return document

    def _changed_source(self, name: str) -> Optional[str]:
        """Return the folder beside the compiled form where a file in it, or the files of a folder
        in it, are not those that were compiled.
        """
        if self._source is None:
            return None
        from .folder import find_extra, is_fresh

        recorded = {
            file: entry
            for file, entry in read_record(self._folder, "extras.json").items()
            if file == name or file.startswith(f"{name}/")
        }
        return None if is_fresh(recorded, find_extra(self._source, name)) else self._source

    def _packed(self, name: str) -> Any:
        from .packed import unpack

        try:
            content = unpack(read_bytes(os.path.join(self._folder, name)))
        except FileNotFoundError:
            return None
        return json.loads(content) if content is not None else None

    def _extra(self, name: str) -> Any:
        if self._source is not None:
            from .folder import EXTRAS

            changed = self._changed_source(EXTRAS[name])
            if changed is not None:
                from . import source

                return getattr(source, f"read_{name}")(changed)
        return self._packed("index.z" if name == "listing" else f"{name}.z")
