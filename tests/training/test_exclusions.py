import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from coder_ir.errors import InvalidFile
from coder_ir.training.exclusions import (
    ITSELF,
    OTHERS,
    WITH,
    WITHOUT,
    pick,
    read_exclusions,
    read_paragraphs,
    read_sets,
)
from coder_ir.types import Triplet


def corpus(root: Path, **texts: str) -> Path:
    rows = [{"title": name.replace("_", " "), "text": text} for name, text in texts.items()]
    path = root / "2wikimultihopqa_corpus.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return root


def passages(triplets: Iterable[Triplet]) -> set[str]:
    return {text for triplet in triplets for text in (triplet.satisfying, triplet.violating)}


BORN = "Ada Stone was a painter of still lifes and quiet harbours in the north."
MARRIED = "She was married for a while to the sculptor Bertram Vale."
TOPIC, NAME = "Ada Stone", "Bertram Vale"


class TestExclusions:
    def test_the_part_without_a_name_is_asked_for_and_then_the_part_with_it(self, tmp_path: Path):
        one, mirror = read_exclusions(corpus(tmp_path, Ada_Stone=f"{BORN} {MARRIED}"))
        assert (one.satisfying, one.violating) == (BORN, f"Ada Stone: {MARRIED}")
        assert (mirror.satisfying, mirror.violating) == (one.violating, one.satisfying)
        assert one.query in {template.format(t=TOPIC, y=NAME) for template in WITHOUT}
        assert mirror.query in {template.format(t=TOPIC, y=NAME) for template in WITH}

    def test_source_licence_and_group_are_told(self, tmp_path: Path):
        (one, _) = read_exclusions(corpus(tmp_path, Ada_Stone=f"{BORN} {MARRIED}"))
        assert (one.source, one.licence, one.group) == (
            "Wikipedia exclusions",
            "CC BY-SA",
            "wiki-Ada Stone",
        )

    @pytest.mark.parametrize(
        "sentence",
        [
            "She died at home one evening in early September 1990.",
            "She was taught by a well-known English painter of boats.",
            "Bertram Vale met her at a fair and married her soon.",
            "She liked to sign her early work as Clara Stone Winter.",
            "She wrote under a pen name and was known as Clara Winter.",
            "She was for some years the town's Chief Officer, they say.",
        ],
        ids=["date", "nationality", "first in its sentence", "of the title", "alias", "office"],
    )
    def test_what_is_no_other_name_is_not_excluded(self, tmp_path: Path, sentence: str):
        assert list(read_exclusions(corpus(tmp_path, Ada_Stone=f"{BORN} {sentence}"))) == []

    def test_a_single_word_counts_where_it_is_a_place_or_person(self, tmp_path: Path):
        text = f"{BORN} She moved to a small house in Lisbon and stayed."
        assert "Lisbon" in next(read_exclusions(corpus(tmp_path, Ada_Stone=text))).query

    def test_a_sentence_with_part_of_the_name_is_on_neither_side(self, tmp_path: Path):
        text = f"{BORN} {MARRIED} In later life Vale left her."
        assert not any("left her" in p for p in passages(read_exclusions(corpus(tmp_path, A=text))))

    def test_a_sentence_that_goes_on_about_the_name_is_on_neither_side(self, tmp_path: Path):
        text = f'{BORN} In 1950 she published the book "Blue Nets". It sold very well.'
        found = list(read_exclusions(corpus(tmp_path, Ada_Stone=text)))
        assert "Blue Nets" in found[0].query
        assert not any("sold" in passage for passage in passages(found))

    def test_too_little_left_gives_nothing(self, tmp_path: Path):
        assert list(read_exclusions(corpus(tmp_path, Ada_Stone=f"She painted. {MARRIED}"))) == []

    def test_a_bracket_in_the_title_is_not_asked_for(self, tmp_path: Path):
        folder = corpus(tmp_path, **{"Ada_Stone_(painter)": f"{BORN} {MARRIED}"})
        assert all("(painter)" not in t.query for t in read_exclusions(folder))

    def test_the_words_of_a_query_depend_on_the_paragraph_alone(self, tmp_path: Path):
        first = list(read_exclusions(corpus(tmp_path, Ada_Stone=f"{BORN} {MARRIED}")))
        folder = corpus(tmp_path, Other="Nothing here.", Ada_Stone=f"{BORN} {MARRIED}")
        assert list(read_exclusions(folder)) == first


VILLAGES = {
    "Alpha": "Alpha is a village in North Province. It has a mill.",
    "Beta": "Beta is a village in North Province. It has a pond.",
    "Gamma": "Gamma is a village in North Province. It has a well.",
    "Delta": "Delta is a village in South Province. It has a gate.",
}


class TestSets:
    def test_all_but_one_asks_for_the_other_and_the_one_for_itself(self, tmp_path: Path):
        found = list(read_sets(corpus(tmp_path, **VILLAGES)))
        kind, alpha, beta = "villages in North Province", VILLAGES["Alpha"], VILLAGES["Beta"]
        assert [(t.satisfying, t.violating) for t in found] == [
            (beta, alpha),
            (alpha, beta),
            (alpha, beta),
            (beta, alpha),
        ]
        assert found[0].query in {template.format(k=kind, x="Alpha") for template in OTHERS}
        assert found[1].query in {template.format(k=kind, x="Alpha") for template in ITSELF}

    @pytest.mark.parametrize(
        ("said", "kind"),
        [
            (
                "is a 1950 drama film directed by Jo Hill and starring Al Low.",
                "films directed by Jo",
            ),
            ("is a song by American singer and writer Jo Hill, released late.", "songs by Jo Hill"),
            ("was a French film director and producer.", "French film directors"),
            ("is an American actress.", "American actresses"),
            ("is a city in Norway.", "cities in Norway"),
            ("is a 1950 Italian comedy film.", "1950 Italian comedy films"),
        ],
        ids=["director", "song", "person", "actress", "city", "year"],
    )
    def test_the_first_sentence_tells_the_kind(self, tmp_path: Path, said: str, kind: str):
        found = list(read_sets(corpus(tmp_path, One=f"One {said}", Two=f"Two {said}")))
        assert all(kind in triplet.query for triplet in found)
        assert len(found) == 4

    def test_paragraphs_that_name_each_other_are_no_pair(self, tmp_path: Path):
        texts = {"Alpha": VILLAGES["Alpha"], "Beta": VILLAGES["Beta"] + " It is near Alpha."}
        assert list(read_sets(corpus(tmp_path, **texts))) == []

    def test_what_comes_of_a_pair_of_paragraphs_is_one_group(self, tmp_path: Path):
        ada = f"{BORN.replace('a painter', 'a Dutch painter')} {MARRIED}"
        bo = ada.replace("Ada Stone", "Bo Reed")
        folder = corpus(tmp_path, Ada_Stone=ada, Bo_Reed=bo)
        triplets = [*read_sets(folder), *read_exclusions(folder)]
        assert len(triplets) == 8
        assert {t.group for t in triplets} == {"wiki-Ada Stone"}


class TestParagraphs:
    @pytest.mark.parametrize(
        ("text", "sentences"),
        [
            ("She( born 1900) sang.", ["She (born 1900) sang."]),
            ('It is" Big Song" here.', ['It is "Big Song" here.']),
            ('The"Daily "Post.', ['The "Daily" Post.']),
            ("A lay- abbot of St. Ives. He died.", ["A lay-abbot of St. Ives.", "He died."]),
            ("By J. K. Low. New line.", ["By J. K. Low.", "New line."]),
            ('One " mark.', ["One  mark."]),
        ],
        ids=["bracket", "quotation", "glued after", "hyphen", "initials", "odd mark"],
    )
    def test_spacing_is_mended_and_sentences_are_found(
        self, tmp_path: Path, text: str, sentences: list[str]
    ):
        (paragraph,) = read_paragraphs(corpus(tmp_path, T=text))
        assert list(paragraph.sentences) == sentences

    @pytest.mark.parametrize("text", ["{", "[1]", '[{"title": "x"}]'], ids=["broken", "1", "half"])
    def test_a_file_that_is_no_corpus_is_named(self, tmp_path: Path, text: str):
        (tmp_path / "2wikimultihopqa_corpus.json").write_text(text, encoding="utf-8")
        with pytest.raises(InvalidFile, match=r"corpus\.json is not a list of title and text"):
            read_paragraphs(tmp_path)


class TestTemplates:
    def test_there_are_many_ways_to_exclude(self):
        assert len(set(WITHOUT)) >= 25

    @pytest.mark.parametrize("templates", [WITHOUT, WITH, OTHERS, ITSELF])
    def test_a_key_always_picks_the_same_and_every_one_is_picked(self, templates: tuple[str, ...]):
        keys = [f"title {number}" for number in range(2000)]
        assert {pick(templates, key) for key in keys} == set(templates)
        assert [pick(templates, key) for key in keys] == [pick(templates, key) for key in keys]


class TestPublishedCorpus:
    @pytest.fixture
    def folder(self, shared: Path) -> Path:
        return shared / "data" / "training" / "2wiki_corpus"

    def test_no_excluded_name_is_in_the_passage_that_leaves_it_out(self, folder: Path):
        found = list(read_exclusions(folder))
        named = {}
        for triplet in found:
            said = re.fullmatch(r"(.+(?<!, not)) without (.+)", triplet.query)
            if said and not triplet.query.endswith("."):
                named[said[2].removeprefix("the ")] = triplet
        assert len(named) > 50
        for name, triplet in named.items():
            assert name not in triplet.satisfying
            assert name in triplet.violating

    def test_passages_are_short_enough_to_be_read_whole(self, folder: Path):
        triplets = [*read_exclusions(folder), *read_sets(folder)]
        assert max(len(passage.split()) for passage in passages(triplets)) < 130
