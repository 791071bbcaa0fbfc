"""What every measurement is given."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coder_ir.errors import NotFound

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """Where data, results and models are."""

    data: Path  # holds a folder for each benchmark that is there
    out: Path
    reference: str  # torch model the built-in topical encoder was made from
    model: str
    written: Path = Path("recipes/written")  # contrast items of our own
    queries: Path = Path("recipes/queries")  # marked queries of our own
    reranker: Path | None = None  # folder of an ONNX cross-encoder
    llm: Path | None = None  # TOML file of a language model; None: a small one on this machine

    @property
    def cache(self) -> Path:
        """Indexes, runs and whatever else a second run need not do again."""
        return self.out / "cache"

    def file(self, *parts: str) -> Path:
        """A data file that must be there."""
        path = self.data.joinpath(*parts)
        if not path.exists():
            raise NotFound(f"this measurement needs {path}; see --data")
        return path
