"""A real server over the fake encoder; arguments: INDEX, seconds a query, a batch, idle."""

import sys
import time
from pathlib import Path
from typing import Any

from coder_ir import Retriever
from coder_ir.serve import Limits, ServeSettings
from coder_ir.serve.locking import writer_lock
from coder_ir.serve.running import run
from coder_ir.stores import SqliteStore
from coder_ir.types import VectorPair
from tests.conftest import FakeEncoder
from tests.fake_verifier import FakeVerifier

WORDS = ("quiet", "noisy", "hotel", "garden", "club", "sea")


class SlowEncoder(FakeEncoder):
    """Takes some seconds for a query, and for a batch of documents."""

    seconds = writing = 0.0

    def encode(self, texts: Any, *, kind: Any, progress: Any = None) -> VectorPair:
        time.sleep(self.seconds if kind == "query" else self.writing)
        return super().encode(texts, kind=kind, progress=progress)


def main() -> None:
    folder = Path(sys.argv[1])
    encoder = SlowEncoder(WORDS)
    encoder.seconds, encoder.writing = map(float, sys.argv[2:4])
    limits = Limits(idle=int(sys.argv[4]))
    with writer_lock(folder) as reason:
        with Retriever(
            encoder, SqliteStore(folder, read_only=bool(reason)), verifier=FakeVerifier()
        ) as retriever:
            run(retriever, ServeSettings(limits=limits, read_only=reason), host="127.0.0.1", port=0)


if __name__ == "__main__":
    main()
