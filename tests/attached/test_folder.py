"""Attaching to a folder of vectors: their files stay, ours follow, kills and changes included."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from coder_ir.attached import Attachment, attach, open_source
from coder_ir.attached.folder_files import MANIFEST, OURS, PROGRESS
from coder_ir.attached.source import BATCH
from coder_ir.datasets.documents import Columns
from coder_ir.errors import (
    CoderError,
    DuplicateId,
    InvalidFile,
    InvalidValue,
    ModelMismatch,
    NotFound,
    StoreError,
)
from coder_ir.types import ModelStamp
from tests.attached.spaces import FakeSpace, attaching, make_folder, theirs, write_texts

TEXTS = {"a": "quiet hotel", "b": "noisy club", "c": "sea garden"}


def filled(folder: Path, encoder: FakeSpace | None = None, **more: object) -> Attachment:
    source = open_source(folder, **more)
    try:
        return attach(source, encoder or FakeSpace(), spec="fake")
    finally:
        source.close()


def ours(folder: Path) -> np.ndarray:
    return np.load(folder / OURS)


def test_every_item_gets_its_vector_in_the_row_of_its_own(tmp_path):
    folder = make_folder(tmp_path, TEXTS)
    before = theirs(folder)
    assert filled(folder) == Attachment(encoded=3)
    assert np.array_equal(ours(folder), FakeSpace().rows(list(TEXTS.values())))
    assert theirs(folder) == before
    assert {p.name for p in folder.iterdir()} - set(before) == {MANIFEST, OURS, PROGRESS}


def test_a_second_run_encodes_nothing(tmp_path):
    folder, encoder = make_folder(tmp_path, TEXTS), FakeSpace()
    filled(folder)
    assert filled(folder, encoder) == Attachment(unchanged=3)
    assert encoder.encoded == ["text"]  # the probe of its dimensions


def test_only_a_changed_text_is_encoded_again(tmp_path):
    folder, encoder = make_folder(tmp_path, TEXTS), FakeSpace()
    filled(folder)
    changed = {**TEXTS, "b": "quiet sea"}
    write_texts(folder / "texts.jsonl", changed)
    assert filled(folder, encoder) == Attachment(encoded=1, unchanged=2)
    assert encoder.encoded == ["text", "quiet sea"]
    assert np.array_equal(ours(folder), encoder.rows(list(changed.values())))


def test_items_that_come_go_and_move_take_their_vectors_with_them(tmp_path):
    folder, encoder = make_folder(tmp_path, TEXTS), FakeSpace()
    filled(folder)
    moved = {"new": "club sea", "c": "sea garden", "a": "quiet hotel"}
    make_folder(folder, moved)
    assert filled(folder, encoder) == Attachment(encoded=1, unchanged=2, removed=1)
    assert encoder.encoded == ["text", "club sea"]
    assert np.array_equal(ours(folder), encoder.rows(list(moved.values())))
    assert not list(folder.glob("*.next*"))


@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_kill_between_the_renames_is_finished_by_the_next_run(tmp_path, monkeypatch, done):
    folder = make_folder(tmp_path, TEXTS)
    filled(folder)
    moved = {"c": "sea garden", "a": "quiet hotel"}
    make_folder(folder, moved)
    rename, left = Path.replace, [done]

    def stopping(path: Path, target: Path) -> Path:
        if ".next" in path.name:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", stopping)
        if done < 2:
            with pytest.raises(KeyboardInterrupt):
                filled(folder)
    encoder = FakeSpace()
    assert filled(folder, encoder).encoded == 0
    assert np.array_equal(ours(folder), encoder.rows(list(moved.values())))


def test_a_process_killed_in_the_middle_and_run_again_completes_exactly(tmp_path):
    texts = {f"d{i}": f"{'quiet ' * (i % 7)}hotel {'sea ' * (i % 5)}" for i in range(6 * BATCH)}
    folder = make_folder(tmp_path, texts, np.ones((len(texts), 3), np.float32))
    before = theirs(folder)
    with subprocess.Popen(
        attaching(str(folder), 0.2), stdout=subprocess.PIPE, text=True
    ) as process:
        for _ in range(2):
            assert process.stdout.readline() == f"{BATCH}\n"
        process.kill()
    done = int(np.load(folder / PROGRESS)[:, 16:].any(axis=1).sum())
    assert 2 * BATCH <= done < len(texts)
    encoder = FakeSpace()
    assert filled(folder, encoder) == Attachment(encoded=len(texts) - done, unchanged=done)
    assert np.array_equal(ours(folder), encoder.rows(list(texts.values())))
    assert theirs(folder) == before


def test_two_at_once_are_refused(tmp_path):
    folder = make_folder(tmp_path, TEXTS)
    first = open_source(folder)
    attach(first, FakeSpace(), spec="fake")
    with pytest.raises(StoreError, match="another process attaches"):
        filled(folder)
    first.close()
    assert filled(folder) == Attachment(unchanged=3)


ODD = ["a b", "é", "'; DROP", "tab\there", "line\u2028end", "../x", '"', "0", "雪"]


@pytest.mark.parametrize("kind", ["json", "txt"])
def test_ids_may_hold_any_character(tmp_path, kind):
    texts = dict.fromkeys(ODD, "") | {doc_id: f"hotel {'sea ' * i}" for i, doc_id in enumerate(ODD)}
    folder = make_folder(tmp_path, texts)
    if kind == "txt":
        (folder / "ids.json").unlink()
        (folder / "ids.txt").write_bytes("\r\n".join(ODD).encode() + b"\n")
    assert filled(folder) == Attachment(encoded=len(ODD))
    source = open_source(folder, read_only=True)
    assert {held.doc_id: held.text for held in source.fetch(ODD)} == texts
    assert source.fetch(["nobody"]) == []
    assert list(source.nearest(np.eye(len(ODD))[4], 1)) == ["line\u2028end"]


def test_texts_may_lie_elsewhere_under_other_names(tmp_path):
    folder = make_folder(tmp_path / "vectors", TEXTS)
    (folder / "texts.jsonl").unlink()
    docs = tmp_path / "docs.jsonl"
    rows = [{"key": key, "body": text, "title": "sea"} for key, text in TEXTS.items()]
    docs.write_bytes(b"\xef\xbb\xbf" + "\n".join(map(json.dumps, rows)).encode())
    assert filled(folder, texts=docs, columns=Columns("key", "body")).encoded == 3
    assert np.array_equal(ours(folder), FakeSpace().rows([f"sea {t}" for t in TEXTS.values()]))
    assert filled(folder) == Attachment(unchanged=3)  # where the texts are is remembered


def test_texts_past_the_models_limit_are_counted(tmp_path):
    folder = make_folder(tmp_path, TEXTS)
    assert filled(folder, FakeSpace(limit=1)) == Attachment(encoded=3, cut=3)


def test_another_model_is_refused_and_changes_nothing(tmp_path):
    folder = make_folder(tmp_path, TEXTS)
    filled(folder)
    before = ours(folder)
    with pytest.raises(ModelMismatch, match=r"by an earlier version of .* coder-ir attach SOURCE"):
        filled(folder, FakeSpace(name="other"))
    assert np.array_equal(ours(folder), before)


def test_a_model_of_another_name_is_refused_with_both_names(tmp_path):
    folder = make_folder(tmp_path, TEXTS)
    filled(folder)
    said = r"attached with model 'fake', not 'other'; use that one, or delete .* coder-ir attach"
    source = open_source(folder)
    with pytest.raises(ModelMismatch, match=said):
        source.prepare(ModelStamp("0" * 64, "other"), 7)
    source.close()


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda f: (f / "vectors.npy").unlink(), NotFound, "there is no .*vectors.npy"),
        (lambda f: (f / "vectors.npy").write_bytes(b"x"), InvalidFile, "cannot be read as an arr"),
        (lambda f: np.save(f / "vectors.npy", np.ones(3)), InvalidFile, "a row of numbers an item"),
        (lambda f: np.save(f / "vectors.npy", np.ones((3, 2), int)), InvalidFile, "int64"),
        (lambda f: np.save(f / "vectors.npy", np.ones((0, 2))), InvalidFile, "holds nothing"),
        (lambda f: np.save(f / "vectors.npy", np.ones((4, 2))), InvalidFile, "3 ids, .* 4 rows"),
        (lambda f: (f / "ids.json").unlink(), InvalidFile, "has neither"),
        (lambda f: (f / "ids.txt").write_text("a"), InvalidFile, "has both"),
        (lambda f: (f / "ids.json").write_text("{"), InvalidFile, "ids.json cannot be read"),
        (lambda f: (f / "ids.json").write_text('{"a": 1}'), InvalidFile, "holds no list"),
        (lambda f: (f / "ids.json").write_text('["a", 1.5, "c"]'), InvalidFile, "got 1.5"),
        (lambda f: (f / "ids.json").write_text('["a", "", "c"]'), InvalidFile, "id 2 is empty"),
        (lambda f: (f / "ids.json").write_text('["a", "b", "a"]'), DuplicateId, "'a' .number 3"),
        (lambda f: (f / "texts.jsonl").unlink(), NotFound, "no file of texts .* --texts"),
        (lambda f: write_texts(f / "texts.jsonl", {"a": "x"}), InvalidFile, "'b' and 1 others"),
        (lambda f: (f / "texts.jsonl").write_text('{"_id": "a"}'), InvalidFile, "no field 'text'"),
        (
            lambda f: (f / "texts.jsonl").write_text('{"_id": "a", "text": "x"}\n' * 2),
            DuplicateId,
            "'a' comes twice",
        ),
        (lambda f: (f / OURS).write_bytes(b""), InvalidFile, "not written by coder-ir"),
        (shutil.rmtree, NotFound, "there is no folder"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_attached_to_is_refused_in_words(tmp_path, change, error, said):
    folder = make_folder(tmp_path / "vectors", TEXTS)
    change(folder)
    with pytest.raises(error, match=said):
        filled(folder)
    assert not (folder / MANIFEST).exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: (f / MANIFEST).write_text("{}"), "not as coder-ir wrote it"),
        (lambda f: (f / OURS).write_bytes(b"x"), "cannot be read"),
        (lambda f: np.save(f / OURS, np.ones((2, 7), np.float32)), "2 rows, .* 3"),
        (lambda f: (f / PROGRESS).unlink(), "progress.npy is gone"),
    ],
    ids=["manifest", "bytes", "rows", "progress"],
)
def test_damage_to_our_files_is_said_and_not_built_upon(tmp_path, change, said):
    folder = make_folder(tmp_path, TEXTS)
    filled(folder)
    change(folder)
    with pytest.raises(CoderError, match=said):
        filled(folder)


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path):
    folder = make_folder(tmp_path / "vectors", TEXTS)
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(StoreError, match=f"cannot write to {folder}"):
            filled(folder)
    finally:
        folder.chmod(0o700)


def test_a_query_of_other_dimensions_is_refused_with_both(tmp_path):
    source = open_source(make_folder(tmp_path, TEXTS))
    with pytest.raises(InvalidValue, match="have 3 dimensions, the query's has 2"):
        source.nearest(np.ones(2, np.float32), 1)


def test_nearest_goes_by_cosine_whatever_the_lengths_and_ties_by_id(tmp_path):
    vectors = np.array([[9, 1], [0.1, 0], [5, 0], [np.nan, 1]], np.float16)
    source = open_source(make_folder(tmp_path, dict.fromkeys("dcba", "x"), vectors))
    found = source.nearest(np.array([3, 0], np.float32), 10)
    assert list(found.items()) == [("b", 1.0), ("c", 1.0), ("d", pytest.approx(0.993884))]


def test_a_file_of_texts_that_changes_under_a_reader_is_noticed(tmp_path):
    folder = make_folder(tmp_path, TEXTS)
    source = open_source(folder)
    (folder / "texts.jsonl").write_text('{"_id": "b", "text": "short"}\n', encoding="utf-8")
    with pytest.raises(StoreError, match="was changed while it was open"):
        source.fetch(["a"])


def test_a_file_that_is_no_array_is_refused_without_advice_to_unpickle_it(tmp_path):
    (tmp_path / "vectors.npy").write_bytes(b"x")
    (tmp_path / "ids.txt").write_text("a\n", encoding="utf-8")
    with pytest.raises(InvalidFile, match=r"write it with numpy\.save") as refused:
        open_source(tmp_path, read_only=True)
    assert "pickle" not in str(refused.value)
