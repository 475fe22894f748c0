"""Descriptions of models that lie in a folder of this machine."""

from __future__ import annotations

import json
import os
from typing import Any, Dict

from ...errors import InputError
from ...model.workload import ROLES, Workload
from ...text_files import read_text

__all__ = ["read_model_files"]

#: What is read of a folder -> what is put behind its name.
_FILES = {"config.json": "", "model.safetensors.index.json": "#index"}


def read_model_files(workload: Workload) -> Dict[str, Dict[str, Any]]:
    """Read config.json and the safetensors index of each model of a run, where it is a folder;
    raises :class:`InputError` for a file that is no JSON.
    """
    models = [workload.value(f"{role}.model") for role in ROLES] + [workload.value("rollout.draft")]
    files: Dict[str, Dict[str, Any]] = {}
    for name in {str(model) for model in models if model}:
        for file_name, suffix in _FILES.items():
            path = os.path.join(os.path.expanduser(name), file_name)
            if not os.path.isfile(path):
                continue
            try:
                content = json.loads(read_text(path))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}: is no JSON: {error}") from error
            if isinstance(content, dict):
                files[name + suffix] = content
    return files
