"""Waivers in a file of their own: found, checked, and with every mistake at once."""

from pathlib import Path

import pytest

from orchestrator.asked.compose import compose
from orchestrator.asked.conf_files import CONF
from orchestrator.errors import ConfigError

AXES = ["hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]"]
GOOD = """
waivers:
  - {cells: "*", category: timeout, reason: known, owner: me, expires: 2027-06-30}
  - {cells: "cpu/*", verdict: drift, reason: known, owner: me}
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def mistakes(text: str) -> list[str]:
    Path("mine.yaml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        compose([*AXES, "gate.waiver_files=[mine.yaml]"])
    return list(raised.value.mistakes)


def test_the_waivers_of_a_file_come_after_those_of_the_gate() -> None:
    Path("mine.yaml").write_text(GOOD)
    own = "{cells: x, category: timeout, reason: r, owner: o}"

    [config] = compose([*AXES, f"gate.waivers=[{own}]", "gate.waiver_files=[mine.yaml]"])

    assert [(each.cells, each.category) for each in config.gate.waivers] == [
        ("x", "timeout"),
        ("*", "timeout"),
        ("cpu/*", None),
    ]


@pytest.mark.parametrize("gate", ["release", "strict", "nightly", "survey"])
def test_a_suite_keeps_its_waivers_whatever_the_policy(gate: str) -> None:
    [config] = compose(["suite=demo", f"gate={gate}"])

    assert config.gate.name == gate
    assert [waiver.category for waiver in config.gate.waivers] == ["silent_fallback"]


def test_a_file_is_looked_for_in_what_config_dir_adds(tmp_path: Path) -> None:
    (tmp_path / "own" / "waivers").mkdir(parents=True)
    (tmp_path / "own" / "waivers" / "ours.yaml").write_text(GOOD)

    [config] = compose(["--config-dir=own", *AXES, "gate.waiver_files=[waivers/ours.yaml]"])

    assert len(config.gate.waivers) == 2


def test_every_mistake_of_a_file_is_said_with_its_place() -> None:
    found = mistakes("""
waivers:
  - {cells: "*", categry: timeout, reason: known, owner: me}
  - {cells: "*", verdict: regresed, reason: known, owner: me, expires: soon}
  - {cells: "*", category: timeout}
""")

    assert [mistake.split(",")[0].split(";")[0] for mistake in found] == [
        'mine.yaml: waivers.0.categry: there is no key "categry"',
        "mine.yaml: waivers.1.verdict: \"regresed\" is not one of 'regressed'",
        "mine.yaml: waivers.1.expires: Input should be a valid date or datetime",
        "mine.yaml: waivers.2.reason: is missing",
        "mine.yaml: waivers.2.owner: is missing",
    ]
    assert 'Did you mean "category"?' in found[0]
    assert 'Did you mean "regressed"?' in found[1]


@pytest.mark.parametrize(
    ("waiver", "mistake"),
    [
        ("{cells: x, reason: r, owner: o}", "mine.yaml: waivers.0: says neither which category"),
        (
            "{cells: x, category: tmeout, reason: r, owner: o}",
            'mine.yaml: waivers.0.category: there is no category "tmeout"',
        ),
        (
            "{cells: x, category: timeout, verdict: drift, reason: r, owner: o}",
            "mine.yaml: waivers.0: what is drift has no category",
        ),
        (
            "{cells: x, verdict: not run, reason: r, owner: o}",
            'mine.yaml: waivers.0.verdict: "not run" is not one of',
        ),
    ],
)
def test_a_waiver_that_makes_no_sense_is_refused(waiver: str, mistake: str) -> None:
    [found] = mistakes(f"waivers: [{waiver}]")

    assert found.startswith(mistake)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "mine.yaml: is not a file of waivers"),
        ("- a", "mine.yaml: is not a file of waivers"),
        ("waivers: [", "mine.yaml: while parsing"),
        ("waiver: []", 'mine.yaml: waiver: there is no key "waiver"; allowed: waivers'),
    ],
)
def test_what_is_no_file_of_waivers_says_so(text: str, mistake: str) -> None:
    assert any(found.startswith(mistake) for found in mistakes(text))


def test_a_file_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        compose([*AXES, "gate.waiver_files=[waivers/dmeo.yaml]"])

    [mistake] = raised.value.mistakes
    assert mistake == (
        f"gate.waiver_files: there is no file waivers/dmeo.yaml (looked in {CONF}, {tmp_path})"
    )
