"""JavaScript modules as one module: each becomes a function, in the order of its imports."""

import re
from collections.abc import Iterator
from pathlib import Path

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)
_STATEMENT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def joined(folder: Path, first: str) -> str:
    """What `<script type="module" src="first.js">` would run, without a second file."""
    return "\n".join(_as_function(name, text) for name, text in _in_order(folder, first))


def _in_order(folder: Path, first: str) -> Iterator[tuple[str, str]]:
    done: list[str] = []

    def visit(name: str, on_the_way: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        if name in on_the_way:
            raise ValueError(f"modules import each other: {' → '.join([*on_the_way, name])}")
        if name in done:
            return
        text = (folder / f"{name}.js").read_text()
        for imported in _IMPORT.finditer(text):
            yield from visit(imported[2], (*on_the_way, name))
        done.append(name)
        yield name, text

    yield from visit(first, ())


def _as_function(name: str, text: str) -> str:
    exported = ", ".join(found[2] for found in _EXPORT.finditer(text))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(_taken, text))
    if left := _STATEMENT.search(body):
        raise ValueError(f"{name}.js has a form of import or export that is not known: {left[0]}")
    return f"const {name}_js = await (async () => {{\n{body}return {{ {exported} }};\n}})();\n"


def _taken(imported: re.Match[str]) -> str:
    return f"const {{{imported[1].replace(' as ', ': ')}}} = {imported[2]}_js;"
