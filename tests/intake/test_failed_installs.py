"""Of which packages a text says that to install them fails."""

import time

import pytest

from envdoctor.intake.failed_installs import failing_to_install


@pytest.mark.parametrize(
    "text",
    [
        "# Failed to Install flash-attn==2.7.4 with ModuleNotFoundError: No module named 'torch'",
        "Unable to install `flash-attn` even if I first install it alone",
        "When I try to install `flash_attn`",
        (
            "# flash-attn build issue (method: pip install): "
            "ModuleNotFoundError: No module named 'torch'"
        ),
        "Fix flash-attn install failing with 'No module named torch'",
        "Error with installing flash_attn when using given requirements.txt",
        "the error that I got when installing flash-attn",
        "I can't install flash-attn using pip",
        "`pip install flash-attn` fails for me",
        "安装 flash-attn 报错",
        "flash-attn安装失败",
    ],
)
def test_what_fails_to_install(text):
    assert failing_to_install(f"# It stops\n\n{text}\n") == {"flash-attn"}


@pytest.mark.parametrize(
    "text",
    [
        "I installed flash-attn and it fails to run",
        "After installing flash-attn the training fails",
        "How to install flash-attn?",
        "If installing flash-attn fails, use a wheel",
        "Installing flash-attn should not fail",
        "flash-attn is installed, torch fails",
        "Install flash-attn first, the error is below",
        "building the docker image fails",
        "We build on flash-attn, and it fails",
    ],
)
def test_what_is_installed_or_thought_of(text):
    assert failing_to_install(text) == frozenset()


def test_hostile_texts_take_no_time():
    start = time.process_time()
    for part in (
        "install ",
        "installing a ",
        "fail to install ",
        "pip install -a ",
        "build fails, ",
    ):
        failing_to_install(part * 5_000)
        failing_to_install(f"{part * 20}\n" * 500)
    assert time.process_time() - start < 1
