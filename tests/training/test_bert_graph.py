"""The fused ONNX graph against torch's own hidden states."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: the extra train")
pytest.importorskip("onnx", reason="needs onnx: the extra train")
pytest.importorskip("transformers", reason="needs torch: the extra train")

import torch
import transformers

from coder_ir.errors import InvalidValue
from coder_ir.training.bert_graph import (
    Shape,
    Weights,
    build,
    build_cross_encoder,
    shared_layers,
)

LENGTHS = (12, 5, 1, 9)  # tokens of each text, the rest of its row is padding


def random_bert(seed: int) -> Any:
    """Four layers; word rows lie on the int8 grid the graph stores them on."""
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=16,
        initializer_range=0.3,
        layer_norm_eps=1e-6,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.BertModel(config, add_pooling_layer=False).eval()
        # Layer norms and biases start as ones and zeros, which would hide a swap of the two.
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "LayerNorm" in name:
                parameter.data += 0.3 * torch.randn_like(parameter)
    words = model.embeddings.word_embeddings.weight.data
    scales = words.abs().amax(dim=1, keepdim=True).clamp_min(1e-8) / 127
    words.copy_(torch.round(words / scales) * scales)
    return model


def weights_of(model: Any) -> Weights:
    return {n: t.float().numpy() for n, t in model.state_dict().items() if t.is_floating_point()}


def shape_of(model: Any) -> Shape:
    return Shape.from_config(model.config)


@pytest.fixture(scope="module")
def one() -> Any:
    return random_bert(1)


@pytest.fixture(scope="module")
def feed() -> dict[str, np.ndarray]:
    ids = np.random.default_rng(3).integers(1, 50, (len(LENGTHS), max(LENGTHS)))
    mask = np.zeros_like(ids)
    for row, length in enumerate(LENGTHS):
        ids[row, length:] = 0
        mask[row, :length] = 1
    return {"input_ids": ids, "attention_mask": mask}


def run(graph: Any, feed: Mapping[str, np.ndarray], outputs: list[str]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(outputs, dict(feed))


def hidden_states(model: Any, feed: Mapping[str, np.ndarray]) -> np.ndarray:
    with torch.inference_mode():
        tensors = {name: torch.from_numpy(value) for name, value in feed.items()}
        return model(**tensors).last_hidden_state.numpy()


def assert_equal_where_read(graph: np.ndarray, torch_: np.ndarray) -> None:
    """Padding positions are never read by a pooling, so they may hold anything."""
    for row, length in enumerate(LENGTHS):
        np.testing.assert_allclose(graph[row, :length], torch_[row, :length], atol=1e-4, rtol=0)


def upper_changed(model: Any, first: int) -> Any:
    """A copy whose layers from `first` on are other ones."""
    copy = random_bert(1)
    other = random_bert(2)
    for number in range(first, 4):
        state = other.encoder.layer[number].state_dict()
        copy.encoder.layer[number].load_state_dict(state)
    return copy


def test_the_graph_equals_torchs_hidden_states(one: Any, feed: dict[str, np.ndarray]):
    graph = build(weights_of(one), shape_of(one), range(4), output="topical")
    [hidden] = run(graph, feed, ["topical"])
    assert hidden.dtype == np.float32
    assert_equal_where_read(hidden, hidden_states(one, feed))


def test_padding_does_not_change_what_is_read(one: Any, feed: dict[str, np.ndarray]):
    graph = build(weights_of(one), shape_of(one), range(4), output="topical")
    [padded] = run(graph, feed, ["topical"])
    row, length = 1, LENGTHS[1]
    short = {name: value[row : row + 1, :length] for name, value in feed.items()}
    [alone] = run(graph, short, ["topical"])
    np.testing.assert_allclose(padded[row, :length], alone[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("shared", [1, 2, 3])
def test_shared_layers_and_each_ones_own_equal_both_encoders(
    one: Any, feed: dict[str, np.ndarray], shared: int
):
    two = upper_changed(one, shared)
    trunk = build(weights_of(one), shape_of(one), range(shared), output="hidden")
    [hidden] = run(trunk, feed, ["hidden"])
    outputs = []
    for model in (one, two):
        head = build(weights_of(model), shape_of(model), range(shared, 4), output="own")
        rest = {"hidden": hidden, "attention_mask": feed["attention_mask"]}
        outputs += run(head, rest, ["own"])
        assert_equal_where_read(outputs[-1], hidden_states(model, feed))
    assert not np.allclose(*outputs, atol=1e-2)


@pytest.mark.parametrize("layers", [range(3), range(3, 4), range(4, 4)], ids=str)
def test_a_graph_holds_the_layers_asked_for_and_no_others(one: Any, layers: range):
    graph = build(weights_of(one), shape_of(one), layers, output="out")
    attention = [node for node in graph.graph.node if node.op_type == "Attention"]
    assert len(attention) == len(layers)


def test_words_are_stored_as_int8(one: Any):
    graph = build(weights_of(one), shape_of(one), range(4), output="topical").graph
    [words] = [tensor for tensor in graph.initializer if tensor.name == "words"]
    assert words.data_type == 3  # TensorProto.INT8
    assert tuple(words.dims) == (50, 32)


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_layers_are_counted_up_to_the_first_difference(one: Any, first: int):
    two = upper_changed(one, first)
    assert shared_layers(weights_of(one), weights_of(two), 4) == first


def test_equal_encoders_share_every_layer(one: Any):
    assert shared_layers(weights_of(one), weights_of(random_bert(1)), 4) == 4


def test_a_layer_above_a_difference_does_not_count(one: Any):
    two = random_bert(1)
    two.encoder.layer[1].output.dense.bias.data += 1
    assert shared_layers(weights_of(one), weights_of(two), 4) == 1


def test_encoders_with_other_embeddings_share_nothing(one: Any):
    two = random_bert(1)
    two.embeddings.position_embeddings.weight.data += 1
    assert shared_layers(weights_of(one), weights_of(two), 4) == 0


def test_a_shape_is_read_from_the_config(one: Any):
    assert shape_of(one) == Shape(layers=4, heads=4, epsilon=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "roberta"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_architecture_the_graph_does_not_describe_is_refused(changes: dict[str, str]):
    plain = {"num_hidden_layers": 2, "num_attention_heads": 2, "layer_norm_eps": 1e-12}
    bert = {"model_type": "bert", "hidden_act": "gelu", **plain}
    with pytest.raises(InvalidValue, match="export writes BERT encoders with gelu, got"):
        Shape.from_config(SimpleNamespace(**{**bert, **changes}))


def test_a_config_without_the_name_hidden_act_is_refused_alike():
    config = transformers.DistilBertConfig()  # calls it `activation`
    with pytest.raises(
        InvalidValue, match="export writes BERT encoders with gelu, got 'distilbert'"
    ):
        Shape.from_config(config)


PAIR = {
    "input_ids": np.array([[2, 7, 9, 3, 11, 7, 30, 41, 3]]),
    "token_type_ids": np.array([[0, 0, 0, 0, 1, 1, 1, 1, 1]]),
}


@pytest.fixture(scope="module")
def network() -> Any:
    """A classifier over `random_bert`, with a pooler and a head as random as the rest."""
    encoder = random_bert(1)
    config = encoder.config
    config.num_labels = 3
    config._attn_implementation = "eager"  # which alone gives its attention
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        network = transformers.BertForSequenceClassification(config).eval()
        for part in (network.bert.pooler, network.classifier):
            for parameter in part.parameters():
                parameter.data += 0.3 * torch.randn_like(parameter)
    network.bert.load_state_dict(encoder.state_dict(), strict=False)
    return network


@pytest.fixture(scope="module")
def outputs(network: Any) -> list[np.ndarray]:
    """Logits and attention of the graph."""
    weights = {n.removeprefix("bert."): w for n, w in weights_of(network).items()}
    graph = build_cross_encoder(weights, shape_of(network))
    return run(graph, PAIR, ["logits", "attention"])


@pytest.fixture(scope="module")
def expected(network: Any) -> Any:
    with torch.inference_mode():
        tensors = {name: torch.from_numpy(value) for name, value in PAIR.items()}
        return network(**tensors, output_attentions=True)


class TestCrossEncoder:
    def test_the_logits_are_torchs(self, outputs: list[np.ndarray], expected: Any):
        np.testing.assert_allclose(outputs[0], expected.logits.numpy(), atol=1e-4, rtol=0)

    def test_the_attention_is_the_first_tokens_in_the_last_layer_over_all_heads(
        self, outputs: list[np.ndarray], expected: Any
    ):
        first = expected.attentions[-1][:, :, 0].mean(dim=1).numpy()
        np.testing.assert_allclose(outputs[1], first, atol=1e-5, rtol=0)
        assert outputs[1].sum() == pytest.approx(1, abs=1e-5)

    def test_which_of_the_texts_a_token_is_of_counts(self, network: Any, outputs: list[np.ndarray]):
        weights = {n.removeprefix("bert."): w for n, w in weights_of(network).items()}
        graph = build_cross_encoder(weights, shape_of(network))
        swapped = {**PAIR, "token_type_ids": 1 - PAIR["token_type_ids"]}
        assert not np.allclose(run(graph, swapped, ["logits"])[0], outputs[0], atol=1e-3)
