"""What the platform tags of wheels admit (PEP 513, 571, 599 and 600)."""

from envdoctor.matrix.glibc_floors import floor_of_platforms


def test_floors():
    assert floor_of_platforms(["manylinux1_x86_64"]) == "2.5"
    assert (
        floor_of_platforms(["manylinux_2_28_x86_64", "manylinux2014_x86_64.manylinux_2_17_x86_64"])
        == "2.17"
    )
    assert floor_of_platforms(["linux_x86_64", "win_amd64", "musllinux_1_2_x86_64"]) is None
