"""Remedies that would not help whoever reads them are not given: each form beside its counterpart
in which they would. The lines are of real logs, with other names.
"""

import pytest

from envdoctor.app import check, diagnose
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix

MATRIX = load_matrix()


@pytest.fixture
def first(tmp_path):
    """The finding that a log leads with; None where it has none."""

    def run(text):
        log = tmp_path / "run.log"
        log.write_text(text, encoding="utf-8")
        traces = diagnose([str(log)], None, MATRIX).traces
        return traces[0].finding if traces else None

    return run


def words_of(finding):
    return " ".join(remedy.text for remedy in finding.remedies)


# --------------------------------------------------------------------------------------------------
# hints that Python and operators give


@pytest.mark.parametrize(
    ("asked", "hint", "is_told"),
    [
        ("leaning_rate", "learning_rate", True),  # a letter that is missing
        ("latest_predictions", "save_predictions", False),  # the nearest name that there is
        ("optimiser_state", "optimizer_state", True),
        ("processing_class", "processor", False),
    ],
)
def test_the_name_that_python_takes_for_meant(first, asked, hint, is_told):
    finding = first(
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 9, in <module>\n'
        f"    print(self.trainer.{asked})\n"
        f"AttributeError: 'MyTrainer' object has no attribute '{asked}'. Did you mean: '{hint}'?\n"
    )
    assert (f"Write {hint}" in words_of(finding)) is is_told
    assert finding.remedies


OPERATOR = (
    "RuntimeError: max(): Expected reduction dim to be specified for input.numel() == 0. "
    "Specify the reduction dim with the 'dim' argument.\n"
)


@pytest.mark.parametrize(
    ("file", "is_told"),
    [
        ("/opt/venv/lib/python3.11/site-packages/transformers/modeling_flash.py", False),
        ("/home/me/loss.py", True),
    ],
)
def test_what_an_operator_says_of_its_arguments_is_for_the_author_of_the_call(first, file, is_told):
    finding = first(
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 9, in <module>\n'
        "    trainer.train()\n"
        f'  File "{file}", line 469, in prepare\n'
        f"    longest = lengths.diff().max()\n{OPERATOR}"
    )
    assert ("reduction dim" in words_of(finding)) is is_told


@pytest.mark.parametrize(
    ("line", "is_named"),
    [
        ("late_start = max(0, len(final_rewards) // 5)", False),  # enters no function of json
        ("json.dump(final_rewards, file)", True),
    ],
)
def test_a_line_that_cannot_have_made_the_call_points_at_nothing(first, line, is_named):
    finding = first(
        "Traceback (most recent call last):\n"
        '  File "/home/me/pilot.py", line 279, in main\n'
        f"    {line}\n"
        '  File "/usr/lib/python3.10/json/__init__.py", line 179, in dump\n'
        "    for chunk in iterable:\n"
        '  File "/usr/lib/python3.10/json/encoder.py", line 179, in default\n'
        "    raise TypeError(f'Object of type {o.__class__.__name__} '\n"
        "TypeError: Object of type bool_ is not JSON serializable\n"
    )
    assert ("final_rewards" in words_of(finding)) is is_named


# --------------------------------------------------------------------------------------------------
# what is no event, whose folder it is, whose memory


def test_a_variable_that_was_printed_is_no_event(first):
    words = "System has unsupported display driver / cuda driver combination"
    assert first(f"HOME=/root\n_CUDA_COMPAT_STATUS={words} cuInit()=803\nPWD=/work\n") is None
    assert first(f"RuntimeError: Error 803: {words.lower()}\n") is not None


@pytest.mark.parametrize("prefix", ["", "[default0]:", "(task 3) "])
def test_a_variable_that_a_rank_printed_is_none_either(first, prefix):
    words = "CUDA out of memory. Tried to allocate 2.00 GiB"
    assert first(f"{prefix}LAST_ERROR={words}\n") is None


def test_a_process_that_is_held_to_a_share_is_not_told_to_take_less(first):
    line = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1008.00 MiB. GPU 0 has a "
        "total capacity of 14.74 GiB of which 7.43 GiB is free. Process 16553 has 7.31 GiB memory "
        "in use.{} Of the allocated memory 7.01 GiB is allocated by PyTorch, and 146.57 MiB is "
        "reserved by PyTorch but unallocated.\n"
    )
    capped = first(line.format(" 7.37 GiB allowed;"))
    assert "set_per_process_memory_fraction" in capped.message
    assert words_of(capped).startswith("Raise that share")
    assert "batch" in words_of(first(line.format("")))


def test_parameters_that_do_not_fit_are_no_matter_of_the_batch(first):
    finding = first(
        "Traceback (most recent call last):\n"
        '  File "/home/me/base_train.py", line 619, in <module>\n'
        '    model.to_empty(device="cuda")\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a "
        "total capacity of 3.68 GiB of which 14.38 MiB is free.\n"
    )
    assert "batch" not in words_of(finding)
    assert "smaller" in words_of(finding)


def test_a_folder_of_the_same_name_within_another_package_is_no_checkout(first):
    text = (
        "Traceback (most recent call last):\n"
        '  File "{}/compressed_tensors/schemes/wna8.py", line 14, in <module>\n'
        "    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32\n"
        "ModuleNotFoundError: No module named 'compressed_tensors.compressors.pack_quantized'\n"
    )
    own = first(text.format("/opt/src/vllm/model_executor/layers/quantization"))
    assert "runs from sources" not in own.message
    assert "runs from sources" in first(text.format("/opt/src")).message


@pytest.mark.parametrize(("called", "is_patched"), [("_orig_make_cache", True), ("make", False)])
def test_a_function_that_another_package_replaced(first, called, is_patched):
    finding = first(
        "Traceback (most recent call last):\n"
        '  File "/opt/plugin/plugin/patch/cache.py", line 518, in patched\n'
        f"    return {called}(**kwargs)\n"
        "TypeError: make_cache() got an unexpected keyword argument 'max_tokens'\n"
    )
    assert ("replace" in words_of(finding)) is is_patched
    assert ("out of that dict" in words_of(finding)) is not is_patched


# --------------------------------------------------------------------------------------------------
# an index that is behind


@pytest.mark.parametrize(
    ("listed", "is_behind"),
    [("0.8.1, 0.8.5, 0.8.6", True), ("0.8.6, 0.9.6, 0.24.0", False)],
)
def test_releases_for_every_platform_that_an_index_does_not_list(first, listed, is_behind):
    finding = first(
        "Python 3.10.12\n"
        "ERROR: Could not find a version that satisfies the requirement trl>=0.9.3 (from versions: "
        f"{listed})\nERROR: No matching distribution found for trl>=0.9.3\n"
    )
    assert ("from PyPI" in words_of(finding)) is is_behind


# --------------------------------------------------------------------------------------------------
# what nobody asked


def test_a_log_without_a_failure_warns_of_no_pins(tmp_path):
    log = tmp_path / "run.log"
    lines = "torch 2.6.0\nvllm 0.8.5\ntransformers 4.40.0\ntokenizers 0.19.1\n"
    log.write_text(f"{lines}Training done.\n", encoding="utf-8")
    diagnosis = diagnose([str(log)], None, MATRIX)
    assert not [one for one in diagnosis.findings if one.severity == "warning"]
    given = parse_report(lines, MATRIX.package)
    stated = diagnose([str(log)], given, MATRIX)
    assert [one for one in stated.findings if one.severity == "warning"]


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        ("--tp-size 8 --pp-size 2", False),
        ("--tp-size 16", True),
        ("--tp-size 8 --pp-size 1", False),
    ],
)
def test_stages_of_a_pipeline_may_be_on_other_nodes(options, is_told):
    text = (
        "GPU 0,1,2,3,4,5,6,7: NVIDIA H100 80GB HBM3\nPyTorch: 2.11.0+cu130\nsglang: 0.5.13.post1\n"
        f"\npython -m sglang.launch_server --model-path Qwen/Qwen3-8B {options}\n"
    )
    report = check(parse_report(text, MATRIX.package), MATRIX)
    assert any(one.code == "ED615" for one in report.findings) is is_told
