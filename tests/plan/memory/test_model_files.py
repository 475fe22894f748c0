"""Descriptions of models that lie in a folder of this machine."""

import json

import pytest

from envdoctor.errors import InputError
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.workload import Workload
from envdoctor.plan.memory.model_files import read_model_files


def workload(**models):
    here = Evidence("test")
    return Workload({f"{role}.model": Known(str(path), here) for role, path in models.items()})


def test_folders_are_read_and_names_are_not(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 64}))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {}}))
    read = read_model_files(workload(actor=tmp_path, critic="org/model"))
    assert read == {
        str(tmp_path): {"hidden_size": 64},
        f"{tmp_path}#index": {"weight_map": {}},
    }


def test_home_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    assert read_model_files(workload(actor="~/m")) == {"~/m": {}}


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_what_is_no_json_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"config\.json: is no JSON"):
        read_model_files(workload(actor=tmp_path))


def test_json_of_another_kind_is_left_out(tmp_path):
    (tmp_path / "config.json").write_text("[1]")
    assert read_model_files(workload(actor=tmp_path)) == {}
