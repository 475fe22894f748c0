"""From the commands of a script to the one that trains: wrappers are taken off, and what they said
about the machine is kept.

Wrappers: ``sudo``, ``nohup``, ``env``, ``srun``, ``ray job submit``, ``docker run`` and ``exec``,
``bash``, ``torchrun``, ``accelerate launch``, ``deepspeed``, ``python -m``. ``docker`` flags are
read by :mod:`..intake.container`.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...intake.clean_text import Line
from ...intake.container_spec import ContainerReader
from ...intake.draft import Draft
from ...intake.kept_variables import kept_value
from ...model.evidence import Evidence, Fact, Known, Unknown
from ...model.record import NamedTuple
from ...model.redaction import redact
from ...model.sizes import parse_size
from ..shell.expansion import Element, is_clear
from ..shell.interpreter import Command, Script

__all__ = ["Launch", "launches", "surroundings"]

# Options of each wrapper that take no value; every other option takes the next word.
_SWITCHES: Mapping[str, frozenset[str]] = {
    "sudo": frozenset(["-E", "-H", "-n", "-S", "-i", "-b", "--preserve-env"]),
    "nohup": frozenset(),
    "time": frozenset(["-p", "-v"]),
    "stdbuf": frozenset(),
    "numactl": frozenset(["-l", "--localalloc"]),
    "nice": frozenset(),
    "timeout": frozenset(["--foreground", "--preserve-status", "-v"]),
    "env": frozenset(["-i", "-", "-0", "--ignore-environment"]),
    "srun": frozenset(
        [
            "--overlap",
            "--exclusive",
            "--pty",
            "-l",
            "--label",
            "-u",
            "--unbuffered",
            "-k",
            "--no-kill",
            "-Z",
            "-v",
            "--kill-on-bad-exit",
        ]
    ),
    "mpirun": frozenset(["--allow-run-as-root", "--oversubscribe"]),
    "torchrun": frozenset(
        ["--standalone", "-m", "--module", "--no-python", "--no_python", "--run-path", "--run_path"]
    ),
    "accelerate": frozenset(
        [
            "--multi_gpu",
            "--multi-gpu",
            "--use_deepspeed",
            "--use_fsdp",
            "--use-deepspeed",
            "--use-fsdp",
            "--cpu",
            "--tpu",
            "--mps",
            "-m",
            "--module",
            "--no_python",
            "--debug",
            "-q",
            "--quiet",
            "--same_network",
        ]
    ),
    "deepspeed": frozenset(
        [
            "--no_local_rank",
            "--no_python",
            "--no_ssh",
            "--force_multi",
            "--elastic_training",
            "--module",
            "-m",
        ]
    ),
    "ray job submit": frozenset(["--no-wait", "--verbose", "-v"]),
    "docker exec": frozenset(
        ["-i", "-t", "-it", "-ti", "-d", "--detach", "--interactive", "--tty", "--privileged"]
    ),
    "singularity": frozenset(
        [
            "--nv",
            "--rocm",
            "--cleanenv",
            "-e",
            "-c",
            "--contain",
            "--writable",
            "--writable-tmpfs",
            "--containall",
            "--no-home",
        ]
    ),
    "python": frozenset(["-u", "-O", "-B", "-I", "-s", "-S", "-E", "-v", "-q"]),
}
_OWN_ARGUMENT = frozenset(["timeout"])  # these take one plain argument before the command
_PYTHON = re.compile(r"(?:.*/)?python(?:\d(?:\.\d+)?)?\Z")
_SCRIPT = re.compile(r"(?:.*/)?(?:bash|sh|zsh|dash)\Z")
_SBATCH = re.compile(r"^#SBATCH\s+(.+)$", re.MULTILINE)


class Launch(NamedTuple):
    """One started program: its entry (``verl.trainer.main_ppo`` or ``train.py``), its arguments,
    and what its environment holds.
    """

    entry: str
    arguments: Tuple[Element, ...]
    command: Command
    variables: Mapping[str, Element]
    launcher: Mapping[str, Element]  # options of torchrun, accelerate and deepspeed, without dashes
    context: Mapping[str, Fact[Any]]  # workload fields that a wrapper set: container.*


def launches(script: Script) -> Iterator[Launch]:
    """Yield what each command of a script starts in the end."""
    for command in script.commands:
        state = _Unwrapping(script, command)
        words = state.unwrap(list(command.words), 0)
        if words:
            yield Launch(
                words[0].text,
                tuple(words[1:]),
                command,
                state.variables,
                state.launcher,
                state.context,
            )


class _Unwrapping:
    def __init__(self, script: Script, command: Command) -> None:
        self.script = script
        self.command = command
        self.variables: Dict[str, Element] = dict(command.exported)
        self.launcher: Dict[str, Element] = {}
        self.context: Dict[str, Fact[Any]] = {}

    def unwrap(self, words: List[Element], depth: int) -> List[Element]:
        """Take off wrappers until a program with its arguments is left."""
        while words and depth < 20:
            depth += 1
            name = words[0].text
            base = name.rpartition("/")[2]
            if re.match(r"[A-Za-z_]\w*=", name) and depth > 1:
                self.variables[name.partition("=")[0]] = words[0]._replace(
                    text=name.partition("=")[2]
                )
                words = words[1:]
            elif _PYTHON.match(name):
                return self._python(words)
            elif base in ("torchrun", "deepspeed", "accelerate"):
                return self._launcher(words, base)
            elif [word.text for word in words[:3]] == ["ray", "job", "submit"]:
                words = self._ray_job(words[3:])
            elif base in ("docker", "podman", "nerdctl"):
                words = self._docker(words)
            elif base in ("singularity", "apptainer"):
                words = self._past_options(words[2:], "singularity")[1:]
            elif _SCRIPT.match(name) and any(
                word.text in ("-c", "-lc", "-ic") for word in words[1:3]
            ):
                return self._inner(words)
            elif base in ("uv", "poetry", "pipenv") and len(words) > 1 and words[1].text == "run":
                words = words[2:]
            elif base in _SWITCHES and base != "python":
                words = self._past_options(words[1:], base)
                words = words[1:] if base in _OWN_ARGUMENT else words
            else:
                return words
        return words

    def _past_options(
        self, words: List[Element], wrapper: str, into: Optional[Dict[str, Element]] = None
    ) -> List[Element]:
        position = 0
        while position < len(words):
            word = words[position]
            text = word.text
            if text == "--":
                return words[position + 1 :]
            if not text.startswith("-"):
                break
            name, equals, value = text.partition("=")
            position += 1
            taken = word._replace(text=value if equals else "true")
            if not equals and name not in _SWITCHES.get(wrapper, ()) and position < len(words):
                taken = words[position]
                position += 1
            if into is not None:
                into[name.lstrip("-").replace("-", "_")] = taken
            if name in ("-m", "--module") and not equals:
                break
        return words[position:]

    def _python(self, words: List[Element]) -> List[Element]:
        position = 1
        while position < len(words):
            text = words[position].text
            if text == "-m":
                module = words[position + 1 : position + 2]
                rest = words[position + 2 :]
                if module and module[0].text in (
                    "torch.distributed.run",
                    "torch.distributed.launch",
                ):
                    return self._launcher([module[0], *rest], "torchrun")
                if module and module[0].text in ("accelerate.commands.launch",):
                    return self._launcher([module[0], *rest], "accelerate")
                return [*module, *rest]
            if text == "-c" or not text.startswith("-"):
                return words[position:]
            position += 1 if text in _SWITCHES["python"] or len(text) > 2 else 2
        return []

    def _launcher(self, words: List[Element], base: str) -> List[Element]:
        self.launcher["launcher"] = words[0]._replace(text=base)
        rest = words[1:]
        if base == "accelerate" and rest and rest[0].text == "launch":
            rest = rest[1:]
        return self._past_options(rest, base, self.launcher)

    def _ray_job(self, words: List[Element]) -> List[Element]:
        options: Dict[str, Element] = {}
        rest = self._past_options(words, "ray job submit", options)
        environment = options.get("runtime_env_json")
        if environment is not None and is_clear(environment.text):
            try:
                variables = json.loads(environment.text).get("env_vars", {})
            except (ValueError, AttributeError, RecursionError):
                variables = {}
            if isinstance(variables, dict):
                for name, value in variables.items():
                    self.variables[str(name)] = environment._replace(text=str(value))
        return rest

    def _docker(self, words: List[Element]) -> List[Element]:
        verb = next(
            (word.text for word in words[1:3] if word.text in ("run", "exec", "create")), ""
        )
        if verb == "exec":
            after = next(number for number, word in enumerate(words) if word.text == "exec") + 1
            return self._past_options(words[after:], "docker exec")[1:]
        if not verb:
            return []
        text = shlex.join(word.text if is_clear(word.text) else "unclear" for word in words)
        draft = Draft()
        ContainerReader().read(Line(words[0].line, text, text, 0), draft)
        evidence = Evidence(f"{self.script.name}:{words[0].line}", "docker run")
        for field, ours in (
            ("memory.limit", "container.memory"),
            ("shm.size", "container.shm"),
            ("container.ipc_host", "container.ipc_host"),
        ):
            value = draft.claimed(field)
            if value is not None:
                self.context[ours] = Known(value, evidence)
        for word, following in zip(words, words[1:]):
            option, _, value = word.text.partition("=")
            given = value or following.text
            if option in ("-e", "--env") and "=" in given:
                self.variables[given.partition("=")[0]] = word._replace(
                    text=given.partition("=")[2]
                )
            if option in ("--shm-size", "-m", "--memory") and not is_clear(given):
                self.context["container.shm" if option == "--shm-size" else "container.memory"] = (
                    Unknown(self.script.unclear.reason(given))
                )
        if not draft.images:
            return []
        image = draft.images[0][0]
        self.context["container.image"] = Known(image, evidence)
        position = next(
            (number for number, word in enumerate(words) if word.text == image), len(words)
        )
        return words[position + 1 :]

    def _inner(self, words: List[Element]) -> List[Element]:
        from ..shell.interpreter import read_script

        position = next(
            number for number, word in enumerate(words) if word.text in ("-c", "-lc", "-ic")
        )
        if position + 1 >= len(words):
            return []
        body = words[position + 1]
        inner = read_script(_restored(body.text), self.script.name, unclear=self.script.unclear)
        best: List[Element] = []
        for command in inner.commands:
            state = _Unwrapping(self.script, command)
            found = state.unwrap([word._replace(line=body.line) for word in command.words], 1)
            if found and (not best or "." in found[0].text):
                best = found
                self.variables.update(state.variables)
                self.launcher.update(state.launcher)
                self.context.update(state.context)
        return best


def _restored(text: str) -> str:
    """What is unclear in a text for another shell stays so: as a variable that nobody sets."""
    return re.sub("[\ue000-\uf8ff]", "$UNCLEAR", text)


def surroundings(script: Script, text: str) -> Dict[str, Fact[Any]]:
    """Return what a whole script says besides its training command: Slurm's directives, ``ray
    start``, what it installs.
    """
    found: Dict[str, Fact[Any]] = {}
    for directive in _SBATCH.finditer(text):
        line = text.count("\n", 0, directive.start()) + 1
        memory = re.search(r"--mem[= ](\d+)([KMGT]?)B?(?:\s|$)", directive.group(1))
        if memory and memory.group(1) != "0":
            size = parse_size(memory.group(1) + (memory.group(2) or "M"), binary=True)
            found["container.memory"] = Known(
                size, Evidence(f"{script.name}:{line}", redact(directive.group().strip())[:120])
            )
    for command in script.commands:
        words = [word.text for word in command.words]
        if words[:2] == ["ray", "start"]:
            _ray_start(script, command, found)
        for number, word in enumerate(command.words):
            pinned = re.fullmatch(r"(vllm|sglang)(?:\[[\w,]+\])?==([\w.+!-]+)", word.text)
            if pinned and "install" in words[:number]:
                found["rollout.version"] = Known(
                    pinned.group(2), Evidence(f"{script.name}:{word.line}", word.text)
                )
    return found


def _ray_start(script: Script, command: Command, found: Dict[str, Fact[Any]]) -> None:
    words = command.words
    fields = {
        "--object-store-memory": "ray.object_store",
        "--num-cpus": "ray.num_cpus",
        "--num-gpus": "ray.num_gpus",
    }
    head = any(word.text == "--head" for word in words)
    for number, word in enumerate(words):
        option, equals, value = word.text.partition("=")
        field = fields.get(option)
        if field is None or (field in found and not head):
            continue
        given = value if equals else words[number + 1].text if number + 1 < len(words) else ""
        evidence = Evidence(
            f"{script.name}:{word.line}", f"{option} {script.unclear.readable(given)}"
        )
        if given.isdigit():
            found[field] = Known(int(given), evidence)
        else:
            found[field] = Unknown(script.unclear.reason(given) or f"{evidence}: not a number")


def kept_variables(sources: Sequence[Mapping[str, Element]]) -> Dict[str, str]:
    """Return the variables worth keeping, as the intake keeps them: secrets and what is unclear are
    left out.
    """
    kept: Dict[str, str] = {}
    for source in sources:
        for name, element in source.items():
            value = kept_value(name, element.text) if is_clear(element.text) else None
            if value is not None:
                kept[name] = value
    return kept
