"""A run with a light encoder that waits, as a process of its own that can be killed.

Arguments: address of the index, file or folder of documents, folder for marks, seconds a batch.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coder_ir.retriever import Retriever
from coder_ir.stores import open_store
from coder_ir.types import Kind, Progress, VectorPair
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier

WORDS = ["quiet", "noisy", "hotel", "garden", "club", "sea"]


class SlowEncoder(FakeEncoder):
    """Writes a line for every text it encodes into a file named by its process."""

    marks: Path
    seconds: float

    def encode(
        self, texts: Sequence[str], *, kind: Kind, progress: Progress | None = None
    ) -> VectorPair:
        with (self.marks / str(os.getpid())).open("a", encoding="utf-8") as file:
            file.write("".join(f"{text}\n" for text in texts))
        time.sleep(self.seconds)
        return super().encode(texts, kind=kind, progress=progress)


@dataclass(frozen=True)
class Slowly:
    """Opens an index with such an encoder; picklable."""

    address: str
    marks: Path
    seconds: float

    def __call__(self) -> Retriever:
        encoder = SlowEncoder(WORDS)
        encoder.marks, encoder.seconds = self.marks, self.seconds
        return Retriever(encoder, open_store(self.address), verifier=FakeVerifier())


def main() -> None:
    from coder_ir.distributed import Cluster, find_parts, index_with_ray

    address, docs, marks, seconds = sys.argv[1:]
    opening = Slowly(address, Path(marks), float(seconds))
    parts = find_parts([docs], size=20_000)
    outcome = index_with_ray(opening, parts, cluster=Cluster(threads=1))
    print(outcome.added.written, outcome.added.unchanged, outcome.stored, outcome.workers)


if __name__ == "__main__":
    main()
