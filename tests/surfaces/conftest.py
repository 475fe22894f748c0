"""Packages written to a folder and read as the scanner reads wheels.

The scanner lies in scripts/, which is no package: its folder goes on the path.
"""

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from surface_scan.packages import Entry, Packages
from surface_scan.readings import Readings
from surface_scan.release import Release
from surface_scan.store import Archive, Sources


class Workshop:
    """Releases made of files: what the scanner says of them, and what Python does with them."""

    def __init__(self, folder):
        self.folder = folder
        self.sources = Sources(str(folder / "cache"))
        self.readings = Readings(self.sources)
        self.packages = Packages(
            ("maker", "user", "third"),
            frozenset(),
            frozenset(),
            {name: (name,) for name in ("maker", "user", "third")},
            {name: (Entry(name, "", True),) for name in ("maker", "user", "third")},
        )

    def release(self, package, files, version="1.0"):
        """Write a release and return it as the scanner reads it."""
        root = self.folder / f"{package}-{version}"
        members, contents = {}, []
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            content = text.encode()
            if path.endswith(".py"):
                members[path] = f"{package}:{path}:{zlib.crc32(content):08x}:{len(content):x}"
                contents.append((members[path], content))
            else:
                members[path] = ""
        archive = Archive(
            package,
            version,
            f"{package}-{version}-py3-none-any.whl",
            f"{package}{version}",
            "",
            members,
        )
        self.sources.keep(archive, contents)
        return Release(archive, self.packages, self.readings)

    def run(self, statements, *roots):
        """Run each statement in a Python of its own that has these packages; return the names of
        the errors, "" for none.
        """
        program = (
            "import json, sys, os\n"
            f"sys.path[:0] = {[str(self.folder / root) for root in roots]!r}\n"
            "found = []\n"
            f"for statement in {list(statements)!r}:\n"
            "    read, write = os.pipe()\n"
            "    if not os.fork():\n"
            "        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"
            "        try:\n"
            "            exec(statement, {})\n"
            "        except BaseException as error:\n"
            "            os.write(write, type(error).__name__.encode())\n"
            "        os._exit(0)\n"
            "    os.close(write)\n"
            "    os.wait()\n"
            "    found.append(os.read(read, 100).decode())\n"
            "print(json.dumps(found))\n"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)


@pytest.fixture
def workshop(tmp_path):
    return Workshop(tmp_path)
