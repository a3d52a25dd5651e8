"""The documentation as a site: whatever it links to is there, or it is not built (`nox -s docs`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = (
    "site_name: small\nuse_directory_urls: false\nhooks: [{hook}]\n"
    "validation: {{links: {{anchors: warn, unrecognized_links: warn}}}}\n"
    "nav: [{{Start: [index.md]}}]\n"
)
DEAD = {
    "[x](missing.md)": "missing.md",
    "[x](#nowhere)": "#nowhere",
    "[x](../README.md#not-there)": "#not-there",
    "[x](../code/other.yaml)": "other.yaml",
    "[x][gone]\n\n[gone]: gone.md": "gone.md",
}


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with a page, a file beside docs/, and the same hook."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "rules.yaml").write_text("a: <b>\n")
    (tmp_path / "README.md").write_text("# Read me\n\n[page](docs/index.md#here)\n")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / "mkdocs.yml").write_text(SMALL.format(hook=ROOT / "scripts" / "site.py"))
    return tmp_path


def written(small: Path, text: str) -> subprocess.CompletedProcess[str]:
    (small / "docs" / "index.md").write_text(f"# Page\n\n## Here\n\n{text}\n")
    return build(small, small / "site")


def test_files_beside_the_docs_come_along(small: Path) -> None:
    built = written(small, "[rules](../code/rules.yaml) and [code](../code)")

    assert built.returncode == 0, built.stderr
    page = small / "site" / "repository" / "code" / "rules.yaml.html"
    assert "&lt;b&gt;" in page.read_text()
    assert "rules.yaml" in page.with_name("index.html").read_text()
    readme = (small / "site" / "repository" / "index.html").read_text()
    assert 'href="../index.html#here"' in readme


def test_a_dead_link_or_anchor_is_an_error(small: Path) -> None:
    (small / "CHANGELOG.md").write_text("[x](docs/of-the-changelog.md)\n")
    built = written(small, "\n\n".join(DEAD))

    assert built.returncode != 0
    for said in (*DEAD.values(), "of-the-changelog.md"):
        assert said in built.stderr


def test_a_page_that_nobody_listed_is_in_the_navigation(small: Path) -> None:
    (small / "docs" / "findings").mkdir()
    (small / "docs" / "findings" / "one.md").write_text("# What was found\n")

    assert written(small, "Text.").returncode == 0

    start = (small / "site" / "index.html").read_text()
    assert "findings/one.html" in start
