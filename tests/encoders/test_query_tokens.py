"""Tokens of a query after the layers that both roles share; nothing here pins weights."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from coder_ir.encoders.onnx import OnnxEncoder, Runtime
from coder_ir.encoders.registry import built_in_folder
from coder_ir.encoders.tokens import QueryEncoder, QueryTokens
from coder_ir.errors import InvalidValue
from coder_ir.types import Floats
from tests.conftest import FakeEncoder

LONG = " ".join(f"word {n} of a very long query," for n in range(400))
TEXTS = ["a quiet hotel without a pool", "", LONG, "hotel", "Hôtel 🙂 sans piscine?", " \0 ", "a b"]
PREFIX_TOKENS = 8  # of the built-in model, behind its opening token


@cache
def limited(max_length: int) -> OnnxEncoder:
    return OnnxEncoder(built_in_folder(), runtime=Runtime(threads=1, max_length=max_length))


def with_prefix(encoder: OnnxEncoder, topical: str, compatibility: str) -> OnnxEncoder:
    """The same model behind other prefixes."""
    other = copy(encoder)
    roles = encoder.manifest.topical, encoder.manifest.compatibility
    other.manifest = replace(
        encoder.manifest,
        topical=replace(roles[0], query_prefix=topical),
        compatibility=replace(roles[1], query_prefix=compatibility),
    )
    return other


def pieces(text: str, tokens: QueryTokens) -> list[str]:
    """The characters of each token."""
    return [text[start:end] for start, end in tokens.offsets]


def words_read(encoder: OnnxEncoder, text: str, tokens: QueryTokens) -> list[str]:
    """The model's own words in the rows that are said to be the query's."""
    (ids,) = encoder.tokens([text], encoder.manifest.topical, "query")
    first = 1 + PREFIX_TOKENS
    own = ids[first : first + len(tokens.offsets)]
    return [encoder._tokenizer.id_to_token(number).removeprefix("##") for number in own]


def same(one: Sequence[QueryTokens], two: Sequence[QueryTokens]) -> bool:
    return all(
        a.offsets == b.offsets and np.array_equal(a.states, b.states)
        for a, b in zip(one, two, strict=True)
    )


class TestOffsets:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a quiet hotel", ["a", "quiet", "hotel"]),
            ("Hotel, WITHOUT pool!", ["Hotel", ",", "WITHOUT", "pool", "!"]),
            ("nut-free", ["nut", "-", "free"]),
            ("  two   spaces\t", ["two", "spaces"]),
            ("café", ["café"]),
            ("cafe\u0301s bar", ["cafe\u0301s", "bar"]),
            ("安静", ["安", "静"]),
            ("안", ["안", "안", "안"]),
            ("bed 🙂 bar", ["bed", "🙂", "bar"]),
            ("a\0b", ["a\0b"]),
            ("a\u200bb c", ["a\u200bb", "c"]),
            ("\ufeffbar", ["bar"]),
            ("½ l", ["½", "l"]),
            ("Represent this", ["Represent", "this"]),
        ],
        ids=[
            "words",
            "signs and capitals",
            "a hyphen",
            "white space",
            "an accent",
            "an accent by itself",
            "Chinese",
            "three tokens in one character",
            "emoji",
            "a null byte",
            "a zero-width space",
            "a byte order mark",
            "a fraction",
            "words of the prefix",
        ],
    )
    def test_offsets_are_of_the_querys_own_characters(
        self, built_in: OnnxEncoder, text: str, expected: list[str]
    ):
        (tokens,) = built_in.query_tokens([text])
        assert [piece.strip("\ufeff") for piece in pieces(text, tokens)] == expected

    @pytest.mark.parametrize(
        "text", ["a quiet hotel without a pool", "unbelievably soft-boiled eggs, e.g. 3.5!"]
    )
    def test_each_offset_goes_with_the_row_of_its_token(self, built_in: OnnxEncoder, text: str):
        (tokens,) = built_in.query_tokens([text])
        assert tokens.offsets
        assert words_read(built_in, text, tokens) == pieces(text.lower(), tokens)

    def test_a_word_of_several_tokens_has_an_offset_for_each(self, built_in: OnnxEncoder):
        text = "antidisestablishmentarianism"
        (tokens,) = built_in.query_tokens([text])
        assert len(tokens.offsets) > 1
        assert "".join(pieces(text, tokens)) == text

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_offsets_are_in_order_and_inside_the_query(self, built_in: OnnxEncoder, text: str):
        (tokens,) = built_in.query_tokens([text])
        assert list(tokens.offsets) == sorted(tokens.offsets)
        assert all(0 <= start < end <= len(text) for start, end in tokens.offsets)

    def test_prefix_and_special_tokens_have_no_row(self, built_in: OnnxEncoder):
        assert built_in.manifest.topical.query_prefix
        (tokens,) = built_in.query_tokens(["hotel"])
        assert tokens.states.shape == (1, built_in.manifest.topical.dimensions)

    @pytest.mark.parametrize("prefix", ["", "query: ", "Query"], ids=["none", "short", "no space"])
    def test_another_prefix_leaves_the_offsets_alone(self, built_in: OnnxEncoder, prefix: str):
        text = "- a quiet hotel, 🙂 no pool"
        (tokens,) = with_prefix(built_in, prefix, prefix).query_tokens([text])
        (usual,) = built_in.query_tokens([text])
        assert tokens.offsets == usual.offsets

    @pytest.mark.parametrize(
        "text", ["", "   ", "\0", "\x07\n"], ids=["empty", "blank", "0", "bell"]
    )
    def test_a_query_without_words_has_no_tokens_of_its_own(self, built_in: OnnxEncoder, text: str):
        (tokens,) = built_in.query_tokens([text])
        assert tokens.offsets == ()
        assert len(tokens.states) == 0


class TestTruncation:
    def test_a_long_query_is_read_up_to_the_models_limit(self, built_in: OnnxEncoder):
        (tokens,) = built_in.query_tokens([LONG])
        assert len(tokens.states) == 512 - 1 - PREFIX_TOKENS - 1
        assert "".join(pieces(LONG, tokens)[:5]) == "word0ofavery"

    @pytest.mark.parametrize("max_length", [8, 9, 10, 11, 16, 64])
    def test_each_row_has_its_offsets(self, max_length: int):
        (tokens,) = limited(max_length).query_tokens([LONG])
        assert len(tokens.states) == len(tokens.offsets) <= max_length

    def test_offsets_of_what_is_read_are_those_of_the_whole_query(self, built_in: OnnxEncoder):
        text = "one two three four five six seven eight nine"
        (cut,), (whole,) = limited(14).query_tokens([text]), built_in.query_tokens([text])
        assert cut.offsets
        assert cut.offsets == whole.offsets[: len(cut.offsets)]

    @pytest.mark.parametrize("max_length", [10, 11, 16, 64])
    def test_the_closing_row_of_a_query_that_was_cut_is_not_its_own(self, max_length: int):
        (tokens,) = limited(max_length).query_tokens([LONG])
        assert len(tokens.offsets) == max_length - 1 - PREFIX_TOKENS - 1

    @pytest.mark.parametrize("max_length", [8, 9])
    def test_a_limit_that_the_prefix_fills_leaves_no_token_of_the_query(self, max_length: int):
        (tokens,) = limited(max_length).query_tokens(["hotel"])
        assert (tokens.offsets, len(tokens.states)) == ((), 0)

    def test_a_query_that_just_fits_keeps_all_its_tokens(self):
        (tokens,) = limited(1 + PREFIX_TOKENS + 2 + 1).query_tokens(["quiet hotel"])
        assert tokens.offsets == ((0, 5), (6, 11))


class TestStates:
    def test_there_is_a_row_for_every_token_of_the_query_s_own(self, built_in: OnnxEncoder):
        for text, tokens in zip(TEXTS, built_in.query_tokens(TEXTS), strict=True):
            (ids,) = built_in.tokens([text], built_in.manifest.topical, "query")
            assert tokens.states.dtype == np.float32
            assert len(tokens.states) == len(tokens.offsets) == len(ids) - 1 - PREFIX_TOKENS - 1

    def test_they_are_what_the_shared_layers_make_of_the_query(self, built_in: OnnxEncoder):
        (ids,) = built_in.tokens(["a quiet hotel"], built_in.manifest.topical, "query")
        hidden = built_in.lower(ids)
        (tokens,) = built_in.query_tokens(["a quiet hotel"])
        assert np.array_equal(tokens.states, hidden[0][1 + PREFIX_TOKENS : -1])

    def test_a_query_alone_has_the_states_it_has_among_others(self, built_in: OnnxEncoder):
        alone = [built_in.query_tokens([text])[0] for text in TEXTS]
        assert same(built_in.query_tokens(TEXTS), alone)

    def test_threads_change_neither_order_nor_states(self, built_in: OnnxEncoder):
        two = OnnxEncoder(built_in_folder(), runtime=Runtime(threads=2))
        assert same(two.query_tokens(TEXTS), built_in.query_tokens(TEXTS))

    def test_no_queries_have_no_tokens(self, built_in: OnnxEncoder):
        assert built_in.query_tokens([]) == []

    def test_a_model_without_shared_layers_has_none_to_read(self, built_in: OnnxEncoder):
        apart = copy(built_in)
        apart.manifest = replace(built_in.manifest, trunk=None)
        with pytest.raises(InvalidValue, match="has no layers that its roles share"):
            apart.query_tokens(["hotel"])


class TestEncodeQueries:
    def test_the_vectors_are_those_of_encode(self, built_in: OnnxEncoder):
        vectors, _ = built_in.encode_queries(TEXTS)
        expected = built_in.encode(TEXTS, kind="query")
        for space in ("topical", "compatibility"):
            assert vectors.space(space).dtype == np.float32
            assert np.array_equal(vectors.space(space), expected.space(space))

    @pytest.mark.parametrize("max_length", [8, 16])
    def test_under_a_lowered_limit_too(self, max_length: int):
        vectors, _ = limited(max_length).encode_queries(TEXTS)
        expected = limited(max_length).encode(TEXTS, kind="query")
        assert np.array_equal(vectors.topical, expected.topical)
        assert np.array_equal(vectors.compatibility, expected.compatibility)

    def test_the_tokens_are_those_that_are_read_without_vectors(self, built_in: OnnxEncoder):
        assert same(built_in.encode_queries(TEXTS)[1], built_in.query_tokens(TEXTS))

    def test_the_shared_layers_run_once_a_query(
        self, built_in: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
    ):
        read: list[int] = []

        def counted(ids: Sequence[int]) -> Floats:
            read.append(len(ids))
            return lower(ids)

        lower = built_in.lower
        monkeypatch.setattr(built_in, "lower", counted)
        built_in.encode_queries(TEXTS)
        tokens = built_in.tokens(TEXTS, built_in.manifest.topical, "query")
        assert read == [len(ids) for ids in tokens]

    def test_no_queries_give_no_rows_of_the_right_width(self, built_in: OnnxEncoder):
        vectors, tokens = built_in.encode_queries([])
        assert (vectors.topical.shape, vectors.compatibility.shape) == ((0, 384), (0, 384))
        assert tokens == []

    def test_roles_that_read_queries_differently_are_refused(self, built_in: OnnxEncoder):
        apart = with_prefix(built_in, "query: ", "")
        with pytest.raises(InvalidValue, match="read queries in different ways"):
            apart.encode_queries(["hotel"])

    def test_the_tokens_of_such_roles_are_those_of_the_topical_one(self, built_in: OnnxEncoder):
        apart = with_prefix(built_in, "query: ", "")
        both = with_prefix(built_in, "query: ", "query: ")
        assert same(apart.query_tokens(TEXTS), both.query_tokens(TEXTS))


def test_a_model_folder_can_be_read_token_by_token_and_the_fake_encoder_not(built_in: OnnxEncoder):
    assert isinstance(built_in, QueryEncoder)
    assert not isinstance(FakeEncoder(["a"]), QueryEncoder)
