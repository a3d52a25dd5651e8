"""
A hook of MkDocs: docs/ as a site that holds whatever its pages link to.

Files of the repository that lie outside of docs/ become pages too, so that a link to one can
be followed without a network, and is found if it is dead.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FRONT_DOORS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PLACE = "repository"
"""Of such pages, in the site."""

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)(?P<path>[^)#\s]+)(?=[)#])")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".diff": "diff", ".json": "json", ".sbatch": "bash"}
FRONT_MATTER = "---\nsearch:\n  exclude: true\n---\n\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    docs = Path(config.docs_dir)
    pages = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    wanted = [docs.parent / name for name in FRONT_DOORS]
    known: set[Path] = set()
    for page in pages:
        wanted += _targets(page, docs)
    while wanted:
        path = wanted.pop()
        if path not in known:
            known.add(path)
            uri = _uri(path, docs)
            files.append(File.generated(config, uri, content=_page(path, docs)))
            if path.suffix == ".md" and path.is_file():
                wanted += _targets(path, docs)
            elif path.is_dir():
                wanted += [file for file in _inside(path) if not file.is_relative_to(docs)]
    _complete(config, [page.relative_to(docs).as_posix() for page in pages])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    del files
    docs = Path(config.docs_dir)
    path = _origin(page.file.src_uri, docs)
    if not path.is_file() or path.suffix != ".md":
        return markdown
    here = Path(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        target = _target(path, link["path"])
        if target is None:
            return link["path"]
        return Path(os.path.relpath(_uri(target, docs), here)).as_posix()

    return LINK.sub(moved, markdown)


def _origin(uri: str, docs: Path) -> Path:
    inside = uri.removeprefix(f"{PLACE}/")
    return docs / uri if inside == uri else docs.parent / inside


def _target(path: Path, link: str) -> Path | None:
    found = (path.parent / link).resolve()
    return found if found.exists() else None


def _targets(path: Path, docs: Path) -> Iterator[Path]:
    """What it links to that is no page of docs/."""
    for link in LINK.finditer(path.read_text()):
        target = _target(path, link["path"])
        if target is not None and (target.is_dir() or not target.is_relative_to(docs)):
            yield target


def _uri(path: Path, docs: Path) -> str:
    if path.is_relative_to(docs) and path.is_file():
        return path.relative_to(docs).as_posix()
    inside = path.relative_to(docs.parent).as_posix()
    if path.is_dir():
        return f"{PLACE}/{inside}/index.md"
    return f"{PLACE}/{inside}" if path.suffix == ".md" else f"{PLACE}/{inside}.md"


def _page(path: Path, docs: Path) -> str:
    if path.is_file() and path.suffix == ".md":
        return path.read_text()
    name = path.relative_to(docs.parent).as_posix()
    head = f"{FRONT_MATTER}# {name}\n\n"
    if path.is_dir():
        here = Path(_uri(path, docs)).parent
        links = [(file, os.path.relpath(_uri(file, docs), here)) for file in _inside(path)]
        return head + "".join(f"- [{file.relative_to(path)}]({to})\n" for file, to in links)
    return f"{head}````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text().rstrip()}\n````\n"


def _inside(folder: Path) -> list[Path]:
    found = (file for file in folder.rglob("*") if file.is_file())
    return sorted(file for file in found if "__pycache__" not in file.parts)


def _complete(config: MkDocsConfig, pages: list[str]) -> None:
    """Every page has its place: beside those of its folder, or at the end."""
    navigation: list[dict[str, list[str]]] = config.nav or []
    there = {page for section in navigation for listed in section.values() for page in listed}
    for page in sorted({*pages} - there):
        title = page.partition("/")[0].capitalize() if "/" in page else "More"
        section = next((each[title] for each in navigation if title in each), None)
        if section is None:
            section = []
            navigation.append({title: section})
        section.append(page)
