"""envdoctor's own modules as compiled code in one file for each release of Python, which the build
of a wheel writes (scripts/compile_code).

A start that was not baked loads seventy modules. Where no .pyc files were written (what uv does,
and ``pip --no-compile``) or none were kept, it takes 43 ms of CPU time with this file and 144 ms
without; beside .pyc files 37 and 39 (CPython 3.11, medians of 25 in one run). A checkout and an
editable install have no such file.
"""

from __future__ import annotations

# What importlib is made of, without the 1 ms of that package.
import _frozen_importlib  # type: ignore[import-not-found,unused-ignore]
import _frozen_importlib_external as _external  # type: ignore[import-not-found,unused-ignore]
import _imp
import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

__all__ = ["Loader", "install"]


class Loader(_external.SourceFileLoader):  # type: ignore[misc,name-defined,unused-ignore]
    """Loads one module; everything but where its code comes from is as ever."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self.content = content

    def get_code(self, fullname: str) -> Any:
        """Return the module's code, from its source where the file is damaged."""
        try:
            code = marshal.loads(self.content)  # noqa: S302 - as trusted as the source beside it
        except (ValueError, EOFError, TypeError):
            return super().get_code(fullname)
        _imp._fix_co_filename(code, self.path)  # type: ignore[attr-defined,unused-ignore]
        return code


class _Finder:
    """Finds the modules that the file holds.

    One whose source has another size than when it was compiled was changed: not found here.
    """

    def __init__(
        self, path: str, home: str, table: Dict[str, Tuple[int, int, int, bool]], start: int
    ) -> None:
        self.path = path
        self.home = home
        self.table = table
        self.start = start

    def find_spec(self, name: str, path: object = None, target: object = None) -> Optional[Any]:  # noqa: ARG002 - importlib's signature
        if name not in self.table:
            return None
        place, size, source_size, package = self.table[name]
        folder = os.path.join(self.home, *name.split(".")[1:])
        source = f"{folder}/__init__.py" if package else f"{folder}.py"
        try:
            if os.stat(source).st_size != source_size:
                return None
            # Opened each time: the entrypoint's child closes every descriptor that it finds.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                content = os.pread(descriptor, size, self.start + place)
            finally:
                os.close(descriptor)
        except OSError:
            return None
        if len(content) != size:
            return None
        spec = _frozen_importlib.ModuleSpec(
            name, Loader(name, source, content), origin=source, is_package=package
        )
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(folder)
        return spec


def install(home: str) -> None:
    """Import envdoctor's modules from the file for this Python, where there is one in
    ``home/_compiled`` and it can be read.
    """
    tag = sys.implementation.cache_tag
    if not tag or sys.flags.optimize:
        return
    path = f"{home}/_compiled/{tag}.code"
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(8)
            if head[:4] != _external.MAGIC_NUMBER:
                return
            length = int.from_bytes(head[4:], "little")
            table = marshal.loads(file.read(length))  # noqa: S302 - the same
    except (OSError, ValueError, EOFError, TypeError):
        return
    sys.meta_path.insert(0, _Finder(path, home, table, len(head) + length))  # type: ignore[arg-type,unused-ignore]
