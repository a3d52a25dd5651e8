"""The search through releases and commits, from words to an answer, with a stand-in for the cluster."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jobs.contract.asked import CellRequest
from jobs.contract.seen import ProbeReport
from orchestrator.__main__ import answer
from orchestrator.asked import lineage
from orchestrator.asked.config import Build
from orchestrator.errors import ConfigError
from orchestrator.kept.run_directory import find
from orchestrator.running.cluster import Builds, Needs, Node, Wanted
from orchestrator.running.on_ray import cluster as ray_cluster
from tests.a_repository import Repository, made
from tests.builders import a_failed_report, a_report, an_attempt, groups
from tests.fakes import FakeCluster

QUESTION = "cpu/llama/auto"
BASE = f"{QUESTION}/v0_32"
BAD = a_failed_report("No KV cache layout satisfies every supported set")
OTHER = a_failed_report("CUDA error: an illegal memory access", type_="torch.AcceleratorError")
MARK = "vllm/mark.py"


@dataclass
class KnowingCluster(FakeCluster):
    """Answers by the version of the build, or by what a checkout has in one file."""

    answers: Mapping[str, ProbeReport] = field(default_factory=dict)
    unbuildable: Sequence[str] = ()
    marks: dict[str, str] = field(default_factory=dict)
    starts: int = 0

    def __call__(self, *words: object) -> "KnowingCluster":
        del words
        self.starts += 1
        return self

    def provision(self, wanted: Sequence[Wanted], cache: str, say: Callable[[str], None]) -> Builds:
        for spec in (each.spec for each in wanted):
            mark = Path(spec.checkout, MARK) if spec.checkout else None
            self.marks[spec.name] = mark.read_text() if mark else str(spec.release)
            if self.marks[spec.name] in self.unbuildable:
                raise ConfigError("a build can't be made as it is described:", [spec.name])
        return super().provision(wanted, cache, say)

    def submit(
        self,
        request: CellRequest,
        needs: Needs,
        node: Node,
        followers: Sequence[tuple[CellRequest, Node]] = (),
    ) -> None:
        mark = self.marks[request.build.name]
        report = self.answers.get(mark, a_report())
        self.script[request.probe.cell_id] = [an_attempt(report), an_attempt(report)]
        super().submit(request, needs, node, followers)

    @property
    def tried(self) -> list[str]:
        return [self.marks[cell_id.rsplit("/", 1)[-1]] for cell_id in self.submitted]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VLLM_MATRIX_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> KnowingCluster:
    fake = KnowingCluster()
    monkeypatch.setattr(ray_cluster, "RayCluster", fake)
    return fake


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Seven releases for the CPU."""
    folder = tmp_path / "conf" / "build"
    folder.mkdir(parents=True)
    for minor in range(1, 8):
        name = f"r{minor}"
        described = f"release: 1.{minor}.0\ndistribution: mine\ntorch_backend: cpu\n"
        (folder / f"{name}.yaml").write_text(f"# @package build.{name}\n{described}")
    return folder.parent


@pytest.fixture
def vllm(tmp_path: Path) -> Repository:
    """Nine commits, marked 0 to 8."""
    repository = made(tmp_path / "vllm")
    for number in range(9):
        repository.commit(f"change {number}", {"vllm/__init__.py": "", MARK: str(number)})
        repository.git("tag", f"t{number}")
    return repository


def bisect(conf: Path, *words: str) -> int:
    return answer(["bisect", *words, QUESTION, f"--config-dir={conf}"])


def answers(bad: Sequence[object], report: ProbeReport = BAD) -> dict[str, ProbeReport]:
    return {str(each): report for each in bad}


def test_the_release_that_broke_it_is_named(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers(["1.5.0", "1.6.0", "1.7.0"])

    assert bisect(conf, "r1", "1.7.0") == 0

    assert f"r5 (1.5.0) made it bad: {QUESTION}" in capsys.readouterr().out
    assert cluster.tried == ["1.1.0", "1.7.0", "1.4.0", "1.5.0"]
    assert (cluster.starts, cluster.closed) == (1, True)


def test_the_release_that_fixed_it_is_named_where_good_is_newer(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers(["1.1.0", "1.2.0"])

    assert bisect(conf, "r7", "r1") == 0

    assert "r3 (1.3.0) made it good" in capsys.readouterr().out


def test_it_is_one_run_whose_cells_can_be_explained(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers(["1.7.0"])
    bisect(conf, "r1", "r7")
    [run] = Path("runs").iterdir()

    assert {cell.id for cell in find("latest").asked().cells} == {
        f"{QUESTION}/r{each}" for each in (1, 4, 5, 6, 7)
    }
    assert {file.name for file in run.iterdir()} >= {"config.yaml", "summary.json", "matrix.md"}
    capsys.readouterr()
    assert answer(["explain", "latest", f"{QUESTION}/r6"]) == 0
    assert "vllm-matrix run" in capsys.readouterr().out


def test_what_is_known_from_other_runs_is_not_tried_again(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers(["1.6.0", "1.7.0"])
    cells = ["hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[r1,r5,r7]"]
    answer([*cells, f"--config-dir={conf}"])
    cluster.submitted.clear()

    assert bisect(conf, "r1", "r7") == 0

    assert cluster.tried == ["1.6.0"]
    assert "r6 (1.6.0) made it bad" in capsys.readouterr().out
    cluster.submitted.clear()
    assert bisect(conf, "r1", "r7") == 0
    assert cluster.tried == []


def test_a_version_that_can_t_be_built_or_fails_otherwise_is_skipped(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = {**answers(["1.5.0", "1.6.0", "1.7.0"]), "1.3.0": OTHER}
    cluster.unbuildable = ["1.4.0"]

    assert bisect(conf, "r1", "r7") == 1

    said = " ".join(capsys.readouterr().out.split())
    assert "r4 (1.4.0) is skipped: says nothing: a build can't be made as it is described" in said
    assert "r3 (1.3.0) is skipped: failed (cuda_error)" in said
    assert "one of 3 versions made it bad" in said
    assert "r3 (1.3.0), r4 (1.4.0), r5 (1.5.0)" in said


def test_ends_that_are_not_as_said_end_the_search_with_what_they_are(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers(["1.1.0"])

    assert bisect(conf, "r1", "r7") == 2

    said = " ".join(capsys.readouterr().err.split())
    assert "GOOD is r1, BAD is r7" in said
    assert "GOOD and BAD are the other way round" in said
    assert len(cluster.tried) == 2


def test_one_failure_among_others_can_be_looked_for(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = {**answers(["1.1.0", "1.2.0", "1.3.0"]), **answers(["1.7.0"], OTHER)}

    assert bisect(conf, "r1", "r7", "--until=category=cuda_error") == 0

    assert "r7 (1.7.0) made it bad" in capsys.readouterr().out


def test_where_all_pass_the_release_that_chose_another_backend_is_named(
    cluster: KnowingCluster, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers(["1.6.0", "1.7.0"], a_report(target=groups("NEW_ATTN")))

    assert bisect(conf, "r1", "r7") == 0

    said = capsys.readouterr().out
    assert "r6 (1.6.0) made it bad" in said
    assert "target attention: CPU_ATTN (CPU_ATTN) → NEW_ATTN (NEW_ATTN)" in said


def commits(vllm: Repository, good: str, bad: str, *words: str) -> int:
    return answer(["bisect", good, bad, BASE, f"--checkout={vllm.root}", *words])


def test_the_commit_that_broke_it_is_named(
    cluster: KnowingCluster, vllm: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers([6, 7, 8])

    assert commits(vllm, "t0", "main") == 0

    short = vllm.git("rev-parse", "t6")[:10]
    said = capsys.readouterr().out
    assert f"v0_32-{short} (" in said
    assert f"change 6) made it bad: {QUESTION}" in said
    assert cluster.tried == ["0", "8", "4", "6", "5"]
    assert vllm.git("status", "--porcelain") == ""


def test_the_commit_that_fixed_it_is_named(
    cluster: KnowingCluster, vllm: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers = answers([0, 1, 2])

    assert commits(vllm, "main", "t0") == 0

    assert "change 3) made it good" in capsys.readouterr().out


def test_a_commit_is_not_tried_twice(cluster: KnowingCluster, vllm: Repository) -> None:
    cluster.answers = answers([6, 7, 8])
    commits(vllm, "t0", "main")
    cluster.submitted.clear()

    assert commits(vllm, "t2", "main") == 0

    assert cluster.tried == ["2"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["r1", "r1", QUESTION], "r1 and r1 are the same release"),
        (["1.1", "r7", QUESTION], ""),
        (["0.99.0", "r8", QUESTION], "there is no release 0.99.0 in conf/build"),
        (["v0_32_strict_cpu", "r1", QUESTION], "is no release as it was published"),
        (["r1", "r7", "cpu/*/auto"], "bisect follows one cell"),
        (["r1", "r7", "cpu/lama/auto"], 'Did you mean "llama"?'),
        (["r1", "r7", QUESTION, "--checkout=."], "commits need a build"),
        (["r1", "r7", BASE, "--checkout=."], "is no git checkout"),
        (["r1", "r7", QUESTION, "--until=kv_layout"], 'Did you mean "kv_layout_conflict"?'),
    ],
)
def test_words_that_make_no_sense_are_told_before_anything_starts(
    cluster: KnowingCluster,
    conf: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    why: str,
) -> None:
    cluster.answers = answers(["1.7.0"])

    code = answer(["bisect", *words, f"--config-dir={conf}"])

    assert why in " ".join(capsys.readouterr().err.split())
    assert code == (2 if why else 0)
    assert bool(cluster.starts) is not bool(why)


def test_releases_of_another_kind_are_not_among_those_between() -> None:
    gpu = {f"g{n}": Build(release=f"0.{n}.0") for n in (1, 2, 3, 10)}
    cpu = {f"c{n}": Build(release=f"0.{n}.0", torch_backend="cpu") for n in (2, 3)}
    patched = dataclasses.replace(gpu["g2"], release="0.2.1", patches=("x.diff",))

    row = lineage.releases("0.10", "g1", {**cpu, **gpu, "p": patched}, on_cpu=False)

    assert [version.build for version in row.versions] == ["g1", "g2", "g3", "g10"]
    assert not row.good_is_older
