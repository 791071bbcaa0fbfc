"""What a published encoder was trained with and its files do not always say."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Similarity = Literal["cosine", "dot"]
BGE_PREFIX = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What goes before a text."""

    query: str = ""
    document: str = ""


def prefixes_of(name: str, prompts: Mapping[str, str | None]) -> Prefixes:
    """A model's own prompts; English BGE and E5 models without any get those of their papers."""
    own = Prefixes(
        prompts.get("query") or "", prompts.get("document") or prompts.get("passage") or ""
    )
    short = _short(name)
    if own != Prefixes():
        return own
    if short.startswith("bge-") and "-en" in short:
        return Prefixes(BGE_PREFIX)
    if short.startswith(("e5-", "multilingual-e5-")) and "instruct" not in short:
        return Prefixes("query: ", "passage: ")
    return own


def similarity_of(name: str, stated: str | None) -> Similarity:
    """Dot product where the model states it, and for Contriever, which states nothing."""
    return "dot" if stated == "dot" or "contriever" in _short(name) else "cosine"


def _short(name: str) -> str:
    """The last part of a name or path, in lower case."""
    return Path(name).name.lower()
