"""What is read of a checkout's history, and that nothing of it is touched."""

from pathlib import Path

import pytest

from orchestrator.asked import commits
from orchestrator.errors import ConfigError
from tests.a_repository import Repository, made

INIT = "vllm/__init__.py"


@pytest.fixture
def vllm(tmp_path: Path) -> Repository:
    repository = made(tmp_path / "vllm")
    repository.commit("first", {INIT: "", "vllm/a.py": "1\n", "vllm/gone.py": ""})
    repository.git("tag", "v1")
    return repository


def subjects(repository: Repository, old: str, new: str) -> list[str]:
    checkout = commits.checkout(str(repository.root))
    return [c.subject for c in checkout.between(checkout.commit(old), checkout.commit(new))]


def test_commits_between_are_those_that_change_vllm_from_the_oldest_on(vllm: Repository) -> None:
    vllm.commit("second: ünïcode", {"vllm/a.py": "2\n"})
    vllm.commit("docs", {"docs/x.md": "x"})
    vllm.commit("third", {"vllm/b.py": "3\n"})
    vllm.commit("tests", {"tests/x.py": "x"})

    assert subjects(vllm, "v1", "HEAD") == ["first", "second: ünïcode", "third"]


def test_a_merge_is_one_commit_of_its_line(vllm: Repository) -> None:
    vllm.git("checkout", "--quiet", "-b", "topic")
    vllm.commit("on the topic", {"vllm/b.py": "b"})
    vllm.git("checkout", "--quiet", "main")
    vllm.commit("on main", {"vllm/c.py": "c"})
    vllm.git("merge", "--quiet", "--no-ff", "-m", "the merge", "topic")

    checkout = commits.checkout(str(vllm.root))
    found = checkout.between(checkout.commit("v1"), checkout.commit("main"))

    assert [(c.subject, c.is_merge) for c in found] == [
        ("first", False),
        ("on main", False),
        ("the merge", True),
    ]


def test_the_files_of_a_commit_are_as_git_has_them_and_the_checkout_stays_as_it_is(
    vllm: Repository, tmp_path: Path
) -> None:
    odd = {"vllm/with blank.py": "a\nb", "vllm/sub/ü.json": "{}\r\n", "vllm/empty.py": ""}
    vllm.commit("second", {**odd, "vllm/gone.py": None, "vllm/a.py": "2\n"})
    (vllm.root / "vllm" / "a.py").write_text("not committed")
    before = vllm.git("status", "--porcelain"), {*(vllm.root / ".git").rglob("*")}
    checkout = commits.checkout(str(vllm.root))

    laid = checkout.lay(checkout.commit("HEAD"), tmp_path / "laid")

    files = {str(p.relative_to(laid)): p.read_bytes() for p in laid.rglob("*") if p.is_file()}
    assert files == {
        **{path: text.encode() for path, text in odd.items()},
        INIT: b"",
        "vllm/a.py": b"2\n",
    }
    assert (vllm.git("status", "--porcelain"), {*(vllm.root / ".git").rglob("*")}) == before


def test_filters_and_hooks_of_the_checkout_start_nothing(vllm: Repository, tmp_path: Path) -> None:
    witness = tmp_path / "started"
    vllm.git("config", "filter.x.smudge", f"touch {witness}; cat")
    vllm.git("config", "filter.x.clean", "cat")
    vllm.commit("filtered", {".gitattributes": "*.py filter=x\n", "vllm/a.py": "2\n"})
    vllm.git("config", "core.fsmonitor", f"touch {witness}")
    vllm.git("config", "core.pager", f"touch {witness}")
    checkout = commits.checkout(str(vllm.root))

    laid = checkout.lay(checkout.commit("HEAD"), tmp_path / "laid")

    assert (laid / "vllm/a.py").read_text() == "2\n"
    assert not witness.exists()


def test_links_are_left_out(vllm: Repository, tmp_path: Path) -> None:
    (vllm.root / "vllm" / "link.py").symlink_to("/etc/passwd")
    vllm.commit("a link", {})
    checkout = commits.checkout(str(vllm.root))

    laid = checkout.lay(checkout.commit("HEAD"), tmp_path / "laid")

    assert not (laid / "vllm/link.py").is_symlink()
    assert (laid / "vllm/a.py").exists()


def test_equal_files_are_laid_once(vllm: Repository, tmp_path: Path) -> None:
    vllm.commit("docs", {"docs/x.md": "x"})
    checkout = commits.checkout(str(vllm.root))
    laid = [checkout.lay(checkout.commit(rev), tmp_path / "laid") for rev in ("v1", "HEAD")]

    assert laid[0] == laid[1]
    assert [*(tmp_path / "laid").iterdir()] == [laid[0]]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("nope", "HEAD", "has no revision nope"),
        ("--all", "HEAD", "has no revision --all"),
        ("v1", "bare", "revision bare of .* has no vllm/"),
        ("v1", "docs", "nothing in vllm/ changes from"),
        ("side", "main", "is no ancestor of .*both come from"),
    ],
)
def test_ends_between_which_there_is_no_way_are_told(
    vllm: Repository, old: str, new: str, why: str
) -> None:
    vllm.commit("docs", {"docs/x.md": "x"})
    vllm.git("tag", "docs")
    vllm.git("checkout", "--quiet", "-b", "side", "v1")
    vllm.commit("on the side", {"vllm/s.py": "s"})
    vllm.git("checkout", "--quiet", "-b", "bare")
    vllm.git("rm", "-r", "--quiet", "vllm")
    vllm.commit("no vllm", {"x": "x"})
    vllm.git("checkout", "--quiet", "main")
    vllm.commit("on main", {"vllm/m.py": "m"})

    with pytest.raises(ConfigError, match=why):
        subjects(vllm, old, new)


def test_a_folder_that_is_no_checkout_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no git checkout"):
        commits.checkout(str(tmp_path))
