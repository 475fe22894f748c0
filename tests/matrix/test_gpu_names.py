"""Names as nvidia-smi, collect_env and people write them, and PCI ids."""

import pytest

from envdoctor.matrix.loader import load_matrix


@pytest.fixture(scope="module")
def matrix():
    return load_matrix()


@pytest.mark.parametrize(
    ("name", "model", "capability", "kind"),
    [
        ("NVIDIA H20", "H20", "9.0", "datacenter"),
        ("NVIDIA H20-3e", "H20-3e", "9.0", "datacenter"),
        ("NVIDIA H100 80GB HBM3", "H100 80GB HBM3", "9.0", "datacenter"),
        ("NVIDIA H100 PCIe", "H100 PCIe", "9.0", "datacenter"),
        ("NVIDIA H100 NVL", "H100 NVL", "9.0", "datacenter"),
        ("H100 80GB SXM5", "H100", "9.0", "datacenter"),
        ("8x H100 80GB", "H100", "9.0", "datacenter"),
        ("H100 (MIG 2g.20gb)", "H100", "9.0", "datacenter"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "H100 80GB HBM3", "9.0", "datacenter"),
        ("NVIDIA H800", "H800", "9.0", "datacenter"),
        ("NVIDIA H200", "H200", "9.0", "datacenter"),
        ("NVIDIA GH200 480GB", "GH200 480GB", "9.0", "datacenter"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB", "8.0", "datacenter"),
        ("NVIDIA A100-SXM4-80GB (UUID: GPU-7a3c)", "A100-SXM4-80GB", "8.0", "datacenter"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe", "8.0", "datacenter"),
        ("NVIDIA A100 80GB PCIe x4", "A100", "8.0", "datacenter"),
        ("NVIDIA A800-SXM4-80GB", "A800-SXM4-80GB", "8.0", "datacenter"),
        ("NVIDIA PG509-210", "PG509-210", "8.0", "datacenter"),
        ("NVIDIA A10", "A10", "8.6", "datacenter"),
        ("NVIDIA A10G", "A10G", "8.6", "datacenter"),
        ("NVIDIA A10G x8", "A10G", "8.6", "datacenter"),
        ("NVIDIA L4", "L4", "8.9", "datacenter"),
        ("NVIDIA L40", "L40", "8.9", "datacenter"),
        ("NVIDIA L40S", "L40S", "8.9", "datacenter"),
        ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-16GB", "7.0", "datacenter"),
        ("V100", "Tesla V100", "7.0", "datacenter"),
        ("Tesla P100-PCIE-16GB", None, "6.0", "datacenter"),
        ("Tesla T4", "Tesla T4", "7.5", "datacenter"),
        ("NVIDIA T4", "Tesla T4", "7.5", "datacenter"),
        ("NVIDIA B200", "B200", "10.0", "datacenter"),
        ("NVIDIA GB200", "GB200", "10.0", "datacenter"),
        ("NVIDIA GB10", "GB10", "12.1", "workstation"),
        ("NVIDIA GB10 (DGX Spark)", "GB10", "12.1", "workstation"),
        ("NVIDIA GeForce RTX 5090", "GeForce RTX 5090", "12.0", "geforce"),
        ("NVIDIA GeForce RTX 5090 D", "GeForce RTX 5090 D", "12.0", "geforce"),
        ("RTX 4090 D x8", "GeForce RTX 4090 D", "8.9", "geforce"),
        ("NVIDIA GeForce RTX 3080 Ti", "GeForce RTX 3080 Ti", "8.6", "geforce"),
        ("GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti", "7.5", "geforce"),
        ("NVIDIA GeForce GTX 1080 Ti", "GeForce GTX 1080 Ti", "6.1", "geforce"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "GeForce RTX 4090 Laptop GPU", "8.9", "mobile"),
        ("NVIDIA RTX A6000", "RTX A6000", "8.6", "workstation"),
        ("A6000", "RTX A6000", "8.6", "workstation"),
        ("Quadro RTX 6000", "Quadro RTX 6000", "7.5", "workstation"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada Generation", "8.9", "workstation"),
        ("RTX 6000 Ada", "RTX 6000 Ada Generation", "8.9", "workstation"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "RTX PRO 6000 Blackwell Server Edition",
            "12.0",
            "datacenter",
        ),
        (
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            "RTX PRO 6000 Blackwell Workstation Edition",
            "12.0",
            "workstation",
        ),
        ("2x RTX PRO 6000 Blackwell", "RTX PRO 6000 Blackwell", "12.0", "workstation"),
        ("Orin (nvgpu)", "Orin", "8.7", "jetson"),
    ],
)
def test_names(matrix, name, model, capability, kind):
    found = matrix.gpu(name, None)
    assert found is not None
    assert model is None or found.name == model
    assert (found.compute_capability, found.kind) == (capability, kind)


@pytest.mark.parametrize(
    "name",
    [
        "RTX 6000",
        "H",
        "H2",
        "H1000",
        "NVIDIA",
        "GPU",
        "",
        "AMD Instinct MI300X",
        "RTX PRO 6000 Blackwell + RTX 6000 Ada",
        "Graphics Device",
        "RTX 3080 Laptop",
        "GRID A100-40C",
    ],
)
def test_what_does_not_name_a_model_stays_unknown(matrix, name):
    assert matrix.gpu(name, None) is None


def test_every_model_is_found_by_its_own_name_and_each_of_its_ids(matrix):
    for model in matrix.gpus:
        assert matrix.gpu(f"NVIDIA {model.name}", None) == model
        assert matrix.gpu(model.name.upper(), None) == model
    for pci_id, numbers in matrix._core["gpus"]["pci"].items():
        for number in numbers:
            model = matrix.gpus[number]
            assert matrix.gpu(model.name, f"10de:{pci_id}") == model
        assert matrix.gpu(None, pci_id) in [None, *(matrix.gpus[number] for number in numbers)]


def test_the_pci_id_wins_over_the_name(matrix):
    assert matrix.gpu("NVIDIA Graphics Device", "10de:2329").name == "H20"
    assert matrix.gpu("NVIDIA A100-SXM4-80GB", "10DE:2329").name == "H20"
    assert matrix.gpu("NVIDIA H20", "10de:fffe").name == "H20"  # an id that nobody knows
    assert matrix.gpu("NVIDIA H20", "1002:2329").name == "H20"  # of another maker
    assert matrix.gpu(None, "1002:2329") is None
    assert matrix.gpu(None, None) is None


def test_an_id_that_models_share(matrix):
    assert matrix.gpu("NVIDIA A2", "10de:25b6").name == "A2"
    assert matrix.gpu("NVIDIA A16", "10de:25b6").name == "A16"
    assert matrix.gpu(None, "10de:25b6").compute_capability == "8.6"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RTX4090", "GeForce RTX 4090"),
        ("NVIDIA GeForce-RTX4070TiSUPER", "GeForce RTX 4070 Ti SUPER"),
        ("gtx1080ti", "GeForce GTX 1080 Ti"),
        ("RTX6000Ada", "RTX 6000 Ada Generation"),
    ],
)
def test_a_name_may_be_written_without_spaces(matrix, name, expected):
    found = matrix.gpu(name, None)
    assert found is not None
    assert expected.startswith(found.name) or found.name.startswith(expected)


def test_a_name_without_spaces_is_that_of_one_model(matrix):
    """Each name of the table, joined, is the same model, or none where two would share it."""
    for model in matrix.gpus:
        joined = model.name.replace(" ", "")
        assert matrix.gpu(joined, None) in (model, None), model.name
