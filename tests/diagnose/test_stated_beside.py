"""The values that stand beside a failure and decide it."""

import pytest

from envdoctor.app import check
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix

MATRIX = load_matrix()


def message(text, tmp_path):
    path = tmp_path / "report.txt"
    path.write_text(text, encoding="utf-8")
    report = check(parse_report(text, MATRIX.package), MATRIX, logs=[str(path)])
    return next(entry.message for entry in report.findings if entry.code.endswith("95"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "GPU: Tesla V100\nRuntimeError: cutlassF: no kernel found to launch!\n",
            "the GPU is Tesla V100 of compute capability 7.0",
        ),
        (
            (
                "export NCCL_SOCKET_IFNAME=eth2\nncclSocketInit: connecting to address  with family "
                "59936 is neither AF_INET(2) nor AF_INET6(10)\n"
            ),
            "NCCL_SOCKET_IFNAME is eth2",
        ),
        (
            (
                "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth7\nncclSocketInit: connecting "
                "to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)\n"
            ),
            "NCCL_SOCKET_IFNAME is eth7",
        ),
        (
            (
                "vllm serve m --max-model-len 65536\nvllm 0.8.5\nRuntimeError: the odd max_model_len "
                "was not taken\n"
            ),
            "max_model_len is 65536",
        ),
    ],
)
def test_the_value_stands_in_the_message(text, value, tmp_path):
    assert value in message(text, tmp_path)


def test_nothing_is_said_of_what_the_message_is_not_about(tmp_path):
    text = "GPU: Tesla V100\nexport NCCL_SOCKET_IFNAME=eth2\nvllm 0.8.5\nKeyError: 'answer'\n"
    assert "Here" not in message(text, tmp_path)
