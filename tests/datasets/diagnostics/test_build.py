"""The builder: what it draws from a folder, and that it draws the same again."""

from pathlib import Path

import pytest

from coder_ir.datasets.diagnostics.build import build_pairs
from coder_ir.datasets.diagnostics.passages import Passage
from coder_ir.errors import InvalidValue, NotFound
from tests.datasets.diagnostics.texts import corpus, passage

PLANTS = ("bracken", "gorse", "heather", "thistle", "nettle", "bramble")
PLACES = ("moor", "quarry", "meadow", "estuary", "orchard", "dune")
VERBS = ("increased", "increased", "increased", "increased", "reduced", "inhibited")


def field_study(plant: str, place: str, verb: str) -> Passage:
    """Background, a finding, and what followed; most words are of this study alone."""
    red, wild, pale, salt, ever, mid, old, dry = (
        f"{start}{plant}" for start in "red wild pale salt ever mid old dry".split()
    )
    return passage(
        (
            f"The {plant} is found on the soil of the {place} near {red} and was first drawn there "
            f"by {wild}, {pale} and a friend of {dry}.",
            f"Old maps of the {place} by {salt} were used with a chart of {ever} to mark the soil "
            f"where {plant} or {mid} had been seen by {old}.",
            f"Each {old} was put into a {dry}{place} box and was sent to {plant}{place} by boat.",
            f"A {pale}{place} shed of {red}{place} and {salt}{place} was built for {wild}{place}.",
            f"Some {mid}{place} seed was put on {old}{place} scales and sent to {ever}{place}.",
            f"Dried {plant} leaves {verb} ammonia release from the crumbly {place} soil.",
            f"A {place}{red} camera was fixed to {place}{wild} and was read by {place}{pale} men.",
            f"One {place}{salt} diary is kept in {place}{mid} and was lent to {place}{old} men.",
            f"Many {place}{dry} walls were built of {place}{ever} stone from {place}{plant} hill.",
        ),
        f"{plant}-{place}",
        f"The {plant} of the {place}",
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    studies = [field_study(*names) for names in zip(PLANTS, PLACES, VERBS, strict=True)]
    others = [field_study(plant, PLACES[i - 1], "left") for i, plant in enumerate(PLANTS)]
    return corpus(tmp_path, *studies, *others)


def test_a_pair_has_an_id_both_sides_and_two_neutrals(folder: Path):
    pair = build_pairs(folder, "antonym", pairs=1)[0]
    assert (pair.pair_id, pair.kind, pair.decision, pair.note) == ("antonym-001", "antonym", "", "")
    texts = {pair.a1, pair.a2, pair.b1, pair.b2, pair.neutral1, pair.neutral2}
    assert len(texts) == 6
    assert "" not in texts


def test_a_neutral_is_on_the_topic_and_silent_on_the_claim(folder: Path):
    for pair in build_pairs(folder, "antonym", pairs=9):
        plant, _, place = pair.source.partition("-")
        for neutral in (pair.neutral1, pair.neutral2):
            assert plant in neutral or place in neutral
            assert "ammonia" not in neutral


def test_the_first_neutral_is_what_the_source_says_before_its_finding(folder: Path):
    (pair,) = build_pairs(folder, "antonym", pairs=1)
    assert pair.neutral1.startswith(f"The {pair.source.partition('-')[0]} is found")


def test_a_word_is_changed_three_times_at_most_and_a_source_used_once(folder: Path):
    pairs = build_pairs(folder, "antonym", pairs=9)
    changed = [pair.changed for pair in pairs]
    assert changed.count("increased -> decreased") == 3
    assert len(changed) == 5
    assert len({pair.source for pair in pairs}) == 5


def test_the_same_seed_gives_the_same_pairs_and_another_others(folder: Path):
    first = build_pairs(folder, "antonym", pairs=3, seed=1)
    assert build_pairs(folder, "antonym", pairs=3, seed=1) == first
    assert build_pairs(folder, "antonym", pairs=3, seed=2) != first


def test_there_are_at_most_as_many_pairs_as_asked_for(folder: Path):
    assert len(build_pairs(folder, "negation", pairs=2)) == 2


@pytest.mark.parametrize(
    ("kind", "pairs", "says"),
    [
        ("irony", 1, "no kind 'irony'; there are antonym, negation, exclusion"),
        ("antonym", 0, "pairs must be at least 1, got 0"),
    ],
    ids=["kind", "pairs"],
)
def test_what_cannot_be_built_is_refused(folder: Path, kind: str, pairs: int, says: str):
    with pytest.raises(InvalidValue, match=says):
        build_pairs(folder, kind, pairs=pairs)


def test_a_folder_that_gives_no_pair_says_so(tmp_path: Path):
    folder = corpus(tmp_path, passage(("Too short to be cut into parts at all.",)))
    with pytest.raises(NotFound, match="gave no exclusion pair"):
        build_pairs(folder, "exclusion", pairs=1)
