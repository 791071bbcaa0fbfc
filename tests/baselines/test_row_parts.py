from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coder_ir.baselines.row_parts import Row, RowParts


def row(number: int) -> Row:
    return Row(f"digest {number}", np.full(3, number, dtype=np.float32))


def test_two_that_append_at_once_lose_nothing(tmp_path):
    def append(name: str) -> None:
        parts = RowParts(tmp_path / "rows", fingerprint="one")
        for number in range(10):
            parts.append({f"{name}{number}": row(number)})

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(append, "ab"))
    found = RowParts(tmp_path / "rows", fingerprint="one").read()
    assert sorted(found) == sorted(f"{name}{number}" for name in "ab" for number in range(10))
    assert found["a7"].vector.tolist() == [7, 7, 7]


def test_of_two_parts_with_one_document_the_later_holds(tmp_path):
    parts = RowParts(tmp_path, fingerprint="one")
    parts.append({"a": row(1)})
    parts.append({"a": row(2)})
    assert parts.read()["a"].digest == "digest 2"
