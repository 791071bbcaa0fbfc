"""The command attach: what it says, where it goes on, how it ends."""

import json

import numpy as np
import pytest

from coder_ir import Attached
from coder_ir.policies.seq import Sequential
from tests.attached.spaces import make_folder, theirs, write_texts
from tests.attached.test_pgvector import Theirs
from tests.conftest import Command
from tests.postgres import fresh

TEXTS = {
    "club": "The club downstairs plays until four.",
    "pines": "The loudest guest is an owl in the pines.",
}


def test_a_folder_is_attached_and_attached_again(cli: Command, tmp_path):
    folder = make_folder(tmp_path / "vectors", TEXTS)
    before = theirs(folder)
    done = cli("attach", folder)
    assert (done.code, done.out) == (0, "")
    assert f"{folder}: 2 encoded, 0 unchanged, 0 removed" in done.err
    write_texts(folder / "texts.jsonl", {**TEXTS, "club": "It is silent here."})
    done = cli("attach", folder)
    assert f"{folder}: 1 encoded, 1 unchanged, 0 removed" in done.err
    with Attached.open(folder) as attached:
        everything = Sequential(tau=-1)
        assert len(attached.search("a quiet place", topical=[1.0, 0.5], policy=everything)) == 2
    assert {name: theirs(folder)[name] for name in ("vectors.npy", "ids.json")} == {
        name: before[name] for name in ("vectors.npy", "ids.json")
    }


def test_texts_and_their_fields_are_named(cli: Command, tmp_path):
    folder = make_folder(tmp_path / "vectors", TEXTS)
    docs = tmp_path / "docs.jsonl"
    lines = [json.dumps({"key": key, "body": text}) for key, text in TEXTS.items()]
    docs.write_text("\n".join(lines), encoding="utf-8")
    done = cli("attach", folder, "--texts", docs, "--id", "key", "--text", "body")
    assert done.code == 0
    assert "2 encoded" in done.err
    assert "2 unchanged" in cli("attach", folder).err


def test_long_texts_are_told_of(cli: Command, tmp_path):
    folder = make_folder(tmp_path / "vectors", {**TEXTS, "long": "word " * 3000})
    done = cli("attach", folder, "--max-length", "32")
    assert done.code == 0
    assert "1 texts are longer than the 32 tokens the model reads" in done.err
    assert "3 unchanged" in cli("attach", folder).err  # with the same limit
    done = cli("attach", folder, "--model", "built-in")
    assert done.code == 1
    assert "attached with model 'built-in@32'" in done.err


def test_a_table_is_attached_and_the_password_is_not_shown(cli: Command, postgres):
    items = Theirs(postgres, fresh("items"), "id text PRIMARY KEY, body text, embedding vector(2)")
    items.put(TEXTS)
    before = items.checksum()
    done = cli("attach", items.address())
    assert done.code == 0
    assert "2 encoded, 0 unchanged, 0 removed" in done.err
    assert "wörd" not in done.err
    items.do("DELETE FROM ITEMS WHERE id = 'club'")
    assert "0 encoded, 1 unchanged, 1 removed" in cli("attach", items.address()).err
    assert items.checksum() == [row for row in before if "club" not in row[-1]]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 1, "there is no folder nowhere"),
        (["mysql://h/db?table=t"], 2, "nothing can be attached to mysql:// addresses"),
        (["postgresql://u:secret@h/db?table=t"], 2, "does not say id="),
        ([], 2, "Missing argument 'SOURCE'"),
    ],
    ids=["folder", "scheme", "parameters", "none"],
)
def test_misuse_is_told(cli: Command, arguments, code, said):
    done = cli("attach", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "secret" not in done.err


def test_a_stop_says_how_to_go_on(cli: Command, tmp_path, monkeypatch):
    folder = make_folder(tmp_path / "vectors", TEXTS)
    monkeypatch.setattr(np, "stack", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    done = cli("attach", folder)
    assert done.code == 1
    assert "run it again to go on" in done.err


def test_help_shows_an_example(cli: Command):
    done = cli("attach", "--help")
    assert "Example: coder-ir attach my-vectors --texts docs.jsonl" in done.words
