"""What a container was given: ``docker run`` flags, compose and Kubernetes fragments, and what an
image's name tells.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from ..model.sizes import parse_limit, parse_size
from .clean_text import Line
from .draft import INTENT, LABEL, PROSE, Draft
from .launch_settings import read_launch, split_command
from .word_lists import words

__all__ = ["ContainerReader", "image_hints", "image_of_words"]

_RUN = re.compile(r"\b(docker|podman|nerdctl)\s+(?:container\s+)?(?:run|create)\s+(.+)$")
_FRAGMENT = re.compile(
    r"--(?:shm-size|gpus|memory|ulimit|pids-limit|cpus|runtime|ipc)[ =]\S+(?:\s+-|$)"
)
_DOCKER_SHM = (
    64 << 20
)  # docs.docker.com/engine/containers/run: "/dev/shm … 64M" where --shm-size is left out
_WITH_VALUE = words(
    """
    -a -c -e -h -l -m -p -u -v -w --add-host --annotation --attach --blkio-weight --cap-add
    --cap-drop --cgroup-parent --cgroupns --cidfile --cpu-period --cpu-quota --cpu-shares --cpus
    --cpuset-cpus --cpuset-mems --device --device-cgroup-rule --dns --entrypoint --env --env-file
    --expose --gpus --group-add --health-cmd --hostname --init-path --ipc --label --log-driver
    --log-opt --mac-address --memory --memory-reservation --memory-swap --memory-swappiness --mount
    --name --net --network --oom-score-adj --pid --pids-limit --platform --publish --pull --restart
    --runtime --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl --tmpfs
    --ulimit --user --userns --uts --volume --volumes-from --workdir
    """
)
_IMAGE = re.compile(
    r"(?:[a-z0-9.-]+(?::\d+)?/)?(?:[a-z0-9._-]+/){0,6}[a-z0-9._-]+(?::[\w.-]{1,128})?(?:@sha256:[0-9a-f]{6,64})?"
)
_ULIMITS = {
    "nofile": ("rlimit.nofile", 1),
    "memlock": ("rlimit.memlock", 1),
    "nproc": ("rlimit.nproc", 1),
    "stack": ("rlimit.stack", 1),
    "core": ("rlimit.core", 1),
}
_YAML = re.compile(r"(?:- )?([\"']?)([A-Za-z][\w./-]{0,60})\1\s*:\s*(.*)$")
_CUDA_IN_TAG = re.compile(r"(?:^|[-_.:])(?:cuda|cu)-?(\d{2})\.?(\d)(?:\.(\d{1,2}))?(?![\d])")
_TORCH_IN_TAG = re.compile(r"(?:^|[-_:])(?:torch|pytorch|th|pt)-?(\d\.\d{1,2}(?:\.\d)?)")
_PYTHON_IN_TAG = re.compile(r"(?:^|[-_:])(?:py|python|cp)-?(3)\.?(\d{1,2})(?![\d])")
_PACKAGE_IN_TAG = re.compile(
    r"(?:^|[-_:])(vllm|sglang|flashinfer|verl|ray|transformers|deepspeed|te)-?v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)"
)
_REPOSITORY = {
    "vllm-openai": "vllm",
    "sglang": "sglang",
    "ray": "ray",
    "ray-llm": "ray",
    "ray-ml": "ray",
    "pytorch": "torch",
}
_TAG_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:\.\d+)?(?:\.?(?:post|rc)\d+)?)(?:$|-)")


def image_hints(image: str) -> Iterator[Tuple[str, str]]:
    """Yield what the name of an image tells: pairs of a field, or of a distribution's name, and a
    version.
    """
    path, _, tag = image.partition("@")[0].rpartition(":")
    if not path or "/" in tag:
        return
    owner, _, repository = path.rpartition("/")
    cuda = _CUDA_IN_TAG.search(f":{tag}")
    if repository == "cuda" and re.match(r"\d{2}\.\d", tag):
        yield "image.cuda_version", re.match(r"[\d.]+", tag).group().rstrip(".")  # type: ignore[union-attr]
    elif cuda:
        yield (
            "image.cuda_version",
            f"{cuda.group(1)}.{cuda.group(2)}" + (f".{cuda.group(3)}" if cuda.group(3) else ""),
        )
    python = _PYTHON_IN_TAG.search(f":{tag}")
    if python and 6 <= int(python.group(2)) <= 20:
        yield "python.version", f"3.{python.group(2)}"
    name = _REPOSITORY.get(repository)
    version = _TAG_VERSION.match(tag)
    # nvcr.io/nvidia/pytorch:24.03-py3 counts years and months, not releases of torch.
    if name and version and not owner.endswith("nvidia"):
        yield name, version.group(1)
    torch = _TORCH_IN_TAG.search(f":{tag}")
    if torch:
        yield "torch", torch.group(1)
    for found in _PACKAGE_IN_TAG.finditer(f":{tag}"):
        yield "transformer-engine" if found.group(1) == "te" else found.group(1), found.group(2)


class ContainerReader:
    """Reads commands and YAML fragments.

    YAML is read line by line; the indentation tells ``limits`` from ``requests``.
    """

    def __init__(self) -> None:
        self._parents: List[Tuple[int, str]] = []
        self._yaml_at = -9
        self._volume_medium = ""

    def read(self, line: Line, draft: Draft) -> bool:
        """Take one line; False leaves it to the others."""
        text = line.text
        if "run " in text or "create " in text:
            found = _RUN.search(text)
            if found:
                self._read_run(found.group(1), found.group(2), line, draft)
                return True
        if _FRAGMENT.match(text):
            words = split_command(text)
            for position, word in enumerate(words):
                option, joined, value = word.partition("=")
                _docker_option(
                    option,
                    value if joined else (words[position + 1 : position + 2] or [""])[0],
                    line,
                    draft,
                )
                if option == "--gpus" or (option, value) == ("--runtime", "nvidia"):
                    draft.put("container.gpus_requested", True, line)
            return True
        return self._read_yaml(line, draft)

    def finish(self, line: Line, draft: Draft) -> None:
        """Say what the images tell, where they agree on which one it is."""
        names = {name for name, _ in draft.images}
        if len(names) != 1:
            if len(names) > 1:
                draft.unknown("image.name", "the report names several images")
            return
        name, number = draft.images[0]
        at = line._replace(number=number)
        draft.put("image.name", name, at)
        for what, version in image_hints(name):
            if "." in what:
                draft.put(what, version, at, INTENT, f"by the name of the image {name}")
            else:
                draft.distribution(what, version, at, INTENT)

    def _read_run(self, runtime: str, arguments: str, line: Line, draft: Draft) -> None:
        draft.put("container.runtime", "docker" if runtime == "nerdctl" else runtime, line)
        words = split_command(arguments)
        gpus = shm = host = False
        position = 0
        while position < len(words):
            word = words[position]
            position += 1
            if not word.startswith("-"):
                if word in ("\\", "&&", "…", "..."):
                    continue
                if _IMAGE.fullmatch(word) and not word.startswith("."):
                    draft.image(word, line)
                    read_launch([word, *words[position:]], line, draft)
                break
            option, joined, value = word.partition("=")
            if not joined and option in _WITH_VALUE and position < len(words):
                value = words[position]
                position += 1
            gpus |= (
                option == "--gpus"
                or (option == "--runtime" and value == "nvidia")
                or (option == "--device" and "nvidia" in value)
            )
            shm |= option == "--shm-size" or (
                "/dev/shm" in value and option in ("-v", "--volume", "--mount", "--tmpfs")
            )
            host |= option == "--ipc" and value != "private"
            _docker_option(option, value, line, draft)
        if gpus or "..." not in arguments:
            draft.put("container.gpus_requested", gpus, line)
        if not shm and not host and "..." not in arguments and "…" not in arguments:
            draft.put(
                "shm.size",
                _DOCKER_SHM,
                line,
                PROSE,
                "Docker's default: neither --shm-size nor --ipc=host is given",
            )

    def _read_yaml(self, line: Line, draft: Draft) -> bool:
        found = _YAML.match(line.raw.strip())
        if found is None:
            return False
        indent = line.indent + (2 if line.raw.lstrip().startswith("- ") else 0)
        if line.number > self._yaml_at + 3:
            self._parents = []
        self._yaml_at = line.number
        while self._parents and self._parents[-1][0] >= indent:
            self._parents.pop()
        key, value = found.group(2), found.group(3).split(" #")[0].strip().strip("\"'")
        if not value:
            if len(self._parents) < 40:
                self._parents.append((indent, key))
            return key in (
                "limits",
                "requests",
                "emptyDir",
                "resources",
                "securityContext",
                "ulimits",
                "deploy",
                "volumes",
                "volumeMounts",
                "containers",
                "reservations",
            )
        return self._read_pair(key, value, [name for _, name in self._parents], line, draft)

    def _read_pair(
        self, key: str, value: str, parents: List[str], line: Line, draft: Draft
    ) -> bool:
        nearest = parents[-1] if parents else ""
        if key == "memory" and nearest == "limits":
            return _put_size("memory.limit", value, line, draft, binary=False)
        if key == "memory" and nearest in ("requests", "reservations"):
            return True
        if (key == "cpus" and nearest == "limits") or (key == "cpu" and nearest == "limits"):
            cores = re.fullmatch(r"(\d{1,5}(?:\.\d+)?)(m?)", value)
            if cores:
                draft.put(
                    "cpu.quota", float(cores.group(1)) / (1000 if cores.group(2) else 1), line
                )
            return cores is not None
        if key == "mem_limit":
            return _put_size("memory.limit", value, line, draft, binary=True)
        if key == "shm_size":
            return _put_size("shm.size", value, line, draft, binary=True)
        if key == "sizeLimit":
            return _put_size("shm.size", value, line, draft, binary=False)
        if key == "medium" and value == "Memory":
            return True
        if key.startswith("nvidia.com/") and nearest in ("limits", "requests"):
            draft.put("container.gpus_requested", value != "0", line)
            draft.put("container.runtime", "kubernetes", line, PROSE)
            draft.put("kubernetes.pod", True, line)
            return True
        if (key, value) in (("runtime", "nvidia"), ("driver", "nvidia")):
            draft.put("container.gpus_requested", True, line)
            return True
        if (key, value) in (("ipc", "host"), ("hostIPC", "true")):
            draft.put("container.ipc_host", True, line)
            return True
        if key == "kind" and value in (
            "Pod",
            "Deployment",
            "StatefulSet",
            "Job",
            "RayCluster",
            "RayJob",
            "PyTorchJob",
            "LeaderWorkerSet",
        ):
            draft.put("kubernetes.pod", True, line)
            draft.put("container.runtime", "kubernetes", line)
            return True
        if key == "image" and _IMAGE.fullmatch(value) and ("/" in value or ":" in value):
            draft.image(value, line)
            return True
        if nearest == "ulimits" and key in _ULIMITS:
            return _put_ulimit(f"{key}={value}", line, draft)
        if (
            key in ("soft", "hard")
            and len(parents) > 1
            and parents[-2] == "ulimits"
            and nearest in _ULIMITS
        ):
            return key == "hard" or _put_ulimit(f"{nearest}={value}", line, draft)
        return False


def _docker_option(option: str, value: str, line: Line, draft: Draft) -> None:
    if option == "--shm-size":
        _put_size("shm.size", value, line, draft, binary=True)
    elif option == "--ipc" and value == "host":
        draft.put("container.ipc_host", True, line)
    elif option in ("-m", "--memory"):
        _put_size("memory.limit", value, line, draft, binary=True)
    elif option == "--ulimit":
        _put_ulimit(value, line, draft)
    elif option == "--pids-limit":
        limit = parse_limit(value)
        if limit is not None:
            draft.put("pids.limit", limit, line)
    elif option == "--cpus" and re.fullmatch(r"\d{1,5}(?:\.\d{1,4})?", value):
        draft.put("cpu.quota", float(value), line)
    elif option in ("-e", "--env") and "=" in value:
        name, _, content = value.partition("=")
        draft.variable(name, content, line)
    elif option in ("-w", "--workdir") and value.startswith("/"):
        draft.put("python.working_directory", value, line, PROSE)


def _put_size(field: str, value: str, line: Line, draft: Draft, *, binary: bool) -> bool:
    size = parse_size(value, binary=binary)
    if size is not None and size > 0:
        draft.put(field, size, line, LABEL)
    return size is not None


def _put_ulimit(text: str, line: Line, draft: Draft) -> bool:
    name, _, value = text.partition("=")
    known = _ULIMITS.get(name)
    limit = parse_limit(value.split(":")[0])
    if known is None or limit is None:
        return False
    draft.put(known[0], limit, line)
    return True


def image_of_words(text: str) -> Optional[str]:
    """Return the image that a text names, where its form leaves no doubt."""
    for word in text.split():
        if ":" in word and "/" in word and "://" not in word and _IMAGE.fullmatch(word):
            tag = word.rpartition(":")[2]
            if re.search(r"[\d]", tag) or tag in ("latest", "nightly"):
                return word
    return None
