"""Folders of models, most of them with something wrong."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobs.probe.shipped import MODELS

BYTES = {"F32": 4}


def make(folder: Path) -> None:
    for name, spoil in FOLDERS.items():
        model = folder / name
        model.mkdir(parents=True)
        configure(model)
        spoil(model)


def configure(model: Path, **changes: Any) -> None:
    """The small Llama that comes with the project, but for *changes*."""
    config = json.loads((MODELS / "llama" / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | changes))


def write_weights(model: Path, shapes: dict[str, tuple[int, ...]]) -> Path:
    """Zeros, as safetensors."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        begin = end
        end += 4 * _product(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    file = model / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
    return file


def _product(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _without_weights(_: Path) -> None:
    pass


def _broken_config(model: Path) -> None:
    (model / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], ')


def _without_config(model: Path) -> None:
    (model / "config.json").unlink()


def _cut_weights(model: Path) -> None:
    file = write_weights(model, {"model.embed_tokens.weight": (512, 128)})
    file.write_bytes(file.read_bytes()[:1000])


def _no_weights_at_all(model: Path) -> None:
    (model / "model.safetensors").write_bytes(b"<html>too many requests</html>" * 10)


def _weights_of_another_shape(model: Path) -> None:
    write_weights(model, {"model.embed_tokens.weight": (512, 64)})


def _too_few_weights(model: Path) -> None:
    write_weights(model, {"model.embed_tokens.weight": (512, 128)})


def _index_of_absent_files(model: Path) -> None:
    weights = {"model.embed_tokens.weight": "model-00001-of-00002.safetensors"}
    index = {"metadata": {}, "weight_map": weights}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    write_weights(model, {"model.embed_tokens.weight": (512, 128)})


def _unknown_architecture(model: Path) -> None:
    configure(model, architectures=["NobodyKnowsThisForCausalLM"])


def _unknown_type(model: Path) -> None:
    configure(model, model_type="nobody-knows-this", architectures=["NobodyKnowsThisForCausalLM"])


def _code_that_needs_a_package(model: Path) -> None:
    configure(model, model_type="own", auto_map={"AutoConfig": "configuration_own.OwnConfig"})
    (model / "configuration_own.py").write_text(
        "import a_package_that_nobody_has\n"
        "from transformers import LlamaConfig\n"
        "class OwnConfig(LlamaConfig):\n"
        "    model_type = 'own'\n"
    )


def _another_vocabulary(model: Path) -> None:
    configure(model, vocab_size=1024)


FOLDERS: dict[str, Callable[[Path], None]] = {
    "without-weights": _without_weights,
    "broken-config": _broken_config,
    "without-config": _without_config,
    "cut-weights": _cut_weights,
    "no-weights-at-all": _no_weights_at_all,
    "weights-of-another-shape": _weights_of_another_shape,
    "too-few-weights": _too_few_weights,
    "index-of-absent-files": _index_of_absent_files,
    "unknown-architecture": _unknown_architecture,
    "unknown-type": _unknown_type,
    "code-that-needs-a-package": _code_that_needs_a_package,
    "another-vocabulary": _another_vocabulary,
}
