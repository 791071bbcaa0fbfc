"""BM25 by words: worked by hand, against a second implementation, and in its folder."""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from coder_ir import lexical
from coder_ir.errors import (
    DuplicateId,
    InvalidFile,
    InvalidValue,
    MissingExtra,
    NotFound,
    StoreError,
)
from coder_ir.lexical import K1, RECORD, B, LexicalIndex, saved_stamp, stamp_of

pytest.importorskip("bm25s", reason="needs bm25s: the extra hybrid")
pytest.importorskip("Stemmer", reason="needs PyStemmer: the extra hybrid")

TEXTS = {
    "b": "The quiet hotel has a garden.",
    "a": "Quiet hotels and gardens",
    "c": "A noisy club beside the hotel",
    "d": "To be or not to be",
}


def built(texts: dict[str, str]) -> LexicalIndex:
    return LexicalIndex.build(list(texts), list(texts.values()))


@pytest.fixture
def index() -> LexicalIndex:
    return built(TEXTS)


def terms(text: str) -> list[str]:
    """Stems of the words of two letters or more, less Lucene's stop words."""
    import Stemmer

    stops = set(
        "a an and are as at be but by for if in into is it no not of on or such that the their "
        "then there these they this to was will with".split()
    )
    words = [word for word in re.findall(r"\b\w\w+\b", text.lower()) if word not in stops]
    return [Stemmer.Stemmer("english").stemWord(word) for word in words]


def brute_force(query: str, texts: Sequence[str]) -> list[float]:
    """The formula, one document and one word at a time."""
    counts = [Counter(terms(text)) for text in texts]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(lengths)
    scores = [0.0] * len(texts)
    for term in terms(query):
        holders = sum(term in count for count in counts)
        weight = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for i, count in enumerate(counts):
            if count[term]:
                norm = K1 * (1 - B + B * lengths[i] / mean)
                scores[i] += weight * count[term] / (count[term] + norm)
    return scores


WORDS = (
    "running runs runner ran hotel hotels quietly quiet the not of été naïve Straße 42nd x "
    "well-known don't connection connected connecting ÜBER über generously general"
).split()


@pytest.mark.parametrize("seed", range(25))
def test_every_score_equals_the_formula(seed: int):
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 30, size=random.integers(1, 40))
    texts = [" ".join(random.choice(WORDS, size=length)) for length in lengths]
    texts.append("one hotel")  # at least one word somewhere
    ids = [f"d{number:02}" for number in random.permutation(len(texts))]
    index = LexicalIndex.build(ids, texts)
    for _ in range(5):
        query = " ".join(random.choice(WORDS, size=random.integers(1, 8)))
        expected = dict(zip(ids, brute_force(query, texts), strict=True))
        found = index.scores(query, len(ids))
        assert dict(found) == pytest.approx({i: s for i, s in expected.items() if s > 0}, abs=1e-9)
        assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))
        assert index.scores(query, 3) == found[:3]


def test_a_word_counts_in_any_form_and_documents_without_it_are_left_out(index: LexicalIndex):
    assert [doc_id for doc_id, _ in index.scores("the noise of clubs", 10)] == ["c"]
    assert {doc_id for doc_id, _ in index.scores("HOTEL", 10)} == {"a", "b", "c"}


def test_a_word_said_twice_counts_twice(index: LexicalIndex):
    once, twice = (index.scores(query, 1)[0][1] for query in ("club", "club club"))
    assert twice == pytest.approx(2 * once)


def test_documents_with_equal_scores_go_by_ascending_id():
    ids = ["d9", "d10", "d1", "é", "B", "d2"]
    index = LexicalIndex.build(ids, ["a garden"] * 5 + ["another garden entirely"])
    assert [doc_id for doc_id, _ in index.scores("gardens", 5)] == ["B", "d1", "d10", "d9", "é"]
    assert [doc_id for doc_id, _ in index.scores("gardens", 2)] == ["B", "d1"]


def test_the_order_in_which_parts_of_a_sum_come_tells_no_two_documents_apart():
    # Three words each, as rare as one another; only the order of the sum differs.
    texts = ["one two three", "four five six", "six five four", "three one two"]
    index = LexicalIndex.build(["d", "c", "b", "a"], texts)
    found = index.scores("two four one six three five", 4)
    assert [doc_id for doc_id, _ in found] == ["a", "b", "c", "d"]
    assert len({score for _, score in found}) == 1


@pytest.mark.parametrize("query", ["zebra", "to be or not", "?!", "", "x"])
def test_a_query_without_a_word_of_the_documents_finds_nothing(index: LexicalIndex, query: str):
    assert index.scores(query, 10) == []


@pytest.mark.parametrize("texts", [{}, {"a": "", "b": "to be or not"}], ids=["none", "no word"])
def test_documents_without_words_are_never_found(tmp_path: Path, texts: dict[str, str]):
    index = built(texts)
    assert index.scores("hotel", 10) == []
    index.save(tmp_path / "i")
    loaded = LexicalIndex.load(tmp_path / "i")
    assert (loaded.doc_ids, loaded.scores("hotel", 10)) == (list(texts), [])


def test_words_in_any_script_are_found(tmp_path: Path):
    index = built({"ü": "Ärger im Straßenbahn-Depot", "日": "静かな ホテル", "e": "naïve café"})
    index.save(tmp_path / "i")
    for searched in (index, LexicalIndex.load(tmp_path / "i")):
        assert searched.scores("STRASSENBAHN", 3) == []
        found = [searched.scores(query, 3)[0][0] for query in ("ärger", "ホテル", "CAFÉ")]
        assert found == ["ü", "日", "e"]


def test_matched_words_come_as_the_query_has_them(index: LexicalIndex):
    query = "Gardens, gardens and a hotel without noise"
    assert index.matched(query, ["a", "c", "d"]) == [("gardens", "hotel"), ("hotel",), ()]
    assert index.matched(query, []) == []
    with pytest.raises(NotFound, match="no document 'z'"):
        index.matched(query, ["z"])


def test_settings_that_cannot_work_are_refused(index: LexicalIndex):
    with pytest.raises(InvalidValue, match="n must be at least 1, got 0"):
        index.scores("hotel", 0)
    with pytest.raises(InvalidValue, match="2 ids, 1 texts"):
        LexicalIndex.build(["a", "b"], ["x"])
    with pytest.raises(DuplicateId, match="comes twice"):
        LexicalIndex.build(["a", "a"], ["x", "y"])


@pytest.mark.parametrize("module", ["bm25s", "Stemmer"])
def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"BM25 .*pip install 'coder-ir\[hybrid\]'"):
        LexicalIndex.build(["a"], ["x"])


# The folder.


def test_a_loaded_index_answers_as_the_one_that_was_saved(tmp_path: Path, index: LexicalIndex):
    index.save(tmp_path / "deep" / "i")
    loaded = LexicalIndex.load(tmp_path / "deep" / "i")
    assert (loaded.doc_ids, loaded.stamp, len(loaded)) == (index.doc_ids, index.stamp, 4)
    for query in ("quiet garden", "hotel", "noise"):
        assert loaded.scores(query, 9) == index.scores(query, 9)
        assert loaded.matched(query, ["a", "c"]) == index.matched(query, ["a", "c"])


def test_the_folder_holds_arrays_and_json_and_no_pickle(tmp_path: Path, index: LexicalIndex):
    index.save(tmp_path / "i")
    assert {path.suffix for path in (tmp_path / "i").iterdir()} == {".npy", ".json"}
    for path in (tmp_path / "i").glob("*.npy"):
        np.load(path, allow_pickle=False)
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_equal_documents_give_equal_files(tmp_path: Path):
    for name in ("one", "two"):
        built(TEXTS).save(tmp_path / name)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert one == two


def test_the_stamp_is_the_callers_or_that_of_ids_and_texts(tmp_path: Path):
    assert LexicalIndex.build(["a"], ["x"], stamp="mine").stamp == "mine"
    stamps = {
        stamp_of(ids, texts)
        for ids in (["a", "b"], ["b", "a"])
        for texts in (["x", "y"], ["xy", ""])
    }
    assert len(stamps) == 4
    assert built(TEXTS).stamp == stamp_of(TEXTS.keys(), TEXTS.values())
    assert saved_stamp(tmp_path) is None
    assert saved_stamp(tmp_path / "gone") is None


def test_saving_again_replaces_what_was_there(tmp_path: Path, index: LexicalIndex):
    index.save(tmp_path / "i")
    built({"z": "zebra"}).save(tmp_path / "i")
    assert LexicalIndex.load(tmp_path / "i").doc_ids == ["z"]
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


@pytest.mark.parametrize("renames", [0, 1], ids=["while writing", "between the two renames"])
def test_an_interrupted_save_leaves_the_old_index_usable(
    tmp_path: Path, index: LexicalIndex, monkeypatch: pytest.MonkeyPatch, renames: int
):
    folder = tmp_path / "i"
    index.save(folder)
    done: list[Path] = []
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if len(done) == renames:
            raise KeyboardInterrupt
        done.append(self)
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            built({"z": "zebra"}).save(folder)
    assert saved_stamp(folder) == index.stamp
    assert LexicalIndex.load(folder).scores("hotel", 9) == index.scores("hotel", 9)
    built({"z": "zebra"}).save(folder)
    assert LexicalIndex.load(folder).doc_ids == ["z"]
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_an_index_that_is_not_there_is_not_found(tmp_path: Path):
    with pytest.raises(NotFound, match="no BM25 index in"):
        LexicalIndex.load(tmp_path / "gone")


def test_a_folder_of_something_else_is_neither_read_nor_written(
    tmp_path: Path, index: LexicalIndex
):
    (tmp_path / "letter.txt").write_text("dear")
    for attempt in (LexicalIndex.load, saved_stamp, index.save):
        with pytest.raises(InvalidFile, match=r"holds 'letter.txt'\); name a new folder"):
            attempt(tmp_path)
    with pytest.raises(InvalidFile, match="is a file; name a folder"):
        index.save(tmp_path / "letter.txt")
    assert (tmp_path / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize(
    "name", ["data.csc.index.npy", "indices.csc.index.npy", "vocab.index.json", RECORD]
)
@pytest.mark.parametrize("harm", ["cut", "changed", "gone"])
def test_a_damaged_folder_is_refused_with_what_to_do(
    tmp_path: Path, index: LexicalIndex, name: str, harm: str
):
    folder = tmp_path / "i"
    index.save(folder)
    path = folder / name
    data = path.read_bytes()
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 2] if harm == "cut" else b"[]" + data[2:])
    with pytest.raises(InvalidFile, match=r"delete .*i to have it built again|name a new folder"):
        LexicalIndex.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 9}, "has format 9, this version reads 1; delete"),
        ({"rules": "other"}, r"other rules \(other\)"),
        ({"doc_ids": ["a"]}, "it has 1 ids"),
        ({"doc_ids": "a"}, "its fields are not"),
        ({"more": 1}, "damaged or was changed"),
    ],
    ids=["format", "rules", "fewer ids", "ids of another type", "another field"],
)
def test_a_record_of_another_kind_is_refused(
    tmp_path: Path, index: LexicalIndex, change: dict[str, object], message: str
):
    index.save(tmp_path / "i")
    path = tmp_path / "i" / RECORD
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InvalidFile, match=message):
        LexicalIndex.load(tmp_path / "i")


def test_a_disk_that_refuses_is_a_store_error(
    tmp_path: Path, index: LexicalIndex, monkeypatch: pytest.MonkeyPatch
):
    def full(path: Path) -> str:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(lexical, "file_sha256", full)
    with pytest.raises(StoreError, match=r"cannot write to .*No space left"):
        index.save(tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_two_that_save_at_once_do_not_get_in_each_others_way(tmp_path: Path):
    indexes = [built({f"{name}{i}": "quiet hotel" for i in range(5)}) for name in "ab"]

    def save(index: LexicalIndex) -> None:
        for _ in range(10):
            index.save(tmp_path / "i")

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(save, indexes))
    assert len(LexicalIndex.load(tmp_path / "i")) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["i"]
