"""From what a user passes as `verifier=` to a verifier."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from coder_ir.encoders.registry import BUILT_IN, built_in_folder
from coder_ir.types import Reading, Verifier
from coder_ir.verifier.folder import VerifierManifest
from coder_ir.verifier.onnx import OnnxVerifier

FOLDER = "verifier"  # in the built-in model folder


class LazyVerifier:
    """A verifier that is loaded when it first has something to read."""

    def __init__(self, folder: Path, *, threads: int = 0) -> None:
        """Look at the folder's description alone; threads: 0 takes all cores."""
        VerifierManifest.load(folder)
        self._folder = folder
        self._threads = threads or None
        self._loaded: OnnxVerifier | None = None
        self._lock = Lock()

    def read(self, query: str, passages: Sequence[str]) -> list[Reading]:
        """What each passage says to the query."""
        with self._lock:
            if self._loaded is None:
                self._loaded = OnnxVerifier(self._folder, threads=self._threads)
        return self._loaded.read(query, passages)


def load_verifier(name: str = BUILT_IN, *, threads: int = 0) -> Verifier:
    """`built-in`, or a folder with `model.onnx` and `tokenizer.json`; loaded on first use."""
    folder = built_in_folder() / FOLDER if name == BUILT_IN else Path(name)
    return LazyVerifier(folder, threads=threads)
