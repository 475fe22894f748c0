"""What a text only hints at: the paths in it, the tags of files, and where its writer is."""

import time

import pytest

from envdoctor.intake import parse_report

from .pasted import read


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ('  File "C:\\Users\\me\\venv\\Lib\\site-packages\\peft\\__init__.py", line 3', "win32"),
        ("Obtaining file:///D:/src/project", "win32"),
        ("Python version: 3.12.9 (main) [MSC v.1942 64 bit (AMD64)]", "win32"),
        ("  Downloading scipy-1.14.0-cp312-cp312-win_amd64.whl (44 MB)", "win32"),
        ("Could not locate cudnn_cnn_infer64_8.dll.", "win32"),
        ("- **OS:** nt", "win32"),
        ("On Windows I always get this when I import it.", "win32"),
        ("I am working on windows 11 and torch does not find the GPU", "win32"),
        ("How do you solve this under windows?", "win32"),
        ("Windows 10 + conda: which triton?", "win32"),
        ("It does not work on Windows yet.", "win32"),
        ("bitsandbytes on Win11: DLL load failed", "win32"),
        ("在windows下安装报错", "win32"),
        ('  File "/Users/jo/dev/env/lib/python3.11/site-packages/vllm/a.py", line 1', "darwin"),
        ("Installing it on my MacBook Pro fails.", "darwin"),
        ("I try to run it on macOS 14.5", "darwin"),
        ('a 1.0 requires b<2; sys_platform == "darwin", but you have b 2.1 which is bad', "darwin"),
        # neither of two, somebody else's, a wish, what is offered, what it is like elsewhere
        ("On Windows it crashes, on Linux it hangs.", None),
        ("It works on Windows.", None),
        ("Is there Windows support?", None),
        ("Other people run it on macOS", None),
        ("Use the wheels for Windows users.", None),
        ("Should I switch to Windows?", None),
        ("The sliding windows of attention on long inputs", None),
        ("I opened two windows in tmux", None),
        ("No GUI: it draws on X11 windows", None),
        ("It fails on windows of size 4096", None),
        ("A picture: https://c/Users/x", None),
        ("ratio 3:1 and a:b", None),
        ("Installed in WSL2 on Windows 11", None),
        ("I run the docker container on Windows 11", None),
        ("/home/me/x.py was copied from C:\\Users\\me\\x.py", None),
        ("The Mac address of the NIC", None),
        ("macOS 14.4 arm64, Python 3.10.13", "darwin"),
        ("other people run it on macOS 14.4", None),
    ],
)
def test_the_platform(text, platform):
    assert read(f"torch 2.4.0\n{text}").value("os.platform") == platform


def test_a_statement_outweighs_what_is_hinted_at():
    text = "OS: Ubuntu 22.04\nI edit it on Windows with PyCharm"
    assert read(text).value("os.platform") == "linux"


def test_what_is_hinted_at_says_by_what():
    evidence = read("torch 2.4.0\nIt fails on Windows 11").evidence("os.platform")
    assert (evidence.source, evidence.detail) == ("report, line 2", "the text has 'Windows 11'")


@pytest.mark.parametrize("text", ["I work in WSL 2", "/mnt/c/Users/me/model", "使用WSL"])
def test_windows_subsystem_for_linux(text):
    facts = read(f"torch 2.4.0\n{text}")
    assert facts.value("os.wsl") is True
    assert facts.value("os.platform") != "win32"


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ('  File "/opt/env/lib/python3.12/site-packages/vllm/engine.py", line 4, in f', "3.12"),
        ('  File "C:\\Python310\\Lib\\site-packages\\torch\\__init__.py", line 4', "3.10"),
        ("ImportError: /x/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined", "3.10"),
        ("  Downloading torch-2.4.0-cp311-cp311-manylinux1_x86_64.whl.metadata (26 kB)", "3.11"),
        ('ERROR 05-26 [core.py:396]   File "/usr/lib/python3.9/dist-packages/a.py", line', "3.9"),
        ("There is no torch-2.4.0-cp311-cp311-linux_x86_64.whl any more", None),
        ("from /a/python3.9/site-packages/x.py to /a/python3.11/site-packages/x.py", None),
    ],
)
def test_the_python_of_paths_and_tags(text, python):
    facts = read(f"peft 0.10.0\n{text}")
    assert facts.value("python.version") == python


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("I tried to install it with Python 3.11, but it failed.", "3.11"),
        ("It is an environment with python 3.10.13 on Windows", "3.10"),
        ("You should use it with Python 3.11", None),
        ("It works with Python 3.11", None),
        ("It requires to be built with Python 3.11", None),
        ("It runs with Python 3.9 or newer", None),
    ],
)
def test_the_python_that_somebody_uses(text, python):
    version = read(f"peft 0.10.0\n{text}").value("python.version")
    assert (version or "")[:4] == (python or "")


@pytest.mark.parametrize(
    ("text", "machine"),
    [
        ("It fails on a DGX Spark", "aarch64"),
        ("I install it on linux-aarch64", "aarch64"),
        ("How to run it on arm64?", "aarch64"),
        ("It works on aarch64", None),
        ("I need wheels for aarch64", None),
        ("On x86_64 it works, on aarch64 it fails", None),
        ("On my MacBook with arm64 it fails", None),
        ("apache spark 3.5 on the cluster", None),
    ],
)
def test_the_processor(text, machine):
    assert read(f"peft 0.10.0\n{text}").value("os.architecture") == machine


def test_a_folder_of_metadata_names_a_release():
    text = "error in /v/lib/python3.11/site-packages/vllm-0.6.3.post1.dist-info/METADATA"
    assert read(text).value("distributions")["vllm"].version == "0.6.3.post1"


FRAME = 'File "/usr/local/lib/python{}/{}", line 3, in f\n    x()\n'


@pytest.mark.parametrize(
    ("stated", "files", "python"),
    [
        ("3.8.10", ["dist-packages/vllm/a.py"], "3.12"),  # the host's, and the image's
        ("3.12.3", ["dist-packages/vllm/a.py"], "3.12.3"),
        ("3.8.10", ["site-packages/pip/_internal/cli.py"], "3.8.10"),
        ("3.8.10", ["asyncio/runners.py"], "3.8.10"),
    ],
)
def test_the_python_that_a_traceback_goes_through(stated, files, python):
    lines = "".join(FRAME.format("3.12", file) for file in files)
    text = f"$ python --version\nPython {stated}\nTraceback (most recent call last):\n{lines}"
    assert parse_report(text).value("python.version") == python


def test_two_pythons_in_tracebacks_tell_nothing():
    lines = "".join(FRAME.format(minor, "site-packages/vllm/a.py") for minor in ("3.11", "3.12"))
    assert parse_report(f"Python 3.8.10\n{lines}").value("python.version") == "3.8.10"


def test_a_line_of_blanks_is_gone_through_once():
    start = time.process_time()
    parse_report("torch 2.6.0\n" + " " * 150_000 + "Windows\n")
    assert time.process_time() - start < 3


WHEELS = "https://download.pytorch.org/whl"
BUILDS = ("cu124", "cu128")


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        (f"pip install torch torchvision --index-url {WHEELS}/cu124", "12.4"),
        (f"I ran `uv pip install --pre torch --index-url {WHEELS}/nightly/cu128`", "12.8"),
        # the package index may have a newer one, or it is another package that comes from there
        (f"pip install torch --extra-index-url {WHEELS}/cu124", None),
        (f"pip install xformers --index-url {WHEELS}/cu124", None),
        # two were tried
        ("\n".join(f"pip install torch --index-url {WHEELS}/{one}" for one in BUILDS), None),
        (f"PyTorch CUDA build: 11.8\npip install torch --index-url {WHEELS}/cu124", None),
    ],
)
def test_the_index_of_torch_tells_its_cuda(text, cuda):
    facts = parse_report(f"GPU: RTX 4090\n{text}\n")
    assert cuda is None or facts.value("torch.cuda") == cuda
    assert cuda is not None or facts.value("torch.cuda") != "12.4"
