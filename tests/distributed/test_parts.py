"""Files cut into parts: every document in exactly one, whatever the cut."""

import json
import sys

import pytest

from coder_ir.datasets.documents import Columns, read_documents
from coder_ir.distributed import find_parts
from coder_ir.distributed.parts import read_part
from coder_ir.errors import CoderError, InvalidFile, InvalidValue, MissingExtra, NotFound
from coder_ir.types import Document

pytest.importorskip("ray", reason="needs the extra ray")

ROWS = [
    {"_id": "a", "text": "One."},
    {"_id": "b", "text": "Zwei: é 雪 " * 9, "title": "T"},
    {"_id": "c", "text": "", "metadata": {"year": 2020}},
    {"_id": "d", "text": "x" * 300, "stars": 4},
    {"_id": "e", "text": "last"},
]


def read(parts, columns=None) -> list[Document]:
    return [doc for part in parts for doc in read_part(part, columns or Columns())]


@pytest.mark.parametrize("end", ["\n", ""], ids=["newline at the end", "none"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a mark"])
def test_whatever_the_size_of_parts_the_documents_are_those_of_the_file(tmp_path, end, bom):
    path = tmp_path / "docs.jsonl"
    lines = [json.dumps(row, ensure_ascii=False) for row in ROWS]
    lines.insert(2, "")
    path.write_bytes(bom + ("\r\n".join(lines) + end).encode())
    expected = list(read_documents([str(path)]))
    assert len(expected) == 5
    for size in [*range(1, 60), 100, 333, 10**6]:
        assert read(find_parts([str(path)], size=size)) == expected


def test_folders_patterns_and_urls_are_found_in_order(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "sub/c.ndjson"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"_id": name, "text": "x"}), encoding="utf-8")
    (tmp_path / "readme.txt").write_text("not ours", encoding="utf-8")
    for source in (str(tmp_path), f"file://{tmp_path}"):
        assert [d.doc_id for d in read(find_parts([source]))] == [
            "a.jsonl",
            "b.jsonl",
            "sub/c.ndjson",
        ]
    assert [d.doc_id for d in read(find_parts([f"{tmp_path}/b*.jsonl"]))] == ["b.jsonl"]
    import fsspec

    with fsspec.open("memory://corpus/x.jsonl", "w") as file:
        file.write('{"_id": "m", "text": "in memory"}\n')
    assert read(find_parts(["memory://corpus/x.jsonl"])) == [Document("m", "in memory")]


def test_parquet_gives_the_same_documents_in_row_groups(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    rows = [{"_id": i, "text": f"t{i}", "year": 2000 + i} for i in range(5)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet", row_group_size=2)
    parts = find_parts([str(tmp_path)])
    assert [(part.start, part.end) for part in parts] == [(0, 1), (1, 2), (2, 3)]
    assert read(parts) == [Document(str(i), f"t{i}", "", {"year": 2000 + i}) for i in range(5)]


@pytest.mark.parametrize(
    ("name", "content", "error", "said"),
    [
        ("d.csv", b"id,text", InvalidValue, "with --ray documents come as .jsonl"),
        ("d.parquet", b"PAR1", InvalidFile, "d.parquet cannot be read|not a parquet file"),
        ("d.jsonl", b'{"_id": "a"}', InvalidFile, "from byte 0:1 has no field 'text'"),
        ("d.jsonl", b'{"_id": "a", "text": "b"}\n[1]', InvalidFile, ":2 should hold a JSON object"),
        ("sub.d/x", b"", InvalidValue, "come as"),
    ],
    ids=["csv", "parquet", "field", "object", "no suffix"],
)
def test_what_cannot_be_read_is_said(tmp_path, name, content, error, said):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=said):
        read(find_parts([str(tmp_path / name)]))


@pytest.mark.parametrize("source", ["nowhere.jsonl", "nowhere*.jsonl", "nothing://x/y"])
def test_what_is_not_there_is_said(tmp_path, source, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CoderError, match=source.replace("*", r"\*")):
        find_parts([source])
    with pytest.raises(NotFound, match=r"no .jsonl or .parquet file in"):
        find_parts([str(tmp_path)])
    with pytest.raises(InvalidValue, match="no documents were named"):
        find_parts([])


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"coder-ir\[ray\]"):
        find_parts([str(tmp_path)])
