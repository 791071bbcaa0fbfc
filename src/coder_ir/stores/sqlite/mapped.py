"""Vectors in a file: read one by one, or all of them as if they were in memory."""

import os
import weakref
from pathlib import Path

import numpy as np

from coder_ir.stores.sqlite.exact import Positions
from coder_ir.types import Floats

_FEW = 4096  # rows that are read one by one


class MappedVectors:
    """Rows of float32, (rows, dimensions). The file may lose its name meanwhile."""

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        """Map the file; pages are read as they are looked at."""
        self.all: Floats = np.asarray(np.memmap(path, dtype=np.float32, mode="r", shape=shape))
        self._file: int | None = None
        if hasattr(os, "preadv"):
            self._file = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)

    def at(self, positions: Positions) -> Floats:
        """The rows at these positions, in their order.

        Few are read from the file: the system would map sixteen pages for each that is looked at,
        and after some hundred queries all of the vectors would count as this process's memory.
        """
        if self._file is None or len(positions) > _FEW:
            return self.all[positions]
        width = 4 * self.all.shape[1]
        held = bytearray(width * len(positions))
        place = memoryview(held)
        for i, position in enumerate(positions.tolist()):
            part = place[width * i : width * (i + 1)]
            if os.preadv(self._file, [part], width * position) != width:
                raise OSError(f"a file of vectors ends before row {position}")
        return np.frombuffer(held, dtype=np.float32).reshape(-1, self.all.shape[1])
