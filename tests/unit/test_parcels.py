"""A run directory, sent piece by piece: whatever happens on the way, both are the same at the end."""

import base64
import json
import tempfile
import zlib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.remote import parcels, sender
from orchestrator.remote.parcels import Entry, Parcel, ParcelError, to_text
from orchestrator.remote.receiver import Receiver
from orchestrator.remote.sender import Sender


class Journey:
    """A run on a cluster, and a laptop that takes what it leaves."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "there" / "2026-12-02-cells"
        self.out = folder / "logs"
        self.runs = folder / "here"
        for each in (self.run, self.out, self.runs):
            each.mkdir(parents=True)
        self.running: dict[str, str] = {}
        self.sender = Sender(self.run, self.out, "s1")

    def write(self, name: str, text: str) -> None:
        file = self.run / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def begin(self, cell_id: str) -> None:
        self.running[cell_id] = str(self.run / "cells" / cell_id / "1")
        self.write(f"cells/{cell_id}/1/phase.json", "import")

    def end(self, cell_id: str) -> None:
        self.write(f"cells/{cell_id}/1/report.json", f"report of {cell_id}")
        with (self.run / "records.jsonl").open("a") as records:
            records.write(json.dumps(cell_id) + "\n")
        del self.running[cell_id]

    def look(self) -> None:
        self.sender._looked = -1e9  # noqa: SLF001  time passes
        self.sender.look(self.running)

    def take(self) -> Receiver:
        receiver = Receiver(self.runs, "s1")
        while (file := self.out / f"s1-{receiver.expected:05}.parcel").exists():
            receiver.take(file.read_text())
        return receiver

    @property
    def texts(self) -> list[str]:
        return [file.read_text() for file in sorted(self.out.glob("*.parcel"))]


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    return Journey(tmp_path)


def tree(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file() and file.name[0] != "."]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_the_run_arrives_live_and_whole(journey: Journey) -> None:
    journey.write("run.json", "asked")
    journey.begin("a/b")
    journey.look()
    journey.take()

    assert tree(journey.runs / "2026-12-02-cells") == tree(journey.run)

    journey.end("a/b")
    journey.write("matrix.md", "table")
    journey.sender.close()
    receiver = journey.take()

    assert receiver.is_complete
    assert receiver.run == journey.runs / "2026-12-02-cells"
    assert tree(receiver.run) == tree(journey.run)


STEPS = st.lists(
    st.sampled_from(["begin", "end", "note", "look", "take", "again", "report"]), max_size=40
)


@given(steps=STEPS)
def test_whatever_the_order_of_things_both_are_the_same_at_the_end(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journey = Journey(Path(folder))
        for count, step in enumerate(steps):
            match step:
                case "begin":
                    journey.begin(f"cell{count}")
                case "end" if journey.running:
                    journey.end(next(iter(journey.running)))
                case "note" if journey.running:
                    running = next(iter(journey.running))
                    journey.write(f"cells/{running}/1/probe.log", "line\n" * count)
                case "report":
                    journey.write("matrix.md", f"table {count}")
                case "look":
                    journey.look()
                case "take":
                    journey.take()
                case "again" if journey.texts:
                    journey.take().take(journey.texts[0])
                case _:
                    pass
        journey.sender.close()
        receiver = journey.take()

        assert receiver.is_complete
        assert receiver.run is not None
        assert tree(receiver.run) == tree(journey.run)


def test_nothing_new_leaves_no_parcel(journey: Journey) -> None:
    journey.write("run.json", "asked")
    journey.look()
    journey.look()

    assert len(journey.texts) == 1


def test_a_record_never_comes_before_the_report_that_it_is_made_of(journey: Journey) -> None:
    journey.begin("a")
    journey.look()
    journey.end("a")
    journey.look()

    parcel = parcels.from_text(journey.texts[-1])
    assert [entry.path for entry in parcel.entries][-1] == "records.jsonl"


def test_a_parcel_that_is_missing_is_noticed(journey: Journey) -> None:
    for number in range(2):
        journey.write("run.json", f"asked {number}" * (number + 1))
        journey.look()

    with pytest.raises(ParcelError, match="parcel 1 came before parcel 0"):
        Receiver(journey.runs, "s1").take(journey.texts[1])


def test_a_torn_parcel_is_noticed(journey: Journey) -> None:
    journey.write("run.json", "asked")
    journey.look()

    with pytest.raises(ParcelError, match="torn"):
        Receiver(journey.runs, "s1").take(journey.texts[0][:-9])


def test_a_run_goes_on_behind_a_parcel_that_was_passed_over(journey: Journey) -> None:
    for number, cell in enumerate("abc"):
        journey.write("run.json", "asked" * (number + 1))
        journey.begin(cell)
        journey.end(cell)
        journey.look()
    receiver = Receiver(journey.runs, "s1")

    receiver.take(journey.texts[0])
    receiver.pass_over()
    receiver = Receiver(journey.runs, "s1")
    receiver.take(journey.texts[2])

    assert receiver.run is not None
    lines = (receiver.run / "records.jsonl").read_text().split("\n")
    assert [line for line in lines if line] == ['"a"', '"c"']
    assert (receiver.run / "run.json").read_text() == "asked" * 3
    assert receiver.passed_over == 1


def test_also_the_first_parcel_may_be_passed_over(journey: Journey) -> None:
    for cell in "ab":
        journey.begin(cell)
        journey.end(cell)
        journey.look()
    receiver = Receiver(journey.runs, "s1")

    receiver.pass_over()
    receiver.take(journey.texts[1])

    assert receiver.run is not None
    assert (receiver.run / "records.jsonl").read_text().strip() == '"b"'


A_PARCEL = Parcel(number=0, run="run", origin="o", entries=(), is_last=False)


def with_file(path: str, *, offset: int = 0) -> Parcel:
    content = base64.b64encode(b"x").decode()
    return replace(A_PARCEL, entries=(Entry(path=path, offset=offset, content=content),))


@pytest.mark.parametrize(
    "hostile",
    [
        *map(with_file, ["/etc/x", "../x", "cells/../../x", "cells/./x/.y", "", ".origin", "a\0b"]),
        replace(with_file("x"), run="../elsewhere"),
        replace(with_file("x"), run="a/b"),
        replace(with_file("x"), run=".."),
        with_file("x", offset=7),
    ],
)
def test_a_hostile_parcel_writes_nothing_outside_of_the_run(
    hostile: Parcel, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()

    with pytest.raises(ParcelError):
        Receiver(runs, "s1").take(to_text(hostile))

    assert [*tmp_path.iterdir()] == [runs]
    assert not [file for file in runs.rglob("*") if file.is_file() and file.name != ".origin"]


def test_a_link_that_lies_in_the_way_is_not_followed(journey: Journey, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    journey.write("run.json", "asked")
    journey.look()
    receiver = journey.take()
    assert receiver.run is not None
    (receiver.run / "cells").symlink_to(outside)
    journey.begin("a")
    journey.look()

    with pytest.raises(ParcelError, match="leads out of"):
        journey.take()

    assert not [*outside.iterdir()]


@pytest.mark.parametrize(
    "content",
    [
        zlib.compress(bytes(10**8)),
        b"no zlib",
        zlib.compress(b"[1]"),
        zlib.compress(b'{"number": 0}'),
        zlib.compress(b"[" * 10**6),
    ],
    ids=["a bomb", "no zlib", "a list", "half of it", "too deep"],
)
def test_what_is_no_parcel_is_refused(content: bytes, tmp_path: Path) -> None:
    packed = base64.encodebytes(content).decode()
    text = f"vllm-matrix parcel 1 {sha256(packed.encode()).hexdigest()}\n{packed}"

    with pytest.raises(ParcelError, match="can't be read"):
        Receiver(tmp_path, "s1").take(text)


def test_another_run_of_the_same_name_gets_a_folder_of_its_own(journey: Journey) -> None:
    ours = journey.runs / "2026-12-02-cells"
    ours.mkdir()
    (ours / "run.json").write_text("ours")
    journey.write("run.json", "theirs")
    journey.look()

    receiver = journey.take()

    assert receiver.run == journey.runs / "2026-12-02-cells-2"
    assert (ours / "run.json").read_text() == "ours"


def test_a_run_that_goes_on_in_another_job_goes_on_in_the_same_folder(journey: Journey) -> None:
    journey.write("run.json", "asked")
    journey.begin("a")
    journey.end("a")
    journey.sender.close()
    journey.take()
    later = Sender(journey.run, journey.out, "s2")
    journey.begin("b")
    journey.end("b")
    later.look({})
    later.close()

    receiver = Receiver(journey.runs, "s2")
    for file in sorted(journey.out.glob("s2-*.parcel")):
        receiver.take(file.read_text())

    assert receiver.run == journey.runs / "2026-12-02-cells"
    assert (receiver.run / "records.jsonl").read_text() == '"a"\n"b"\n'


def test_of_a_large_log_the_beginning_and_the_end_are_sent(
    journey: Journey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LARGEST_FILE", 100)
    monkeypatch.setattr(sender, "WHILE_RUNNING", 50)
    journey.begin("a")
    journey.write("cells/a/1/probe.log", "begin" + "." * 1000 + "end")
    journey.look()

    assert "cells/a/1/probe.log" not in tree(journey.take().run or journey.runs)

    journey.end("a")
    journey.look()
    log = tree(journey.take().run or journey.runs)["cells/a/1/probe.log"].decode()

    assert log.startswith("begin")
    assert "908 bytes are left out here" in log
    assert log.endswith("end")


def test_a_folder_that_is_gone_costs_parcels_and_not_the_run(journey: Journey) -> None:
    journey.out.rmdir()
    journey.write("run.json", "asked")
    journey.look()

    assert journey.sender.trouble is not None
    assert "No such file" in journey.sender.trouble
