import pytest

from coder_ir.datasets.wordnet import AntonymPair, load_antonyms
from coder_ir.training.wordnet import polarity_triplets

HOT = AntonymPair(
    "cold", "hot", "chilly", "very warm", "having a low temperature", "having a high temperature"
)


class TestPolarityTriplets:
    triplets = tuple(
        (triplet.query, triplet.satisfying, triplet.violating)
        for triplet in polarity_triplets([HOT])
    )

    @pytest.mark.parametrize(
        "triplet",
        [
            ("cold", "having a low temperature", "having a high temperature"),
            ("hot", "having a high temperature", "having a low temperature"),
        ],
        ids=lambda triplet: triplet[0],
    )
    def test_each_word_asks_for_its_own_definition(self, triplet: tuple[str, str, str]):
        assert triplet in self.triplets

    @pytest.mark.parametrize(
        "triplet",
        [("cold", "chilly", "hot"), ("hot", "very warm", "cold")],
        ids=lambda triplet: triplet[0],
    )
    def test_each_word_asks_for_its_synonym_against_its_antonym(
        self, triplet: tuple[str, str, str]
    ):
        assert triplet in self.triplets

    @pytest.mark.parametrize(
        "triplet",
        [("not hot", "cold", "hot"), ("not cold", "hot", "cold")],
        ids=lambda triplet: triplet[0],
    )
    def test_not_with_a_word_asks_for_its_antonym(self, triplet: tuple[str, str, str]):
        assert triplet in self.triplets

    def test_there_are_no_others(self):
        assert len(self.triplets) == 6

    def test_a_pair_without_synonyms_has_no_synonym_triplets(self):
        pair = AntonymPair("cold", "hot", "", "", "low temperature", "high temperature")
        assert len(polarity_triplets([pair])) == 4

    def test_definitions_that_do_not_differ_give_no_triplet(self):
        pair = AntonymPair("cold", "hot", "", "", "extended meanings", "extended meanings")
        queries = [triplet.query for triplet in polarity_triplets([pair])]
        assert queries == ["not hot", "not cold"]

    def test_a_synonym_that_is_the_antonym_gives_no_triplet(self):
        pair = AntonymPair("ravel", "unravel", "tangle", "ravel", "tangle", "disentangle")
        assert not [t for t in polarity_triplets([pair]) if t.satisfying == t.violating]

    def test_both_directions_of_a_pair_share_a_group(self):
        assert {t.group for t in polarity_triplets([HOT])} == {"wordnet:cold/hot"}

    def test_every_triplet_names_its_source_and_licence(self):
        for triplet in polarity_triplets([HOT]):
            assert triplet.source == "WordNet"
            assert "Princeton" in triplet.licence

    def test_no_triplet_of_the_shipped_list_asks_for_and_against_the_same_text(self):
        same = [t for t in polarity_triplets(load_antonyms()) if t.satisfying == t.violating]
        assert same == []
