import numpy as np
import pytest

from coder_ir.baselines.kept import KeptVectors
from coder_ir.errors import StoreError

PAIR = (np.array([1, 2], dtype=np.float32), np.array([3], dtype=np.float32))


def test_pairs_come_back_from_the_file(tmp_path):
    kept = KeptVectors(tmp_path / "deep" / "kept.sqlite")
    kept.put({"a": PAIR})
    kept.close()
    again = KeptVectors(tmp_path / "deep" / "kept.sqlite")
    (found,) = again.get(["a", "b"]).values()
    assert [part.tolist() for part in found] == [[1, 2], [3]]
    again.close()


def test_a_key_tells_its_parts_apart():
    assert KeptVectors.key("ab", "c") != KeptVectors.key("a", "bc")


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "kept.sqlite"
    path.write_text("dear" * 500)
    with pytest.raises(StoreError, match=r"kept\.sqlite cannot be used .*; if it is damaged"):
        KeptVectors(path)


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        KeptVectors(tmp_path / "file" / "kept.sqlite")
