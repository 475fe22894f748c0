"""Conditions of a source in words."""

import pytest

from envdoctor.diagnose.condition_words import denied, subjects_of, worded

WORDS = {
    "max_model_len > self.derived": "max_model_len (8192 here) is larger than derived",
    "self.heads % tp != 0": "heads is not a multiple of tp",
    "a % b == 0": "a is a multiple of b",
    "not a < b": "a is not smaller than b",
    "not self.enabled": "enabled is false, empty or not set",
    "self.config.enabled": "config.enabled is set",
    "a is None or (b and c is not None)": "a is not set or (b is set and c is set)",
    "kind not in ('a', 'b')": "kind is none of `('a', 'b')`",
    "name in registry": "name is in registry",
    "len(a) != len(b)": "the length of a is not the length of b",
    "not isinstance(x, str)": "x is not a str",
    "isinstance(x, str)": "x is a str",
    "not hasattr(x, 'y')": "x has no 'y'",
    "not os.path.exists(path)": "path does not exist",
    "not path.is_file()": "path is not a file",
    "os.path.isdir(path)": "path is a folder",
    "not is_flash_attn_2_available()": "flash_attn_2 is not available",
    "not name.startswith('x')": "name does not begin with 'x'",
    "torch.cuda.device_count() < 2": "`torch.cuda.device_count()` is smaller than 2",
    "not check(x)": "`check(x)` is false or empty",
    "check(x)": "`check(x)` holds",
    "1 < a < 3": "`1 < a < 3`",
    "not 1 < a < 3": "`1 < a < 3` is false",
    "except ImportError: import flash_attn": "`import flash_attn` raised ImportError",
    "except (OSError, ValueError): …": "OSError, ValueError came up",
    "match kind: 'a'": "kind is 'a'",
    "…": "",
    "no python at all": "`no python at all`",
}


@pytest.mark.parametrize("condition", WORDS)
def test_words(condition):
    assert worded(condition, {"max_model_len": "8192"}) == WORDS[condition]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("assert batch % world == 0", "batch is not a multiple of world"),
        ("assert a and not b", "a is false, empty or not set or b is set"),
        ("assert x is not None", "x is not set"),
        ("assert a in (1, 2)", "a is none of `(1, 2)`"),
        ("assert (", ""),
        ("check(x)", ""),
        ("", ""),
    ],
)
def test_what_is_so_where_an_assertion_fails(statement, words):
    assert denied(statement) == words


@pytest.mark.parametrize(
    ("condition", "modules", "variables", "capability"),
    [
        ("version.parse(torch.__version__) < version.parse('2.1')", {"torch"}, set(), False),
        ("not is_bitsandbytes_available()", {"bitsandbytes"}, set(), False),
        ("is_torch_greater_or_equal('2.5')", {"torch"}, set(), False),
        ("importlib.util.find_spec('flash_attn') is None", {"flash_attn"}, set(), False),
        ("except ImportError: import flash_attn", {"flash_attn"}, set(), False),
        ("os.environ.get('HF_TOKEN') is None", set(), {"HF_TOKEN"}, False),
        ("not envs.VLLM_USE_V1", set(), {"VLLM_USE_V1"}, False),
        ("'RANK' not in os.environ", set(), {"RANK"}, False),
        ("not current_platform.has_device_capability(80)", set(), set(), True),
        ("a < b", set(), set(), False),
    ],
)
def test_what_a_condition_asks_of_the_environment(condition, modules, variables, capability):
    assert subjects_of([condition]) == (modules, variables, capability)
