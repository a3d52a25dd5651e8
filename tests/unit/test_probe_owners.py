"""Which layers are the draft's."""

from dataclasses import dataclass, field

from jobs.probe.reading.owners import Owners


@dataclass(kw_only=True)
class Layer:
    is_draft_layer: bool = False


@dataclass(kw_only=True)
class Model:
    layers: list[Layer] = field(default_factory=list)

    def modules(self) -> list[Layer]:
        return self.layers

    def named_modules(self) -> list[tuple[str, Layer]]:
        return [(str(index), layer) for index, layer in enumerate(self.layers)]


@dataclass(kw_only=True)
class Graphs:
    """Around a model, as vLLM wraps one that it captures graphs of."""

    runnable: Model


@dataclass(kw_only=True)
class Drafter:
    model: Model | None = None
    draft_attn_layer_names: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class Runner:
    model: Model | Graphs
    drafter: Drafter | None = None

    def get_model(self) -> Model | Graphs:
        return self.model


def test_without_speculation_every_layer_is_the_targets() -> None:
    layers = {"a": Layer(), "b": Layer()}
    owners = Owners.of(Runner(model=Model(layers=list(layers.values()))))

    assert owners.split(layers) == (layers, {})


def test_the_drafts_layers_are_those_of_its_model() -> None:
    a, b = Layer(), Layer()
    drafter = Drafter(model=Model(layers=[b]), draft_attn_layer_names={"b"})
    owners = Owners.of(Runner(model=Graphs(runnable=Model(layers=[a])), drafter=drafter))

    assert owners.split({"a": a, "b": b}) == ({"a": a}, {"b": b})
    assert owners.contradictions({"a": a, "b": b}) == ()


def test_signals_that_contradict_each_other_are_told_on() -> None:
    a, b = Layer(), Layer()
    drafter = Drafter(model=Model(layers=[b]), draft_attn_layer_names={"a", "b"})
    owners = Owners.of(Runner(model=Model(layers=[a]), drafter=drafter))

    assert owners.split({"a": a, "b": b})[1] == {"a": a, "b": b}
    assert owners.contradictions({"a": a, "b": b}) == (
        "whether a is the draft's: the module tree says False, the drafter's list says True",
    )


def test_a_mark_on_the_layer_is_enough() -> None:
    a, b = Layer(), Layer(is_draft_layer=True)
    owners = Owners.of(Runner(model=Model(layers=[a])))

    assert owners.split({"a": a, "b": b})[1] == {"b": b}
