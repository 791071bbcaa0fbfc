import gzip
from importlib import resources
from pathlib import Path

import pytest

from coder_ir.datasets.wordnet import (
    AntonymPair,
    extract_antonyms,
    load_antonyms,
    save_antonyms,
)
from coder_ir.errors import InvalidFile, NotFound

LICENCE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"
ADJECTIVES = (
    "00000100 00 a 02 hot 0 very_warm 0 002 = 00000900 n 0000 ! 00000200 a 0101 "
    '| having a high temperature; "a hot stove"; "hot water"  \n'
    "00000200 00 a 02 cold 0 chilly(p) 1 001 ! 00000100 a 0101 | having a low temperature  \n"
    "00000300 00 s 01 torrid 0 001 & 00000100 a 0000 | extremely hot  \n"
    "00000400 00 a 0b b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 k 0 present(p) 0 "
    "001 ! 00000500 a 0b01 | being here  \n"
    "00000500 00 a 01 absent 0 001 ! 00000400 a 010b | not being here  \n"
)
VERBS = (
    "00000100 29 v 01 arrive 0 001 ! 00000200 v 0101 02 + 02 00 + 08 00 | reach a place  \n"
    "00000200 29 v 01 go_away 0 001 ! 00000100 v 0101 01 + 02 00 | leave a place  \n"
)


def database(folder: Path, **parts: str) -> Path:
    """A WordNet folder with these parts; the others hold the licence only."""
    for name in ("adj", "adv", "noun", "verb"):
        text = LICENCE + parts.get(name, "")
        (folder / f"data.{name}").write_text(text, encoding="utf-8")
    return folder


HOT = AntonymPair(
    "cold", "hot", "chilly", "very warm", "having a low temperature", "having a high temperature"
)


class TestExtract:
    def test_a_pair_that_points_both_ways_comes_once_sorted_by_word(self, tmp_path: Path):
        pairs = extract_antonyms(database(tmp_path, adj=ADJECTIVES))
        assert [(pair.word, pair.antonym) for pair in pairs] == [
            ("absent", "present"),
            ("cold", "hot"),
        ]

    def test_a_pair_has_synonyms_and_the_definition_without_examples(self, tmp_path: Path):
        assert HOT in extract_antonyms(database(tmp_path, adj=ADJECTIVES))

    def test_a_word_alone_in_its_synset_has_no_synonym(self, tmp_path: Path):
        (pair,) = extract_antonyms(database(tmp_path, verb=VERBS))
        assert (pair.synonym, pair.antonym_synonym) == ("", "")

    def test_underscores_are_spaces_and_position_marks_are_gone(self, tmp_path: Path):
        pairs = extract_antonyms(database(tmp_path, adj=ADJECTIVES))
        assert (pairs[1].synonym, pairs[1].antonym_synonym) == ("chilly", "very warm")

    def test_counts_of_words_and_word_numbers_are_hexadecimal(self, tmp_path: Path):
        pairs = extract_antonyms(database(tmp_path, adj=ADJECTIVES))
        assert (pairs[0].word, pairs[0].antonym, pairs[0].antonym_synonym) == (
            "absent",
            "present",
            "b",
        )

    def test_the_frames_of_a_verb_are_no_pointers(self, tmp_path: Path):
        assert extract_antonyms(database(tmp_path, verb=VERBS)) == [
            AntonymPair("arrive", "go away", "", "", "reach a place", "leave a place")
        ]

    def test_equal_offsets_in_two_parts_are_different_synsets(self, tmp_path: Path):
        pairs = extract_antonyms(database(tmp_path, adj=ADJECTIVES, verb=VERBS))
        assert [pair.word for pair in pairs] == ["absent", "arrive", "cold"]

    def test_two_senses_of_one_pair_are_both_kept(self, tmp_path: Path):
        nouns = ADJECTIVES.replace("00 a 0", "00 n 0").replace(" a 0", " n 0")
        nouns = nouns.replace("temperature", "degree")
        pairs = extract_antonyms(database(tmp_path, adj=ADJECTIVES, noun=nouns))
        glosses = [pair.gloss for pair in pairs if pair.word == "cold"]
        assert glosses == ["having a low temperature", "having a low degree"]

    def test_a_line_that_is_no_synset_is_named(self, tmp_path: Path):
        folder = database(tmp_path, adv="00000100 02 r not-hex oddly 0 000 | oddly\n")
        with pytest.raises(InvalidFile, match=r"data\.adv:2 is not a WordNet data line"):
            extract_antonyms(folder)

    def test_a_missing_part_is_named(self, tmp_path: Path):
        database(tmp_path).joinpath("data.noun").unlink()
        with pytest.raises(NotFound, match=r"no WordNet database file .*data\.noun"):
            extract_antonyms(tmp_path)

    def test_a_pointer_to_a_synset_that_is_not_there_is_named(self, tmp_path: Path):
        line = "00000100 00 a 01 hot 0 001 ! 00000999 a 0101 | having a high temperature\n"
        with pytest.raises(InvalidFile, match="999"):
            extract_antonyms(database(tmp_path, adj=line))


class TestCompactList:
    pairs = (HOT, AntonymPair("a", "b", "", "", 'say "x"\tor y', "naïve"))

    def test_what_is_saved_is_loaded(self, tmp_path: Path):
        save_antonyms(list(self.pairs), tmp_path / "a.tsv.gz")
        assert load_antonyms(tmp_path / "a.tsv.gz") == list(self.pairs)

    def test_saving_twice_gives_the_same_bytes(self, tmp_path: Path):
        one, two = tmp_path / "one.tsv.gz", tmp_path / "two.gz"
        save_antonyms(list(self.pairs), one)
        save_antonyms(load_antonyms(one), two)
        assert one.read_bytes() == two.read_bytes()

    def test_the_file_is_a_gzipped_table(self, tmp_path: Path):
        save_antonyms([HOT], tmp_path / "a.tsv.gz")
        lines = gzip.decompress((tmp_path / "a.tsv.gz").read_bytes()).decode().splitlines()
        assert lines[0].split("\t")[:2] == ["word", "antonym"]
        assert lines[1].split("\t")[:2] == ["cold", "hot"]

    def test_a_list_that_is_not_there_is_named(self, tmp_path: Path):
        with pytest.raises(NotFound, match=r"none\.tsv\.gz"):
            load_antonyms(tmp_path / "none.tsv.gz")


class TestShippedList:
    pairs = load_antonyms()

    def test_it_has_hot_and_cold(self):
        assert {"hot", "cold"} in [{pair.word, pair.antonym} for pair in self.pairs]

    def test_it_is_sorted_and_has_no_pair_twice(self):
        assert len(set(self.pairs)) == len(self.pairs) == 3981
        words = [(pair.word, pair.antonym) for pair in self.pairs]
        assert words == sorted(words)

    def test_saving_it_again_gives_the_same_table(self, tmp_path: Path):
        save_antonyms(self.pairs, tmp_path / "again.tsv.gz")
        shipped = resources.files("coder_ir") / "datasets" / "antonyms.tsv.gz"
        again = gzip.decompress((tmp_path / "again.tsv.gz").read_bytes())
        assert again == gzip.decompress(shipped.read_bytes())

    def test_it_is_what_the_database_says(self, shared: Path):
        assert extract_antonyms(shared / "data" / "wordnet30") == self.pairs
