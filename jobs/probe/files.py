"""Write files that another process may read at any moment, or that several append to."""

import os
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Readers see the old text or the new one, never a part, and no half of a character."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8", errors="replace")
    temporary.replace(path)


def append_line(path: Path, line: str) -> None:
    """One write for the whole line: lines of several processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)
