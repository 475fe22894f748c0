"""Builds the compiled matrix into the package, for wheels and for editable installs; everything else stands in pyproject.toml.

A wheel gets the compiled code for the Python that builds it too, and for those that ENVDOCTOR_BUILD_PYTHONS names (python3.10:python3.13).
"""

import os
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = os.path.dirname(os.path.abspath(__file__))


class BuildWithMatrix(build_py):
    """``build_py`` that compiles ``matrices/``: beside the sources for an editable install, else into the build folder."""

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
        others = [
            python for python in os.environ.get("ENVDOCTOR_BUILD_PYTHONS", "").split(":") if python
        ]
        for python in [sys.executable, *others]:
            command = [
                python,
                os.path.join(ROOT, "scripts", "compile_code"),
                os.path.join(self.build_lib, "envdoctor"),
                destination,
            ]
            subprocess.run(command, check=True)


setup(cmdclass={"build_py": BuildWithMatrix})
