"""
The operators that vLLM's native libraries would register, read from their text.

A library keeps the schema of every operator that it declares as a C string, such as
`silu_and_mul(Tensor! out, Tensor input) -> ()`. No library is loaded for that.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

LONGEST = 8000
"""Of a schema, in characters."""

TYPE = rb"[\w.]+(?:\(\w+!?\))?(?:\[\d*\])?\??"
SCHEMA = re.compile(rb"[A-Za-z_]\w*(?:\.\w+)?\(.*\) ?-> ?(?:\(.*\)|" + TYPE + rb")")


def of_libraries(root: Path, libraries: list[Path]) -> dict[str, list[str]]:
    """Extension module to its schemas, in order; modules are named from *root* on."""
    found: dict[str, set[str]] = {}
    for library in libraries:
        # One file per Python version may hold the same module.
        found.setdefault(_module(library.relative_to(root)), set()).update(_schemas(library))
    return {module: sorted(schemas) for module, schemas in sorted(found.items())}


def _module(path: Path) -> str:
    """`vllm/_C.abi3.so` is imported as `vllm._C`."""
    return ".".join((*path.parts[:-1], path.name.split(".", 1)[0]))


def _schemas(library: Path) -> Iterator[str]:
    with (
        library.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for text in _strings_with_arrow(content):
            plain = b" ".join(text.split())
            if SCHEMA.fullmatch(plain) and plain.isascii():
                yield plain.decode()


def _strings_with_arrow(content: mmap.mmap) -> Iterator[bytes]:
    """C strings: what lies between two zero bytes."""
    at = content.find(b"->")
    while at != -1:
        begin = content.rfind(b"\0", max(0, at - LONGEST), at) + 1
        end = content.find(b"\0", at, at + LONGEST)
        if begin and end != -1:
            yield content[begin:end]
        at = content.find(b"->", max(end, at + 2))
