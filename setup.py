"""Builds the compiled matrix into the package; everything else stands in pyproject.toml."""

import os
import shutil
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = os.path.dirname(os.path.abspath(__file__))


class BuildWithMatrix(build_py):
    """``build_py`` that compiles ``matrices/``: for an editable install beside the sources."""

    def run(self):
        """Compile, and leave out what an earlier editable install compiled."""
        super().run()
        sys.path.insert(0, ROOT)
        try:
            from envdoctor.matrix.source import write_compiled
        finally:
            sys.path.remove(ROOT)
        source = os.path.join(ROOT, "matrices")
        if self.editable_mode:
            write_compiled(source, os.path.join(ROOT, "envdoctor", "_compiled"), times=True)
            return
        destination = os.path.join(self.build_lib, "envdoctor", "_compiled")
        shutil.rmtree(destination, ignore_errors=True)
        write_compiled(source, destination, times=False)


setup(cmdclass={"build_py": BuildWithMatrix})
