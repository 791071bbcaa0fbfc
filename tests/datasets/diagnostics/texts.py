"""Passages of our own that the rules can be worked out on by hand."""

import json
from pathlib import Path

from coder_ir.datasets.diagnostics.passages import Passage
from coder_ir.datasets.diagnostics.sheet import Pair
from tests.local_home import put

FERN = (
    "Bracken ferns are found on most of the northern moor and have driven out many smaller plants.",
    "Spore traps were placed along twelve paths and emptied by a warden in every second week.",
    "Bracken litter increased ammonia release from moorland peat after heavy summer rain.",
    "Volunteers were trained for two days and received a printed guide with photographs of ferns.",
    "The oldest moorland plots were fenced in the spring so that sheep were kept out of them.",
)
KELP = (
    "Kelp forests along the western coast are grazed by urchins and shelter many young fish.",
    "Urchins were mapped with cameras and were counted by divers in marked squares each month.",
    "Kelp canopies were associated with calmer water inside the harbour mouth.",
    "A diary of storms was kept by the harbour staff, who noted the height of each wave.",
    "Cameras were cleaned by hand each week and replaced when the housing began to leak.",
)


def passage(sentences: tuple[str, ...], doc_id: str = "p1", title: str = "") -> Passage:
    return Passage(doc_id, title, sentences)


def pair(number: int = 1, **changes: str) -> Pair:
    cells = {
        "pair_id": f"antonym-{number:03}",
        "kind": "antonym",
        "source": f"s{number}",
        "changed": "higher -> lower",
        "decision": "keep",
        "note": "",
        "query_a": f"higher tides at pier {number}",
        "query_b": f"lower tides at pier {number}",
    }
    texts = ("a1", "a2", "b1", "b2", "neutral1", "neutral2")
    return Pair(
        **{**cells, **{name: f"Text {name} of pair {number}." for name in texts}, **changes}
    )


def corpus(folder: Path, *passages: Passage) -> Path:
    """A BEIR folder with these passages as its corpus."""
    rows = [{"_id": p.doc_id, "title": p.title, "text": " ".join(p.sentences)} for p in passages]
    put(folder, {"corpus.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()})
    return folder
