"""conf/ and the command line: what is accepted, and how every mistake is named."""

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose, options
from orchestrator.asked.conf_files import CONF
from orchestrator.errors import ConfigError

AXES = ["hardware=[cpu]", "model=[llama]", "backend=[auto]", "build=[v0_32]"]


def mistakes(*words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        compose(words)
    return str(caught.value)


@pytest.mark.parametrize("suite", options("suite"))
def test_every_suite_is_a_valid_configuration(suite: str) -> None:
    [config] = compose([f"suite={suite}"])

    assert config.suite.name


@pytest.mark.parametrize("gate", options("gate"))
def test_every_gate_is_a_valid_configuration(gate: str) -> None:
    assert compose([f"gate={gate}"])


@pytest.mark.parametrize("axis", ["hardware", "model", "backend", "build"])
def test_every_file_of_an_axis_is_valid_and_named_after_itself(axis: str) -> None:
    names = options(axis)

    [config] = compose([f"{axis}=[{','.join(names)}]"])

    assert sorted(getattr(config, axis)) == names


def test_every_unknown_choice_and_key_is_named_at_once() -> None:
    first, *rest = mistakes(
        "hardware=[cpuu]", "model=[lama,llama]", "suite=dem", "deadlin_s=3", "attempts=0"
    ).splitlines()

    assert first == "the configuration does not make sense:"
    # What is allowed in between grows with every file.
    assert [(line.split("; allowed: ")[0], line.split("Did you mean ")[-1]) for line in rest] == [
        ("  - attempts: Input should be greater than or equal to 1, but it is 0",) * 2,
        ('  - deadlin_s: there is no key "deadlin_s"', '"deadline_s"?'),
        ("  - hardware: there is no conf/hardware/cpuu.yaml", '"cpu"?'),
        ("  - model: there is no conf/model/lama.yaml", '"llama"?'),
        ("  - suite: there is no conf/suite/dem.yaml", '"demo"?'),
    ]


def test_what_is_allowed_is_listed_in_full() -> None:
    [_, line] = mistakes("backend=[atuo]").splitlines()

    assert f"; allowed: {', '.join(options('backend'))}." in line


def test_every_wrong_value_is_named_with_its_file_and_what_is_allowed() -> None:
    assert mistakes(
        *AXES,
        "deadline_s=soon",
        "hardware.cpu.venodr=x",
        "hardware.cpu.vendor=nvidai",
        "model.llama.devices=two",
        "backend.auto.target.attention_backed=X",
        "engine_mode=reel",
    ) == snapshot("""\
the configuration does not make sense:
  - conf/hardware/cpu.yaml: hardware.cpu.vendor: "nvidai" is not one of 'cpu', 'nvidia' or 'amd'. Did you mean "nvidia"?
  - conf/hardware/cpu.yaml: hardware.cpu.venodr: there is no key "venodr"; allowed: arch, card, compute_units, engine_modes, memory_gib, pci_device, product, ray_accelerator, shared_memory_kib, source, vendor. Did you mean "vendor"?
  - conf/model/llama.yaml: model.llama.devices: Input should be a valid integer, unable to parse string as an integer, but it is 'two'
  - conf/backend/auto.yaml: backend.auto.target.attention_backed: there is no key "attention_backed"; allowed: attention_backend, kv_cache_dtype, moe_backend. Did you mean "attention_backend"?
  - engine_mode: "reel" is not one of 'real' or 'emulated'. Did you mean "real"?
  - deadline_s: Input should be a valid number, unable to parse string as a number, but it is 'soon'\
""")


def test_a_build_needs_one_origin_and_patches_that_exist() -> None:
    assert mistakes(
        *AXES,
        "build.v0_32.wheel=/nowhere/vllm.whl",
        "build.v0_32.patches=[patches/nope.diff]",
        "deadline_s=0",
    ).replace(str(CONF), "conf") == snapshot("""\
the configuration does not make sense:
  - deadline_s: Input should be greater than 0, but it is 0
  - conf/build/v0_32.yaml: build.v0_32: needs exactly one of release, wheel, interpreter, but has release and wheel
  - conf/build/v0_32.yaml: build.v0_32.patches: there is no file patches/nope.diff (looked in conf)
  - conf/build/v0_32.yaml: build.v0_32.wheel: there is no /nowhere/vllm.whl\
""")


INCOMPLETE = "{vendor: nvidia, arch: sm_99, memory_gib: 8, engine_modes: [emulated]}"


def test_everything_that_an_emulated_card_lacks_is_named_at_once() -> None:
    words = [*AXES, "engine_mode=emulated", f"+hardware.x={INCOMPLETE}", "suite.check=generate"]

    assert mistakes(*words) == snapshot("""\
the configuration does not make sense:
  - hardware.x: can't be emulated without product, compute_units, shared_memory_kib
  - conf/suite/none.yaml: suite.check: emulated engines can't generate: set suite.check=init\
""")


def test_a_backend_that_asks_for_something_is_no_good_to_a_check_without_an_engine() -> None:
    words = [*AXES, "suite.check=import", "backend=[auto,triton_attn]"]

    assert mistakes(*words) == snapshot("""\
the configuration does not make sense:
  - conf/suite/none.yaml: suite.check: import makes no engine, so the requests of triton_attn would come to nothing: set suite.check=init, or backend=[auto]\
""")


def test_only_gpus_can_be_emulated() -> None:
    assert "only cards of nvidia and amd can be emulated" in mistakes(
        *AXES, "+hardware.x={vendor: cpu, engine_modes: [emulated]}"
    )


def test_no_card_may_be_named_as_if_it_were_emulated() -> None:
    assert "would look like an emulated card" in mistakes(
        *AXES, "+hardware.h100-emulated={vendor: cpu}"
    )


def test_an_emulated_build_has_packages_for_every_vendor() -> None:
    [config] = compose(
        [
            *AXES,
            "engine_mode=emulated",
            "suite.check=init",
            "build.v0_32.packages={amd: {name: vllm-rocm, assumed: [aiter]}}",
        ]
    )

    packages = build_specs(config)["v0_32"].packages

    assert {vendor: each.name for vendor, each in packages.items()} == {
        "nvidia": "none",
        "amd": "vllm-rocm",
    }


def test_the_builds_of_a_proof_differ() -> None:
    proof = "suite.proof={claim: it works, before: v0_32, after: v0_32, cells: '*'}"

    assert "v0_32 has 2 parts, and a build proves nothing about itself" in mistakes(*AXES, proof)


@pytest.mark.parametrize("arch", ["gfxabc", "sm_9.0", "sm90", "gfx94"])
def test_an_arch_is_a_capability_or_a_gfx_name(arch: str) -> None:
    assert "hardware.cpu.arch: String should match pattern" in mistakes(
        *AXES, f"hardware.cpu.arch={arch}"
    )


def test_a_proof_names_builds_that_are_chosen() -> None:
    proof = "suite.proof={claim: it works, before: v0_31, after: v0_32, cells: '*'}"

    assert 'there is no build v0_31 among those chosen (v0_32). Did you mean "v0_32"?' in mistakes(
        *AXES, proof
    )


def test_an_index_of_torch_that_uv_does_not_know_is_named() -> None:
    assert '"cuda13" is none that uv takes: auto, cpu, xpu, cu130' in mistakes(
        *AXES, "build.v0_32.torch_backend=cuda13"
    )


def test_a_suite_that_chooses_a_file_which_describes_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "own.yaml").write_text("")
    (tmp_path / "suite" / "mine.yaml").write_text(
        "# @package _global_\ndefaults: [{override /model: [llama, own]}]\nsuite: {name: mine}\n"
    )

    assert "model/own.yaml does not describe model.own" in mistakes(
        f"--config-dir={tmp_path}", "suite=mine"
    )
    assert compose([f"--config-dir={tmp_path}", "suite=mine", "model=[llama]"])


def test_evidence_is_found_by_an_absolute_path_and_has_to_be_there(tmp_path: Path) -> None:
    [config] = compose([*AXES, f"evidence=[{tmp_path}]"])

    assert config.evidence == (str(tmp_path),)
    assert "evidence: there is no nowhere.jsonl" in mistakes(*AXES, "evidence=[nowhere.jsonl]")


def test_a_word_that_is_no_override_is_said() -> None:
    assert "hardware=[cpu: " in mistakes("hardware=[cpu", "model=[llama]")


def test_hydra_only_answers_when_it_is_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert compose([*AXES, "--cfg", "job"]) == []
    assert "shipped:llama" in capsys.readouterr().out


def test_a_folder_of_ones_own_adds_files_and_patches(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "own.diff").write_text("a patch")
    (tmp_path / "build" / "own.yaml").write_text(
        "# @package build.own\nrelease: 0.32.0\npatches: [own.diff]\n"
    )

    [config] = compose([f"--config-dir={tmp_path}", "build=[own,v0_32]"])

    assert config.build["own"].patches == (str(tmp_path / "own.diff"),)
    assert build_specs(config)["own"].patches[0].text == "a patch"


def test_what_only_shows_late_is_found_early_too() -> None:
    waiver = "{cells: '*', category: nocat, reason: r, owner: o, expires: 2027-06-30}"

    assert (
        mistakes(*AXES, f"gate.waivers=[{waiver}]")
        .splitlines()[1]
        .startswith(
            '  - conf/gate/release.yaml: gate.waivers.0.category: there is no category "nocat"; allowed: backend_unsupported'
        )
    )


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("deadline_s=nan", "deadline_s: Input should be greater than 0, but it is nan"),
        ("attempts=0", "attempts: Input should be greater than or equal to 1"),
        ("cluster.cells_at_once=-3", "cluster.cells_at_once: Input should be greater"),
        ("model.llama.devices=0", "conf/model/llama.yaml: model.llama.devices: Input should be"),
        ("suite.name='../x'", "suite.name: String should match pattern"),
        ("budget.max_minutes=0", "budget.max_minutes: Input should be greater than 0"),
        ("budget.max_minutes=inf", "budget.max_minutes: Input should be a finite number"),
        ("budget.max_gpu_hours=two", "budget.max_gpu_hours: Input should be a valid number"),
        ("+budget.max_hours=2", 'budget.max_hours: there is no key "max_hours"'),
        ("budget=5", "budget: "),
        ("cluster.address=''", "cluster.address: String should have at least 1 character"),
        ("cluster.on_interrupt=wait", "cluster.on_interrupt: "),
        ("cluster.runtime_env.container=x", 'there is no key "container"; allowed: conda, '),
        ("cluster.runtime_env.env_vars=null", "cluster.runtime_env.env_vars: Input should be"),
        ("cluster=stagign", "cluster: there is no conf/cluster/stagign.yaml; allowed: local"),
        ("deadline_s=true", "deadline_s: Input should be a number, but it is True"),
        ("attempts=true", "attempts: Input should be a number, but it is True"),
        ("deadlines.provision=1e10", "deadlines.provision: Input should be less than or equal to"),
        ("quiet_s=1e10", "quiet_s: Input should be less than or equal to"),
        ("deadlines.lod=5", "deadlines: \"lod\" is not one of 'provision', "),
        ("gate=null", "gate: null is no choice; allowed: nightly, release"),
        ("model.llama.path=???", "Missing mandatory value: model.llama.path"),
        ("model.llama.path='${nope}'", "nope"),
        (
            "gate.waivers=[{cells: x, category: timeout, reason: r, owner: o, expires: '30.06.27'}]",
            "gate.waivers.0.expires: Input should be a valid date",
        ),
    ],
)
def test_a_value_out_of_range_is_refused_before_anything_starts(word: str, message: str) -> None:
    assert message in mistakes(*AXES, word)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("deadline_s='${nope}'", "Interpolation key 'nope' not found"),
        ("model.llama.engine_args.x=???", "Missing mandatory value: model.llama.engine_args.x"),
        ("gate=null", "gate: null is no choice"),
        ("suite=null", "suite: null is no choice"),
        ("secrets={a: b}", "secrets={a: b}: Cannot merge DictConfig with ListConfig"),
        ("deadlines=[1]", "deadlines=[1]: Cannot merge DictConfig with ListConfig"),
        ("~no_such_key", "'no_such_key' does not exist"),
        ("deadline_s=1,2", "Ambiguous value for argument 'deadline_s=1,2'"),
    ],
)
def test_what_hydra_makes_nothing_of_hides_no_other_mistake(word: str, message: str) -> None:
    said = mistakes(*AXES, "attempts=x", word, "hardware.cpu.vendor=nvidai", "model=[lama,llama]")

    assert message in said
    assert "attempts: Input should be a valid integer" in said
    assert 'hardware.cpu.vendor: "nvidai" is not one of' in said
    assert 'Did you mean "llama"?' in said
    assert len(said.splitlines()) == 5


def test_one_mistake_in_an_entry_hides_no_other() -> None:
    expected = "suite.expectations=[{cells: '*', expect: {category: nocat, phase: nophase}}]"
    words = [
        *("build.v0_32.patches=[nope.diff]", "build.v0_32.foo=1"),
        *("model.llama.path=./x", "model.llama.devices=0", expected),
    ]

    said = mistakes(*AXES, *words)

    for part in ("nope.diff", '"foo"', "./x must be absolute", "devices", "nocat", "nophase"):
        assert part in said
    assert len(said.splitlines()) == 7


def test_what_is_wrong_does_not_count_as_missing() -> None:
    said = mistakes(
        *AXES, "build.v0_32.release=[1]", f"+hardware.x={INCOMPLETE}", "hardware.x.memory_gib=-1"
    )

    assert "needs exactly one of" not in said
    assert "can't be emulated without product, compute_units, shared_memory_kib" in said


@pytest.mark.parametrize("env", ['{"A=B": x}', '{"": x}', '{A: "x\\0y"}'])
def test_an_environment_that_no_process_can_have_is_refused(tmp_path: Path, env: str) -> None:
    (tmp_path / "model").mkdir()
    file = tmp_path / "model" / "own.yaml"
    file.write_text(f"# @package model.own\npath: shipped:llama\nenv: {env}\n")

    assert "model.own.env" in mistakes(f"--config-dir={tmp_path}", *AXES, "model=[own]")


@pytest.mark.parametrize("text", ["", "path: x/y\n", b"path: \xff\n", "path: [\n"])
def test_a_chosen_file_that_describes_nothing_is_named(tmp_path: Path, text: str | bytes) -> None:
    """Or its cells would vanish from the matrix without a word."""
    (tmp_path / "model").mkdir()
    content = text.encode() if isinstance(text, str) else text
    (tmp_path / "model" / "own.yaml").write_bytes(content)

    assert mistakes(f"--config-dir={tmp_path}", *AXES, "model=[llama,own]")


def test_nodes_are_asked_of_a_model_and_not_of_a_backend() -> None:
    words = [f"+backend.auto.engine_args.{word}" for word in ("nnodes=2", "node_rank=1")]

    assert mistakes(*AXES, *words) == snapshot("""\
the configuration does not make sense:
  - conf/backend/auto.yaml: backend.auto.engine_args.nnodes: say it in the model, with the devices that its engine takes
  - conf/backend/auto.yaml: backend.auto.engine_args.node_rank: leave it out: it is chosen when the engine starts\
""")


def test_nodes_of_an_engine_share_its_devices_evenly_and_where_they_meet_is_not_asked() -> None:
    words = [f"+model.llama.engine_args.{word}" for word in ("nnodes=2", "master_port=29501")]

    assert mistakes(*AXES, *words, "model.llama.devices=3") == snapshot("""\
the configuration does not make sense:
  - conf/model/llama.yaml: model.llama.engine_args.nnodes: 2 nodes can't share devices: 3 evenly
  - conf/model/llama.yaml: model.llama.engine_args.master_port: leave it out: it is chosen when the engine starts\
""")
