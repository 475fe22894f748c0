"""Many nodes on one machine: what each shows of itself is laid over /proc and /sys in a mount
namespace of its own, behind a ``python`` that every engine starts.

A node is a folder of files; what is planted in one is a line of shell that changes its files, its
variables or its limits before the real probes read them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, NamedTuple, Set

__all__ = ["PLAIN", "PLANTED", "Machines", "Plant", "names"]

#: Nodes in which nothing is planted: more than of any other kind.
PLAIN = 3

_GPUS = 8
_RELEASE = "570.86.15"

#: What is laid over the machine's own files, if both are there.
_LAID = (
    "etc/os-release",
    "proc/meminfo",
    "proc/driver",
    "proc/bus/pci/devices",
    "proc/sys/kernel/numa_balancing",
    "sys/module",
    "sys/class",
    "sys/bus/pci",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/iommu_groups",
)


class Plant(NamedTuple):
    """What is done to a node, in shell, in the folder of its files; in what it differs then."""

    script: str
    differs: Set[str]


def _set(path: str, text: str, *differs: str) -> Plant:
    return Plant(f"echo '{text}' >{path}", set(differs))


def _gpu(settings: str, *differs: str) -> Plant:
    """Change what the fake driver says, after what all nodes have."""
    return Plant(f"FAKE_NVIDIA={settings},$FAKE_NVIDIA", set(differs))


def _variable(name: str, value: str) -> Plant:
    return Plant(f"export {name}='{value}'", {f"${name}"})


def _version(name: str, old: str, new: str) -> Plant:
    script = (
        f"sed -i s/{old}/{new}/ site/{name}-{old}.dist-info/METADATA; "
        f"mv site/{name}-{old}.dist-info site/{name}-{new}.dist-info"
    )
    return Plant(script, {name})


_IB = "sys/class/infiniband"
_DISTRIBUTIONS = {
    "torch": "2.6.0",
    "vllm": "0.8.5",
    "ray": "2.44.1",
    "transformers": "4.51.3",
    "flash_attn": "2.7.4",
}

_METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"

#: Kind -> what is done. Each is another fact, and each is read by the real probe.
PLANTED: Dict[str, Plant] = {
    "a GPU is lost": _gpu("gpus=7", "GPUs"),
    "a GPU that fell off the bus": _gpu("lost=2", "GPUs", "GPU faults"),
    "a GPU of another model": _gpu("other=2", "GPUs", "GPU compute capability"),
    "MIG on one GPU": _gpu("mig=2", "GPU MIG mode"),
    "persistence off": _gpu("persistence=0", "GPU persistence mode"),
    "a row that cannot be remapped": _gpu("failed=2", "GPU remapping failed"),
    "fabric not ready": _gpu("fabric=2", "GPU fabric state"),
    "an NVLink that is down": _gpu("unlinked=2", "GPU NVLinks up"),
    "lower clocks": _gpu("clock=1410", "GPU clock limit (MHz)"),
    "less power": _gpu("watts=500", "GPU power limit (W)"),
    "another NVML": _gpu("driver=570.86.10", "driver.nvml_release"),
    "cuInit fails": _gpu("cuinit=802", "driver.init_error"),
    "another driver": Plant(
        "echo 550.54.15 >sys/module/nvidia/version; "
        "sed -i s/570.86.15/550.54.15/ proc/driver/nvidia/version",
        {"driver.release"},
    ),
    "nouveau": Plant("mkdir sys/module/nouveau", {"driver.nouveau"}),
    "a port that is down": _set(f"{_IB}/mlx5_2/ports/1/state", "1: DOWN", "port mlx5_2/1"),
    "a port that is slower": _set(
        f"{_IB}/mlx5_2/ports/1/rate", "100 Gb/sec (4X HDR)", "port mlx5_2/1"
    ),
    "a card less": Plant(f"rm -r {_IB}/mlx5_3", {"port mlx5_3/1", "rdma.devices"}),
    "a smaller MTU": _set("sys/class/net/eth0/mtu", "1500", "port eth0"),
    "fewer PCIe lanes": _set(
        "sys/bus/pci/tree/devices/pci0000:10/0000:1a:00.0/current_link_width",
        "8",
        "PCIe lanes of GPUs",
    ),
    "a GPU in another slot": Plant(
        "mkdir sys/bus/pci/tree/devices/pci0000:90; cd sys/bus/pci; "
        "mv tree/devices/pci0000:10/0000:1a:00.0 tree/devices/pci0000:90/; "
        "ln -sfn ../tree/devices/pci0000:90/0000:1a:00.0 devices/0000:1a:00.0; cd - >/dev/null",
        {"PCIe topology"},
    ),
    "an IOMMU that translates": _set("sys/kernel/iommu_groups/0/type", "DMA-FQ", "iommu.modes"),
    "a slow clock source": _set(
        "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "clock.source"
    ),
    "no transparent huge pages": _set(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]",
        "memory.transparent_hugepages",
    ),
    "NUMA balancing": _set("proc/sys/kernel/numa_balancing", "1", "numa.balancing"),
    "half of the memory": Plant(
        "sed -i 's/^MemTotal:.*/MemTotal: 8388608 kB/' proc/meminfo", {"memory.total"}
    ),
    "huge pages set aside": Plant(
        "sed -i 's/^Hugetlb:.*/Hugetlb: 2097152 kB/' proc/meminfo", {"memory.hugepages"}
    ),
    "another system": _set("etc/os-release", 'PRETTY_NAME="Ubuntu 22.04.4 LTS"', "os.name"),
    "an older kernel": Plant('set -- setarch "$(uname -m)" --uname-2.6 "$@"', {"os.kernel"}),
    "few open files": Plant("ulimit -n 512", {"rlimit.nofile", "rlimit.nofile_hard"}),
    "little locked memory": Plant("ulimit -l 48", {"rlimit.memlock"}),
    "a small stack": Plant("ulimit -s 1024", {"rlimit.stack"}),
    "one CPU": Plant('set -- taskset -c 0 "$@"', {"cpu.count"}),
    "a small /dev/shm": Plant("mount -t tmpfs -o size=48m none /dev/shm", {"shm.size"}),
    "other files of a release": Plant(
        "sed -i s/aa/bb/ site/vllm-0.8.5.dist-info/RECORD", {"files of vllm"}
    ),
    "another NCCL_ALGO": _variable("NCCL_ALGO", "Tree"),
    "InfiniBand switched off": _variable("NCCL_IB_DISABLE", "1"),
    "another transport": _variable("UCX_TLS", "tcp"),
    "a switch of vLLM": _variable("VLLM_USE_V1", "0"),
    "an interface that is not named": Plant("unset NCCL_SOCKET_IFNAME", {"$NCCL_SOCKET_IFNAME"}),
    "another torch": _version("torch", "2.6.0", "2.5.1"),
    "another vllm": _version("vllm", "0.8.5", "0.8.4"),
    "another Ray": Plant(
        _version("ray", "2.44.1", "2.43.0").script, {"ray", "ray.process_version"}
    ),
    "a package less": Plant("rm -r site/flash_attn-*", {"flash-attn"}),
    "a package more": Plant(
        "cp -r site/vllm-0.8.5.dist-info site/planted-0.8.5.dist-info; "
        "sed -i s/vllm/planted/ site/planted-*/METADATA",
        {"planted"},
    ),
    "what DCGM found": Plant("sed -i s/Pass/Fail/ health/dcgm.json", {"dcgm: memory of GPU 3"}),
}

_ENTER = """\
#!/bin/sh
# Becomes the Python of the node that $SLURMD_NODENAME or $NODE names.
node=${{SLURMD_NODENAME:-$NODE}}
[ "$1" = -c ] && exec {python} "$@"
[ "$MACHINES_INSIDE" ] || MACHINES_INSIDE=1 exec unshare -m "$0" "$@"
set -e
unset MACHINES_INSIDE
mount -t tmpfs none {folder}/root
cd {folder}/root
cp -a {folder}/base/. .
FAKE_NVIDIA=gpus={gpus}
export FAKE_NVIDIA LD_LIBRARY_PATH={fakes} NCCL_ALGO=Ring NCCL_SOCKET_IFNAME=eth0
export ENVDOCTOR_HEALTH=$PWD/health
set -- {python} "$@"
case $node in
{plants}
esac
for place in {laid}; do mount --bind "$place" "/$place"; done
mount --bind site {site}
cd /
exec "$@"
"""


class Machines:
    """The files of nodes, and the ``python`` that shows each its own.

    Args:
        folder: Where everything lies.
        fakes: The folder of the fake driver's libraries.
    """

    def __init__(self, folder: Path, fakes: Path) -> None:
        self.folder = folder
        self.fakes = fakes
        environment = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        self.real_python = environment / "bin/python"
        (self._packages,) = environment.glob("lib/python*/site-packages")
        self.site = folder / "site"
        (self._packages / "nodes.pth").write_text(f"{self.site}\n")
        self.site.mkdir()
        (folder / "root").mkdir()
        _build(folder / "base")

    def show_to_ray(self, python: str) -> None:
        """Let Ray be imported, from the packages of an interpreter that has it; what a worker of
        Ray's calls its Python is then the one that shows the node's own files.
        """
        search = "import sysconfig; print(sysconfig.get_path('purelib'))"
        packages = subprocess.check_output([python, "-c", search], text=True).strip()
        become = f"sys.executable = {str(self.folder / 'python')!r}"
        (self._packages / "ray.pth").write_text(
            f"{packages}\n"
            "import sys; b'default_worker' in open('/proc/self/cmdline', 'rb').read() and "
            f"exec({become!r})\n"
        )

    def python(self, scripts: Mapping[str, Iterable[str]]) -> Path:
        """Write the ``python`` of these nodes; return its path.

        Args:
            scripts: What is done to each node, in shell.
        """
        plants = "\n".join(
            f"{name}) {'; '.join(lines) or ':'} ;;" for name, lines in scripts.items()
        )
        path = self.folder / "python"
        laid = [place for place in _LAID if os.path.exists(f"/{place}")]
        path.write_text(
            _ENTER.format(
                python=self.real_python,
                folder=self.folder,
                fakes=self.fakes,
                gpus=_GPUS,
                plants=plants,
                laid=" ".join(laid),
                site=self.site,
            )
        )
        path.chmod(0o755)
        return path


def names(count: int) -> List[str]:
    """Return that many names of nodes."""
    return [f"n{number:02d}" for number in range(1, count + 1)]


def _build(base: Path) -> None:
    files = {
        "etc/os-release": Path("/etc/os-release").read_text(),
        "proc/meminfo": Path("/proc/meminfo").read_text(),
        "proc/driver/nvidia/version": (
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {_RELEASE}  Thu Jan 16\n"
        ),
        "proc/sys/kernel/numa_balancing": "0\n",
        "sys/module/nvidia/version": f"{_RELEASE}\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/kernel/iommu_groups/0/type": "identity\n",
        "sys/class/net/eth0/type": "1\n",
        "sys/class/net/eth0/operstate": "up\n",
        "sys/class/net/eth0/speed": "100000\n",
        "sys/class/net/eth0/mtu": "9000\n",
        "sys/class/net/eth0/device/vendor": "0x15b3\n",
        "health/dcgm.json": (
            '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": '
            '[{"entity_group": "GPU", "entity_id": 3, "status": "Pass", "warnings": []}]}]}]}}\n'
        ),
    }
    for number in range(4):
        port = f"{_IB}/mlx5_{number}/ports/1"
        files[f"{port}/state"] = "4: ACTIVE\n"
        files[f"{port}/rate"] = "400 Gb/sec (4X NDR)\n"
        files[f"{port}/link_layer"] = "InfiniBand\n"
    for number in range(_GPUS):
        gpu = f"sys/bus/pci/tree/devices/pci0000:10/0000:{0x18 + number:x}:00.0"
        files[f"{gpu}/modalias"] = "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00\n"
        files[f"{gpu}/current_link_width"] = files[f"{gpu}/max_link_width"] = "16\n"
        files[f"{gpu}/numa_node"] = "0\n"
    files["proc/bus/pci/devices"] = "".join(
        f"{0x18 + number:02x}00\t10de2330\t0\n" for number in range(_GPUS)
    )
    for name, version in _DISTRIBUTIONS.items():
        files[f"site/{name}-{version}.dist-info/METADATA"] = _METADATA.format(name, version)
        files[f"site/{name}-{version}.dist-info/RECORD"] = f"{name}/__init__.py,sha256=aa,3\n"
    for name, text in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    devices = base / "sys/bus/pci/devices"
    devices.mkdir()
    for device in (base / "sys/bus/pci/tree/devices/pci0000:10").iterdir():
        (devices / device.name).symlink_to(f"../tree/devices/pci0000:10/{device.name}")
