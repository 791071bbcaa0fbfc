"""Figures, readable in black and white: every line has a dash and a mark of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coder_ir.errors import MissingExtra

_COLOURS = ("#1b1b1b", "#b5402a", "#23527c", "#5a7d2a", "#7a4b94", "#8a6d1d")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_MARKS = ("o", "s", "^", "D", "v", "P")


def pyplot() -> Any:
    """Matplotlib without a window."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingExtra("A figure", extra="bench") from error
    return plt


def style(number: int) -> dict[str, Any]:
    """Colour, dash and mark of the n-th line."""
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "linestyle": _DASHES[number % len(_DASHES)],
        "marker": _MARKS[number % len(_MARKS)],
        "markersize": 4,
        "linewidth": 1.4,
    }


def draw_survival(curves: Mapping[str, Sequence[float]], path: Path) -> None:
    """Share of queries without a violating document down to each rank, a line a run, as PNG."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(5.5, 3.8), dpi=150)
    for number, (name, shares) in enumerate(curves.items()):
        depths = range(1, len(shares) + 1)
        axes.plot(depths, [100 * share for share in shares], label=name, **style(number))
    axes.set(xlabel="rank k", ylabel="queries without a violation in the first k, %", ylim=(0, 100))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, format="png")
    plt.close(figure)
