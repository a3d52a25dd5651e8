"""What the words of a command may be: its flags, its help with examples, what mistakes are told."""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

from orchestrator.asked.conf_files import nearest
from orchestrator.errors import ConfigError

PROGRAM = "vllm-matrix"

HYDRAS_OWN = ("config", "defaults", "defaults-tree", "plugins", "searchpath", "all")

_CHOICES = re.compile(r"invalid choice: '?(?P<word>[^']*)'? \(choose from (?P<allowed>.*)\)")


class Parser(argparse.ArgumentParser):
    def __init__(self, command: str, says: str | None, examples: Mapping[str, str]) -> None:
        """*examples*: the words behind the program's name, and what they are good for."""
        super().__init__(
            f"{PROGRAM} {command}",
            description=says,
            epilog=_shown(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.command = command
        self.examples = examples

    def takes(self) -> list[argparse.Action]:
        return [action for action in self._actions if action.dest != "help"]

    def runs(self, name: str = "run", **more: Any) -> Self:
        """One more word: a run."""
        self.add_argument(
            name, metavar=name.upper(), help="a run directory, its name, or `latest`", **more
        )
        return self

    def sides(self, name: str) -> Self:
        """One more word: a run, or one build of it."""
        self.add_argument(
            name,
            metavar=name.upper(),
            help="a run directory, its name, or `latest`; RUN:BUILD is one build of it",
        )
        return self

    def overrides(self) -> Self:
        """Hydra's words, and those of its flags that are of use here."""
        self.add_argument(
            "words",
            nargs="*",
            metavar="KEY=VALUE",
            help="suite=NAME, hardware=[...], model=[...], backend=[...], build=[...], or any key",
        )
        self.add_argument(
            *("-m", "--multirun"), action="store_true", help="commas sweep: one matrix of all jobs"
        )
        self.add_argument(
            *("-cd", "--config-dir"), metavar="FOLDER", help="files of your own beside conf/"
        )
        self.add_argument(
            *("-c", "--cfg"),
            choices=("job", "hydra", "all"),
            help="print what was composed, and end",
        )
        self.add_argument("-p", "--package", metavar="KEY", help="of --cfg: this part alone")
        self.add_argument("--resolve", action="store_true", help="of --cfg: with values filled in")
        self.add_argument(
            *("-i", "--info"), nargs="?", const="all", choices=HYDRAS_OWN, help="Hydra's own view"
        )
        return self

    def for_hydra(self, words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """What was chosen, and what of it is Hydra's, as Hydra takes it: flags come first."""
        chosen = self.parse_intermixed_args([*words])
        flags = {
            "--config-dir": chosen.config_dir,
            "--cfg": chosen.cfg,
            "--package": chosen.package,
            "--info": chosen.info,
        }
        switches = {"--multirun": chosen.multirun, "--resolve": chosen.resolve}
        return chosen, [
            *(name for name, on in switches.items() if on),
            *(f"{name}={value}" for name, value in flags.items() if value is not None),
            *chosen.words,
        ]

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        chosen, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown)
        return chosen

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        chosen, unknown = self.parse_known_intermixed_args(args, namespace)
        if unknown:
            self._refuse(unknown)
        return chosen

    def error(self, message: str) -> NoReturn:
        """In place of an exit, which is for `__main__` alone."""
        likely = ""
        if found := _CHOICES.search(message):
            allowed = [word.strip(" '") for word in found["allowed"].split(",")]
            likely = f".{nearest(found['word'], allowed)}"
        raise ConfigError(f"{self.prog}: {message}{likely}", [f"see {self.prog} --help"])

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        flags = [word for word in unknown if word.startswith("-")]
        known = [flag for action in self._actions for flag in action.option_strings]
        raise ConfigError(
            f"{self.prog} does not know {'these words' if len(unknown) > 1 else 'this word'}:",
            [
                *(f"{flag}.{nearest(flag.partition('=')[0], known)}" for flag in flags),
                *(f"{word}: it takes no further word" for word in unknown if not flags),
                f"see {self.prog} --help",
            ],
        )


def _shown(examples: Mapping[str, str]) -> str:
    width = max(map(len, examples), default=0)
    lines = [f"  {PROGRAM} {words:<{width}}  {what}" for words, what in examples.items()]
    return "\n".join(["examples:", *lines])
