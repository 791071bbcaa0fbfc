"""Words of two tokenisers, placed by hand."""

import pytest
import torch
from tokenizers import Tokenizer

from coder_ir.training.verifier.reader import PairReader
from coder_ir.training.verifier.words import WordPlaces, mean_by_word, word_places, words_of
from tests.training.verifier.conftest import metaspace_tokenizer

PAIRS = [("quiet room", "The house is loud"), ("no garden", "old")]


@pytest.fixture
def pieces(cross_encoder) -> PairReader:
    """Lower case, unknown words letter by letter, the query first."""
    tokenizer = Tokenizer.from_file(str(cross_encoder / "tokenizer.json"))
    return PairReader(tokenizer, 32, passage_first=False, types=True)


@pytest.fixture
def spaced() -> PairReader:
    """A token a word, with the space before it, the passage first."""
    return PairReader(metaspace_tokenizer(), 32, passage_first=True, types=False)


def test_words_stand_between_white_space_of_any_kind():
    found = words_of(" a  bc\td")
    assert found.count == 3
    assert found.numbers == (0, 0, 0, 0, 1, 1, 1, 2)


def test_a_text_without_words_has_none():
    assert words_of("  ").count == words_of("").count == 0


class TestPlaces:
    def test_the_query_s_words_come_before_the_passage_s(self, spaced: PairReader):
        places = word_places(spaced.encode(PAIRS), PAIRS, passage_first=True)
        # [CLS] the house is loud [SEP] quiet room [SEP]; then [CLS] old [SEP] no garden [SEP].
        assert places.numbers.tolist() == [
            [0, 3, 4, 5, 6, -1, 1, 2, -1],
            [7, 10, -1, 8, 9, -1, -1, -1, -1],
        ]
        assert places.words == 11

    def test_another_tokeniser_in_another_order_has_the_same_numbers(self, pieces: PairReader):
        pairs = [("quiet hum", "House")]
        encodings = pieces.encode(pairs)
        assert encodings[0].tokens[1:5] == ["quiet", "h", "##u", "##m"]
        places = word_places(encodings, pairs, passage_first=False)
        assert places.numbers.tolist() == [[0, 1, 2, 2, 2, -1, 3, -1]]

    def test_both_find_the_same_words_in_the_same_pairs(
        self, pieces: PairReader, spaced: PairReader
    ):
        one, two = (
            word_places(reader.encode(PAIRS), PAIRS, passage_first=reader.passage_first)
            for reader in (pieces, spaced)
        )
        assert one.words == two.words
        assert set(one.numbers.view(-1).tolist()) == set(two.numbers.view(-1).tolist())

    def test_a_word_that_was_cut_off_has_no_token(self, spaced: PairReader):
        short = PairReader(spaced.tokenizer, 6, passage_first=True, types=False)
        pairs = [("quiet", "old house street")]  # room for two words of the passage
        places = word_places(short.encode(pairs), pairs, passage_first=True)
        tokens = mean_by_word(torch.ones(1, places.numbers.shape[1], 1), places).tokens
        assert tokens.tolist() == [1, 1, 1, 1, 0]


def test_a_word_is_the_mean_of_its_tokens():
    hidden = torch.tensor([[[1.0, 0.0], [2.0, 4.0], [4.0, 0.0], [9.0, 9.0]]])
    found = mean_by_word(hidden, WordPlaces(torch.tensor([[0, 1, 1, -1]]), words=3))
    assert found.states.tolist() == [[1.0, 0.0], [3.0, 2.0], [0.0, 0.0]]
    assert found.tokens.tolist() == [1, 2, 0]
