"""ED808: two distributions write the files of one module."""

from __future__ import annotations

import pytest

from .conftest import Judge, by_code, codes, facts_of


@pytest.mark.parametrize(
    ("packages", "module"),
    [
        (["opencv-python 4.8.0.74", "opencv-python-headless 4.11.0.86"], "cv2"),
        (["opencv-contrib-python 4.8.0.74", "opencv-python 4.8.0.74"], "cv2"),
        (["cupy-cuda11x 13.3.0", "cupy-cuda12x 13.3.0"], "cupy"),
        (["onnxruntime 1.19.0", "onnxruntime-gpu 1.19.0"], "onnxruntime"),
        (["faiss-cpu 1.8.0", "faiss-gpu-cu12 1.8.0"], "faiss"),
        (["pynvml 11.5.0", "nvidia-ml-py 12.535.133"], "pynvml"),
    ],
)
def test_two_writers_of_one_module_are_a_note(
    judged: Judge, packages: list[str], module: str
) -> None:
    finding = by_code(judged(facts_of(packages, complete=False)), "ED808")
    assert (finding.kind, finding.severity, finding.subject) == ("two-copies", "advice", module)
    names = {package.split()[0] for package in packages}
    assert set(finding.packages) == names
    assert all(package in finding.message for package in packages)
    uninstall, install = finding.remedies[0].commands
    assert set(uninstall.packages) == names  # type: ignore[union-attr]
    assert install.packages[0] in names  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "packages",
    [
        ["opencv-python-headless 4.11.0.86"],
        ["pynvml 12.0.0", "nvidia-ml-py 12.535.133"],  # it asks for the other since 12
        ["pynvml", "nvidia-ml-py 12.535.133"],
        ["protobuf 5.29.0", "google-auth 2.37.0"],  # a namespace
        ["nvidia-cublas-cu12 12.4.5.8", "nvidia-cudnn-cu12 9.1.0.70"],
        ["flash-attn 2.8.3", "flash-attn-4 4.0.0"],  # parts of one another
    ],
)
def test_one_writer_and_parts_are_none(judged: Judge, packages: list[str]) -> None:
    assert "ED808" not in codes(judged(facts_of(packages, complete=False)))
