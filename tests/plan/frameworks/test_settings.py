"""Overrides against Hydra's own parser, files against PyYAML and OmegaConf."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from envdoctor.errors import InputError
from envdoctor.model.evidence import Evidence, Known, Unknown
from envdoctor.plan.frameworks.configuration import Configuration
from envdoctor.plan.frameworks.key_tables import load_table
from envdoctor.plan.frameworks.settings import Setting, flags, override, read_config, unfolded
from envdoctor.plan.shell.reader import Word

parser = OverridesParser.create()


def ours(text: str) -> tuple[str, object, str]:
    setting = override(Word(text, 1), "s.sh")
    assert setting is not None, text
    return setting.key, setting.value, setting.operator


def plain(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return getattr(value, "text", value)  # a quoted string


def hydras(text: str) -> tuple[str, object, str]:
    parsed = parser.parse_override(text)
    operator = {"ADD": "+", "FORCE_ADD": "++", "DEL": "~", "CHANGE": ""}[parsed.type.name]
    return parsed.key_or_group, plain(parsed.value()), operator


@pytest.mark.parametrize(
    "text",
    [
        "a.b=1", "+a.b=1.5", "++a.b=null", "a.b=True", "a.b=false", "a.b=text", "a.b=path/to/x-1.0", "a.b=1e-6", "a.b=-3", "a.b=[1,2,x]",
        "a.b=['console','wandb']", 'a.b=["a b",c]', "a.b={x:1,y:[1,2]}", "a.b='quoted text'", "a.b=1_000", "a.b=[]", "a.b={}", "a.b=[[1,2],[3]]",
        "a.b={x:{y:null}}", "~a.b", "a.b=${c.d}", "a.b='1'", "a.b=10k", "a.b=.5", "a.b=1.", "a.b=",
    ],
)  # fmt: skip
def test_an_override_means_what_hydra_makes_of_it(text: str) -> None:
    key, value, operator = hydras(text)
    mine = ours(text)
    assert mine[0] == key
    assert mine[2] == operator
    assert mine[1] == value or (value in ("", None) and mine[1] in ("", None)), (mine, value)


SCALARS = st.one_of(
    st.integers(-9999, 9999).map(str),
    st.sampled_from(
        ["true", "False", "null", "0.5", "1e-5", "abc", "a-b", "x/y", "Qwen2.5-7B", "'a b'"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.dictionaries(st.sampled_from(["k", "l", "m"]), inner, max_size=2).map(
            lambda d: "{" + ",".join(f"{k}:{v}" for k, v in d.items()) + "}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(VALUES)
def test_generated_overrides_mean_what_hydra_makes_of_them(value: str) -> None:
    assert ours(f"a.b={value}")[1] == hydras(f"a.b={value}")[1]


TREES = st.recursive(
    st.one_of(
        st.integers(-99, 99),
        st.booleans(),
        st.none(),
        st.floats(-9, 9).map(lambda x: round(x, 3)),
        st.text("abc 1", max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("abcxyz_", min_size=1, max_size=4), inner, max_size=3),
    ),
    max_leaves=12,
)


def leaves(tree: object, prefix: str = "") -> dict[str, object]:
    if isinstance(tree, dict) and tree:
        return {
            key: value
            for name, inner in tree.items()
            for key, value in leaves(inner, f"{prefix}.{name}" if prefix else name).items()
        }
    return {prefix: tree}


@settings(max_examples=200)
@given(
    st.dictionaries(st.text("abcxyz_", min_size=1, max_size=4), TREES, min_size=1, max_size=4),
    st.booleans(),
)
def test_a_file_has_the_leaves_that_pyyaml_loads(tree: dict[str, object], flow: bool) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow)
    found = {setting.key: setting.value for setting in read_config(text, "c.yaml")}
    assert found == leaves(yaml.safe_load(text))


def test_lines_of_a_file_are_its_own() -> None:
    text = "# c\na:\n  b: 1\n  c: [1,\n    2]\n\nd: &x {e: 2}\nf: *x\n"
    assert [(setting.key, setting.place.source) for setting in read_config(text, "c.yaml")] == [
        ("a.b", "c.yaml:3"), ("a.c", "c.yaml:4"), ("d.e", "c.yaml:7"), ("f.e", "c.yaml:7"),
    ]  # fmt: skip


def test_interpolations_are_those_of_omegaconf(tmp_path: Path) -> None:
    text = "data:\n  n: 4\n  m: ${data.n}\n  s: ${.n}\n  t: x${data.n}y\n  u: ${oc.env:NOPE_NOT_SET,7}\n"
    text += "  v: ${oc.select:data.none,9}\n  w:\n    z: ${..n}\n"
    path = tmp_path / "c.yaml"
    path.write_text(text)
    theirs = OmegaConf.load(path)
    configuration = Configuration(
        load_table("tinyzero"), load_table("tinyzero").versions, (), read_config(text, "c.yaml"), {}
    )
    for key in ("data.n", "data.m", "data.s", "data.t", "data.u", "data.v", "data.w.z"):
        fact = configuration.get(key)
        assert isinstance(fact, Known), key
        assert fact.value == OmegaConf.select(theirs, key), key


def test_references_in_a_circle_end() -> None:
    found = read_config("a: ${b}\nb: ${a}\n", "c.yaml")
    configuration = Configuration(
        load_table("tinyzero"), load_table("tinyzero").versions, (), found
    )
    assert isinstance(configuration.get("a"), Unknown)


def test_options_are_read_as_argparse_takes_them() -> None:
    words = [
        Word(text, number)
        for number, text in enumerate(
            ["--a", "1", "--b=2", "--switch", "--c-d", "x", "y", "--e", "-1.5", "rest"]
        )
    ]
    settings_, rest = flags(words, "s.sh", ("switch",))
    assert {setting.key: setting.value for setting in settings_} == {
        "a": 1,
        "b": 2,
        "switch": True,
        "c_d": ["x", "y"],
        "e": [-1.5, "rest"],
    }
    assert rest == []


def test_without_pyyaml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match="pip install PyYAML"):
        read_config("a: 1", "c.yaml")


def test_a_secret_in_an_object_of_an_option_is_hidden():
    option = Setting("config", '{"model": "a/b", "api_key": "of-mine"}', Evidence("run.sh"), "--")
    assert unfolded(option).value == {"model": "a/b", "api_key": "***"}
    for text in ("{no object", "a/b"):
        assert unfolded(option._replace(value=text)).value == text
