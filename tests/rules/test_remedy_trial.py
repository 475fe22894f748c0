"""Remedies that do not cure, or bring something of their own, are none: what they bring is said where
no other is left.
"""

import pytest

from envdoctor import app
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.finding import Finding, Remedy
from envdoctor.rules.installable import admitted
from envdoctor.rules.remedy_trial import environment_after, tried_remedies

MATRIX = load_matrix()


def install(requirement):
    return Remedy(f"Install {requirement}.", (InstallerCall("install", (requirement,)),))


def broken(*remedies, severity="error"):
    return Finding("ED308", "peft", "too-old", severity, "It fails.", remedies=remedies)


def judge_by(name, version, found):
    """Judge as if one release of a package were broken."""

    def judge(facts):
        return found if facts.value("distributions")[name].version == version else ()

    return judge


FACTS = parse_report("peft 0.14.0\ntransformers 4.46.3\n", MATRIX.package)
WORSE = Finding("ED390", "peft", "too-new", "error", "peft 0.13.2 fails too.")


def test_the_nearest_release_of_each_remedy_is_judged():
    finding = broken(install("peft<0.14"))
    ((only,),) = (
        judged.remedies
        for judged in tried_remedies([finding], FACTS, MATRIX, judge_by("peft", "0.13.2", [WORSE]))
    )
    assert only.commands == ()
    assert only.is_refused
    assert only.text.endswith("install peft<0.14; then, though: peft 0.13.2 fails too.")


def test_what_breaks_something_is_left_out_beside_what_does_not():
    finding = broken(install("peft<0.14"), install("transformers>=4.48,<5"))
    (judged,) = tried_remedies([finding], FACTS, MATRIX, judge_by("peft", "0.13.2", [WORSE]))
    assert judged.remedies == finding.remedies[1:]


def test_what_fails_already_or_elsewhere_is_no_fault_of_a_remedy():
    finding = broken(install("peft<0.14"))
    of_another = WORSE._replace(component="numpy")
    advised = WORSE._replace(severity="advice")
    for found in ([of_another], [advised], []):
        judged = tried_remedies([finding], FACTS, MATRIX, judge_by("peft", "0.13.2", found))
        assert judged == [finding]


@pytest.mark.parametrize("found", [broken(), WORSE._replace(severity="warning")])
def test_what_stays_or_is_warned_of_afterwards_is_no_cure(found):
    finding = broken(install("peft<0.14"))
    (judged,) = tried_remedies([finding], FACTS, MATRIX, judge_by("peft", "0.13.2", [found]))
    assert [remedy.is_refused for remedy in judged.remedies] == [True]


def test_the_next_release_that_brings_nothing_is_named():
    """transformers 4.46 to 4.48.0 scale gradients wrongly: a row warns of them."""
    facts = parse_report("trl 0.16.0\ntransformers 4.41.2\n", MATRIX.package)
    findings = app.judge(facts, MATRIX)
    tried = tried_remedies(findings, facts, MATRIX, lambda changed: app.judge(changed, MATRIX))
    (finding,) = [entry for entry in tried if entry.code == "ED301"]
    (first, *_) = finding.remedies
    assert first.commands[0].packages == ("transformers==4.48.3",)
    after = app.judge(parse_report("trl 0.16.0\ntransformers 4.48.3\n", MATRIX.package), MATRIX)
    assert not [entry for entry in after if entry.severity != "advice" and not entry.missing]


def test_wheels_for_cuda_are_no_remedy_of_a_torch_for_rocm():
    facts = parse_report("torch 2.4.0+rocm6.1\npeft 0.14.0\n", MATRIX.package)
    finding = broken(install("torch==2.6.0"), install("peft<0.14"))
    (judged,) = tried_remedies([finding], facts, MATRIX, lambda _: ())
    assert judged.remedies == finding.remedies[1:]


@pytest.mark.parametrize("severity", ["warning", "advice"])
def test_remedies_of_warnings_and_of_advice_are_tried(severity):
    finding = broken(install("peft<0.14"), severity=severity)
    (judged,) = tried_remedies([finding], FACTS, MATRIX, judge_by("peft", "0.13.2", [WORSE]))
    assert [remedy.is_refused for remedy in judged.remedies] == [True]


def test_each_environment_is_judged_once():
    judged = []

    def judge(changed):
        judged.append(changed.value("distributions")["peft"].version)
        return ()

    findings = [broken(install("peft<0.14"))._replace(subject=str(place)) for place in range(40)]
    tried_remedies(findings, FACTS, MATRIX, judge)
    assert judged == ["0.13.2"]


def test_a_remedy_of_the_thirteenth_error_is_tried():
    findings = [broken(install("peft<0.14"))._replace(subject=str(place)) for place in range(20)]
    tried = tried_remedies(findings, FACTS, MATRIX, judge_by("peft", "0.13.2", [WORSE]))
    assert all(remedy.is_refused for finding in tried for remedy in finding.remedies)


def test_a_diagnosis_tries_what_it_advises(tmp_path):
    """trl 0.12.2 bounds transformers below 4.47, and the first that has the name is newer."""
    facts = parse_report("trl 0.12.2\ntransformers 4.41.2\n", MATRIX.package)
    log = tmp_path / "run.log"
    log.write_text(
        'File "/x/trl/trainer/dpo_trainer.py", line 45, in <module>\n'
        "ImportError: cannot import name 'is_liger_kernel_available' from 'transformers.utils'\n"
    )
    texts = [
        remedy.text
        for trace in app.diagnose([str(log)], facts, MATRIX).traces
        for remedy in trace.finding.remedies
    ]
    assert texts[:2] == [
        "Install trl 0.11.4.",
        "Or, where trl has to stay, install transformers 4.45.0.",
    ]


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_what_no_release_can_cure_on_this_python_is_none(severity):
    facts = parse_report("Python 3.9.18\ntransformers 4.46.3\n", MATRIX.package)
    finding = broken(install("transformers>=5.0"), install("transformers>=4.48"), severity=severity)
    (judged,) = tried_remedies([finding], facts, MATRIX, lambda _: ())
    assert judged.remedies == finding.remedies[1:]  # of which 4.57 is for Python 3.9
    alone = finding._replace(remedies=finding.remedies[:1])
    (refused,) = tried_remedies([alone], facts, MATRIX, lambda _: ())[0].remedies
    assert refused.is_refused
    assert refused.text.endswith(
        "; no known release of transformers >=5.0 is for Python 3.9.18: take one >=3.10.0."
    )


@pytest.mark.parametrize("python", ["Python 3.12.3\n", ""])
def test_a_remedy_stays_first_where_its_python_is_there_or_not_known(python):
    facts = parse_report(python + "transformers 4.46.3\n", MATRIX.package)
    finding = broken(install("transformers>=5.0"), install("transformers>=4.48,<5"))
    assert tried_remedies([finding], facts, MATRIX, lambda _: ()) == [finding]


def test_a_row_that_somebody_wrote_knows_the_cure_of_what_was_measured():
    """torch 2.6 pins triton 3.2.0: an older triton, as it was measured, does not go with it."""
    facts = parse_report("torch 2.6.0\ntriton 3.2.0\nbitsandbytes 0.44.1\n", MATRIX.package)
    error = next(entry for entry in app.judge(facts, MATRIX) if entry.code == "ED308")
    assert "bitsandbytes>=0.48.0" in error.remedies[0].commands[0].packages
    assert "triton" not in error.remedies[0].text


@pytest.fixture(name="checked")
def _checked(tmp_path):
    """The findings of what somebody pasted, as ``check FILE`` makes them."""

    def check(text):
        path = tmp_path / "issue.txt"
        path.write_text(text)
        facts = parse_report(text, MATRIX.package)
        return app.check(facts, MATRIX, logs=[str(path)]).findings

    return check


def installs(findings, code):
    """What the remedies of a finding install, in order."""
    return [
        package
        for finding in findings
        if finding.code == code
        for remedy in finding.remedies
        for command in remedy.commands
        for package in command.packages
    ]


MEASURED = [
    ("ray 2.54.0\nvllm 0.17.0\n", ["ray==2.55.0", "vllm==0.16.0"]),
    (
        "diffusers 0.33.0\nhuggingface-hub 0.20.0\n",
        ["diffusers==0.32.2", "huggingface-hub==0.27.0"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), MEASURED)
def test_a_measured_pair_is_cured_by_its_nearest_releases(checked, text, expected):
    assert installs(checked(text), "ED308") == expected


@pytest.mark.parametrize(("text", "expected"), MEASURED)
def test_after_the_nearest_cure_the_pair_is_well(checked, text, expected):
    lines = dict(line.split() for line in text.splitlines())
    for pin in expected:
        name, version = pin.split("==")
        after = "\n".join(f"{key} {value}" for key, value in {**lines, name: version}.items())
        findings = checked(after)
        assert all(finding.severity != "error" for finding in findings)
        assert installs(findings, "ED308") == []


def test_no_release_between_is_cured_too(checked):
    """The nearest: the one before it still has the fault (0.26.5 has no DDUFEntry)."""
    assert installs(checked("diffusers 0.33.0\nhuggingface-hub 0.26.5\n"), "ED308")


def test_a_requirement_is_met_by_either_side(checked):
    """trl 0.11.4 is the last that goes with transformers 4.41.2: 0.12 takes it by its metadata, and
    imports what it does not have.
    """
    assert installs(checked("trl 0.16.0\ntransformers 4.41.2\n"), "ED301") == [
        "transformers==4.48.3",
        "trl==0.11.4",
    ]


def test_an_old_release_that_bounds_nothing_is_no_remedy(checked):
    """optimum 1.13 of 2023 asks for any transformers; that of 2025 it did not know."""
    pins = installs(checked("optimum 1.19.0\ntransformers 4.50.0\n"), "ED301")
    assert pins[1:] == ["optimum==2.0.0"]


def test_where_the_newest_would_break_something_the_nearest_is_named():
    newest = str(admitted(MATRIX.package("peft"), "")[-1])
    finding = broken(install("peft>0.14"))
    (judged,) = tried_remedies([finding], FACTS, MATRIX, judge_by("peft", newest, [WORSE]))
    assert judged.remedies[0].commands[0].packages == ("peft==0.15.0",)
    assert "newer ones break something else here" in judged.remedies[0].text


def test_beside_what_is_not_known_no_later_major_is_taken(checked):
    """transformers 5 came out two years after vllm 0.7.3, which bounds it from below alone."""
    assert installs(checked("vllm 0.7.3\ntransformers 4.47.1\n"), "ED301")[:1] == [
        "transformers>=4.48.2,<5"
    ]
    whole = FACTS.updated({"distributions.complete": Known(True, Evidence("list"))})
    finding = broken(install("transformers>=4.48"))
    assert tried_remedies([finding], whole, MATRIX, lambda _: ()) == [finding]
    assert tried_remedies([finding], FACTS, MATRIX, lambda _: ()) != [finding]


def test_what_the_text_itself_asks_for_is_not_taken_away(checked):
    """Both move in one command, as the release of vllm that is there refuses what is asked for."""
    listed = "torch 2.10.0\ntransformers 5.3.0\nvllm 0.17.1\n"
    assert installs(checked(listed), "ED301") == ["transformers>=4.56.0,<5"]
    asked = f'{listed}$ pip install -U "transformers>=5.2.0"\n'
    assert installs(checked(asked), "ED301") == ["vllm==0.19.1", "transformers==5.5.1"]
    after = listed.replace("5.3.0", "5.5.1").replace("0.17.1", "0.19.1")
    assert installs(checked(after), "ED301") == []


@pytest.mark.parametrize(
    ("model", "is_kept"), [("Qwen/Qwen2.5-VL-7B-Instruct", False), ("Qwen/Qwen2.5-7B", True)]
)
def test_the_model_of_a_text_is_not_taken_away(checked, model, is_kept):
    """transformers knows Qwen2.5-VL from 4.49.0 on, and has shard_checkpoint to 4.46.3."""
    line = "ImportError: cannot import name 'shard_checkpoint' from 'transformers.modeling_utils'\n"
    pins = installs(checked(f"# autoawq: running {model} fails\n{line}"), "ED390")
    assert ("transformers==4.46.3" in pins) is is_kept


def test_the_other_package_of_a_row_is_moved_where_one_must_stay(checked):
    """Of autoawq no table has the releases: the row ends before 0.2.7."""
    line = "ImportError: cannot import name 'shard_checkpoint' from 'transformers.modeling_utils'\n"
    text = f"# Qwen2.5-VL-72B-Instruct-AWQ fails\n{line}autoawq 0.2.5\ntransformers 4.50.0\n"
    assert installs(checked(text), "ED390") == ["autoawq>=0.2.7"]


def test_what_a_line_asks_of_a_release_bounds_all_remedies(checked):
    """Its row says click<8.3; the line comes from click 8.2 on."""
    line = "TypeError: Parameter.make_metavar() missing 1 required positional argument: 'ctx'\n"
    listed = "ray 2.44.0\nclick 8.4.0\nPython 3.10.12\n"
    assert "click==8.1.8" in installs(checked(listed + line), "ED390")
    assert "click==8.2.1" not in installs(checked(listed + line), "ED390")
    finding = broken(install("click<8.3"))
    facts = parse_report(listed, MATRIX.package)
    for within, is_refused in ((), False), (("click<8.2.0",), True), (("ray>=2",), False):
        (judged,) = tried_remedies([finding], facts, MATRIX, lambda _: (), within)
        assert judged.remedies[0].is_refused is is_refused


def test_what_an_installer_changes_besides_cures_what_is_said_of_it(checked):
    """torchvision 0.19 asks for torch 2.4.0, for which vllm 0.6.3 and xformers were built."""
    text = "vllm 0.6.3\ntorch 2.2.0\ntorchvision 0.17.0\nxformers 0.0.27.post2\n"
    findings = [entry for entry in checked(text) if entry.severity != "advice"]
    first, *others = [entry.remedies[0].text for entry in findings]
    assert findings[0].remedies[0].commands[0].packages == ("torchvision==0.19", "torch==2.4.0")
    assert "with torch 2.4.0, which it pins" in first
    assert set(others) == {"What cures ED304 of torch cures this, too."}


def commands_for(text, remedy):
    facts = parse_report(text, MATRIX.package)
    (judged,) = tried_remedies([broken(remedy)], facts, MATRIX, lambda _: ())
    return [str(call) for entry in judged.remedies for call in entry.commands]


@pytest.mark.parametrize(
    ("text", "requirement", "expected"),
    [
        ("torch 2.3.0+cpu\n", "torch==2.3.1", "whl/cpu"),
        ("OS: Windows\ntorch 2.5.0+cu124\n", "torch==2.7.0", "whl/cu128"),
        ("OS: Windows\ntorch 2.5.0+cu124\n", "torch==2.5.1", "whl/cu124"),
        ("OS: Windows\ntorch 2.5.0+cu124\n", "torchvision==0.20.1", "whl/cu124"),
        ("torch 2.5.0+cu124\n", "torch==2.6.0", ""),
        ("torch 2.3.0+cu118\n", "torchvision==0.18.0", "whl/cu118"),
        ("torch 2.3.0+cpu\n", "transformers==4.46.3", ""),
    ],
)
def test_torch_comes_from_the_index_of_the_torch_that_is_there(text, requirement, expected):
    (command,) = commands_for(text, install(requirement))
    assert command.partition("download.pytorch.org/")[2].split(" ")[0] == expected


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        ("torch 2.6.0+xpu\n", "torch==2.7.0"),
        ("torch 2.3.0\nipex-llm 2.1.0\n", "vllm>=0.5.4"),
        ("torch 2.5.1\ntorch-npu 2.5.1\n", "vllm==0.9.2"),
        ("torch 2.3.0+cpu\n", "vllm>=0.5.4"),
        ("torch 2.2.0a0+6a974be\n", "torch==2.2.2"),  # a vendor's, which no index has
        ("torch 2.4.0\n", "torch==2.1.0a0"),
        ("OS: Windows\nPython 3.10\n", "vllm>=0.5.4"),
        ("macOS 14.5\nPython 3.10\n", "sgl-kernel==0.0.4"),
    ],
)
def test_what_is_for_other_devices_or_on_no_index_is_no_remedy(text, requirement):
    assert commands_for(text, install(requirement)) == []


@pytest.mark.parametrize("label", ["", "+cpu", "+cu118"])
def test_what_belongs_to_a_torch_is_named_with_its_release(label, tmp_path):
    """torchvision 0.18.0 asks for torch 2.3.0; with it nothing is said any more."""
    text = f"torch 2.3.0{label}\ntorchvision 0.17.0{label}\n"
    report = app.check(parse_report(text, MATRIX.package), MATRIX)
    (command,) = {
        str(call) for entry in report.findings for way in entry.remedies for call in way.commands
    }
    assert "'torchvision==0.18.0' 'torch==2.3.0'" in command
    after = parse_report(f"torch 2.3.0{label}\ntorchvision 0.18.0{label}\n", MATRIX.package)
    assert not app.check(after, MATRIX).findings


def test_what_a_release_requires_is_tried_with_it(checked):
    """vllm 0.7.2 pins torch 2.5.1 and transformers from 4.48.2: pip brings them."""
    text = "vllm 0.6.3.post1\ntorch 2.4.0\ntransformers 4.45.2\nKeyError: 'qwen2_5_vl'\n"
    remedies = [entry.remedies for entry in checked(text) if entry.row == "qwen2.5-vl-vllm"]
    assert [way.is_refused for ways in remedies for way in ways] in ([], [False])
    facts = parse_report("vllm 0.6.3.post1\ntorch 2.4.0\n", MATRIX.package)
    after = environment_after(install("vllm==0.7.3"), facts, MATRIX)
    assert {name: after.version_of(name) for name in ("vllm", "torch")} == {
        "vllm": "0.7.3",
        "torch": "2.5.1",
    }


@pytest.mark.parametrize(
    ("version", "installs", "words"),
    [
        ("2.4.0a0+07cecf4168.nv24.05", "vllm>=0.6.4", "a build of no index"),
        ("2.4.0+rocm6.1", "torch==2.5.1", "a build for ROCm"),
        ("2.5.1+xpu", "torch==2.6.0", "a build for Intel GPUs"),
    ],
)
def test_what_a_vendor_built_is_not_replaced_by_what_the_index_has(version, installs, words):
    facts = parse_report(f"torch {version}\nvllm 0.5.3\n", MATRIX.package)
    finding = broken(install(installs))
    (judged,) = tried_remedies([finding], facts, MATRIX, lambda _: ())
    assert [way.is_refused for way in judged.remedies] == [True]
    assert words in judged.remedies[0].text


def test_the_other_side_of_a_row_is_tried_too(checked):
    """deepspeed 0.14 goes with torch before 2.4: none that is in the place of a vendor's."""
    texts = [
        way.text
        for label in ("", "a0+07cecf4168.nv24.05")
        for entry in checked(f"torch 2.4.0{label}\ndeepspeed 0.14.0\n")
        if entry.row == "deepspeed-elastic-log-torch-2.4"
        for way in entry.remedies
    ]
    assert [text for text in texts if text.startswith("Or, where deepspeed has to stay")] == [
        "Or, where deepspeed has to stay, install torch before 2.4.0."
    ]


@pytest.mark.parametrize(
    ("torch", "expected"),
    [
        ("2.5.1+rocm6.2", "--index-url https://download.pytorch.org/whl/rocm6.2"),
        ("2.5.1+cu118", "--index-url https://download.pytorch.org/whl/cu118"),
        ("2.5.1", "'torchvision==0.20.1' 'torch==2.5.1'"),
    ],
)
def test_a_companion_is_that_of_the_torch_that_is_here(checked, torch, expected):
    text = f"torch {torch}\ntorchvision\nRuntimeError: operator torchvision::nms does not exist\n"
    (finding,) = [entry for entry in checked(text) if entry.code == "ED495"]
    assert expected in str(finding.remedies[0].commands[0])
    assert "torchvision==0.20.1" in str(finding.remedies[0].commands[0])


@pytest.mark.parametrize(
    ("torch", "said"),
    [
        ("2.6.0a0+ecf3bae40a.nv25.01", "keep the torchvision that came with it"),
        ("2.8.0.dev20250501+cu128", "the torchvision of the same day"),
    ],
)
def test_no_wheel_of_an_index_goes_with_a_torch_of_none(checked, torch, said):
    text = f"torch {torch}\ntorchvision 0.20.1\noperator torchvision::nms does not exist\n"
    remedies = [way for entry in checked(text) for way in entry.remedies]
    assert remedies
    assert not [way for way in remedies if way.commands]
    assert said in remedies[0].text


def test_what_is_missing_is_installed_in_the_release_that_goes_with_what_is_there(checked):
    """flash-attn 2.5.6 has wheels for torch up to 2.2, cuBLAS 12.1.3.1 is the pin of 2.1 to 2.4."""
    line = "ModuleNotFoundError: No module named 'torch'\n"
    python = "Python 3.10.12\n"
    beside = "flash-attn 2.5.6\nnvidia-cublas-cu12 12.1.3.1\n"
    assert installs(checked(python + beside + line), "ED395") == ["torch==2.2.2"]
    assert installs(checked(python + "transformers 4.51.3\n" + line), "ED395") == ["torch"]


@pytest.mark.parametrize(("processor", "is_refused"), [("x86_64", True), ("arm64", False)])
def test_the_processor_of_a_mac_counts(processor, is_refused):
    """The last wheel of torch for Intel's is 2.2.2."""
    text = f"OS: macOS 13.6 ({processor})\nPython 3.11\ntorch 2.2.2\n"
    facts = parse_report(text, MATRIX.package)
    (judged,) = tried_remedies([broken(install("torch>=2.4"))], facts, MATRIX, lambda _: ())
    assert [way.is_refused for way in judged.remedies] == [is_refused]


def test_what_is_made_for_cuda_is_no_remedy_on_macos(checked):
    line = "ImportError: This modeling file requires the following packages that were not found: "
    text = f"macOS 14.5\ntorch 2.3.1\n{line}flash_attn. Run `pip install flash_attn`\n"
    ways = [way for entry in checked(text) for way in entry.remedies]
    assert ways
    assert all(way.is_refused for way in ways)


OTHER_BUILDS = [
    # The driver is of CUDA 11.8; a build for no GPU; CUDA 13 left Volta out.
    ("Driver Version: 520.56.06\ntorch 2.3.0+cu121\nGPU: NVIDIA RTX 4060 Ti\n", "2.3.0+cu118"),
    ("Driver Version: 535.129.03\ntorch 2.9.0+cpu\nGPU: A100-SXM4-80GB\n", "2.9.0+cu129"),
    ("Driver Version: 580.95.05\ntorch 2.11.0+cu130\nGPU: V100-SXM2-32GB\n", "2.11.0+cu126"),
]


@pytest.mark.parametrize(("text", "cured"), OTHER_BUILDS)
def test_another_build_of_torch_is_named_and_cures(checked, text, cured):
    text = f"Python 3.11.9\n{text}"
    release, _, label = cured.partition("+")
    (command,) = {
        str(call) for entry in checked(text) for way in entry.remedies for call in way.commands
    }
    assert f"whl/{label} 'torch=={release}'" in command
    assert "--force-reinstall" in command  # for pip 2.3.0+cu121 meets ==2.3.0
    before = next(line for line in text.splitlines() if line.startswith("torch "))
    after = checked(text.replace(before, f"torch {cured}"))
    cures = {"ED101", "ED120", "ED123"}
    assert not [entry for entry in after if entry.severity == "error" or entry.code in cures]


def test_what_belongs_to_torch_changes_with_its_build(checked):
    """torchvision 0.22.0 asks for torch 2.7.0."""
    text = "Driver Version: 570.86.15\nGPU: GeForce RTX 5090\ntorch 2.5.1\ntorchvision 0.20.1\n"
    assert installs(checked(text), "ED120") == ["torchvision==0.22.0", "torch==2.7.0"]


def test_no_build_of_an_index_takes_the_place_of_a_vendors(checked):
    text = "Driver Version: 470.57.02\ntorch 2.4.0a0+07cecf4168.nv24.05\nGPU: A100\n"
    assert not [call for entry in checked(text) for way in entry.remedies for call in way.commands]


# --------------------------------------------------------------------------------------------------
# what lines of a log and a text ask for


def of_line(*remedies):
    return Finding("ED395", "peft", "too-new", "warning", "peft has no name.", remedies=remedies)


def test_of_several_lines_about_one_package_the_release_that_has_all_is_named():
    within = ["peft>=0.6.0,<=0.12.0", "peft>=0.4.0,<=0.10.0"]
    (judged,) = tried_remedies(
        [of_line(install("peft==0.12.0"))], FACTS, MATRIX, lambda _: (), within
    )
    (only,) = judged.remedies
    assert [str(entry) for call in only.commands for entry in call.packages] == ["peft==0.10.0"]


def test_lines_that_no_release_meets_leave_no_remedy():
    within = ["peft>=0.12.0", "peft<=0.10.0"]
    (judged,) = tried_remedies(
        [of_line(install("peft==0.12.0"))], FACTS, MATRIX, lambda _: (), within
    )
    assert [way.is_refused for way in judged.remedies] == [True]


@pytest.mark.parametrize(("said", "is_refused"), [("peft<=0.14.0", True), ("peft<=0.15.2", False)])
def test_a_requirement_that_a_text_states_bounds_a_remedy(said, is_refused):
    facts = parse_report("peft 0.14.0\ntransformers 4.46.3\n", MATRIX.package)
    asked = Known({"swift": said}, Evidence("report"))
    facts = type(facts)({**dict(facts), "report.asked_otherwise": asked})
    (judged,) = tried_remedies([broken(install("peft==0.15.2"))], facts, MATRIX, lambda _: ())
    assert [way.is_refused for way in judged.remedies] == [is_refused]
