"""The sections of ``nvidia-smi -q``."""

from envdoctor.intake import parse_report

# docs.nvidia.com/deploy/nvidia-smi: the form; values of two A100s
QUERY = """==============NVSMI LOG==============

Timestamp                                 : Fri Mar 15 10:00:00 2024
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:01:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Product Architecture                  : Ampere
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    FB Memory Usage
        Total                             : 81920 MiB
        Used                              : 1344 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
        Used                              : 1 MiB
GPU 00000000:41:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    FB Memory Usage
        Total                             : 81920 MiB
        Used                              : 0 MiB
torch 2.5.1+cu124
"""


def test_each_section_is_its_own_device():
    facts = parse_report(QUERY)
    first, second = facts.value("gpus")
    assert facts.value("driver.release") == "550.54.15"
    assert facts.value("driver.cuda_version") == "12.4"
    assert (first.memory_total, first.memory_used) == (81920 << 20, 1344 << 20)
    assert (first.mig_mode, second.mig_mode) == (True, None)
    assert second.pci_bus == "00000000:41:00.0"
    assert second.memory_used == 0
    assert facts.value("report.unread") == ()
    assert facts.version_of("torch") == "2.5.1+cu124"
