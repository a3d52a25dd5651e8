"""Where in the files of conf/ something stands, for a tool that shows lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from orchestrator.asked.compose import config_dir
from orchestrator.asked.conf_files import CONF, ConfFiles
from orchestrator.asked.policies import Waiver
from orchestrator.github import Place
from orchestrator.kept.run_directory import Asked
from orchestrator.reports.annotations import Places


def places(asked: Asked, root: Path) -> Places:
    """As paths below *root*, which are all that such a tool knows."""
    more = config_dir(asked.command)
    files = ConfFiles(folders=(CONF, *([Path(more)] if more else [])))

    def of_entry(group: str, name: str) -> Place | None:
        path = files.find(f"{group}/{name}.yaml")
        nodes = [] if path is None else [*_nodes(path)]
        return _place(path, nodes[0], root) if path is not None and nodes else None

    def of_waiver(waiver: Waiver) -> Place | None:
        for path in _with_waivers(files, asked.gate.waiver_files):
            for node in _nodes(path):
                if _scalars(node).get("cells") == waiver.cells:
                    return _place(path, node, root)
        return None

    return Places(of_entry=of_entry, of_waiver=of_waiver)


def _with_waivers(files: ConfFiles, named: Sequence[str]) -> Iterator[Path]:
    for name in named:
        yield from filter(None, [files.find(name) or Path(name).expanduser()])
    for folder in files.folders:
        yield from sorted(folder.glob("gate/*.yaml"))


def _nodes(path: Path) -> Iterator[yaml.MappingNode]:
    """Every mapping in it, from the outermost inwards; nothing of a file that is none any more."""
    try:
        root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except (OSError, UnicodeError, yaml.YAMLError):
        return
    yield from _mappings(root)


def _mappings(node: yaml.Node | None) -> Iterator[yaml.MappingNode]:
    match node:
        case yaml.MappingNode():
            yield node
            for _, value in node.value:
                yield from _mappings(value)
        case yaml.SequenceNode():
            for part in node.value:
                yield from _mappings(part)
        case _:
            pass


def _scalars(node: yaml.MappingNode) -> dict[str, str]:
    return {
        str(key.value): str(value.value)
        for key, value in node.value
        if isinstance(value, yaml.ScalarNode)
    }


def _place(path: Path, node: yaml.Node, root: Path) -> Place | None:
    absolute = path.resolve()
    if not absolute.is_relative_to(root.resolve()):
        return None
    file = absolute.relative_to(root.resolve()).as_posix()
    return Place(file=file, line=node.start_mark.line + 1)
