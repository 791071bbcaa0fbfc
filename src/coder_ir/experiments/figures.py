"""Figures, readable in black and white: lines, points and cells differ by more than colour."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coder_ir.errors import InvalidValue, MissingExtra
from coder_ir.experiments.labels import place_labels

_COLOURS = ("#1b1b1b", "#b5402a", "#23527c", "#5a7d2a", "#7a4b94", "#8a6d1d")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_MARKS = ("o", "s", "^", "D", "v", "P")
_TEXT = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.7,
    "legend.fontsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
}
_COLUMNS = 4  # panels beside each other, at most
_ALONE = (1.5, 1.25)  # a panel without neighbours is wider and higher by this
_POINTS: dict[str, dict[str, Any]] = {  # drawn in this order, so that what matters lies on top
    "neutral": {"marker": ".", "s": 16, "color": "0.55", "linewidths": 0},
    "violating": {"marker": "x", "s": 18, "color": "#b5402a", "linewidths": 0.9},
    "satisfying": {"marker": "o", "s": 18, "facecolors": "none", "edgecolors": "#1b1b1b"}
    | {"linewidths": 0.8},
}
_BARS = 32  # bins over all margins, at most
_HEADROOM = 1.4  # height of a panel over that of its highest step, for a legend
_LUMA = (0.299, 0.587, 0.114)  # what red, green and blue add to brightness
_DARK = 0.46  # brightness below which white text is easier to read than black
_SURVIVAL = "queries without a violation\nin the first k, %"


@dataclass(frozen=True, slots=True)
class Grid:
    """A measure over two settings."""

    title: str
    x_label: str
    y_label: str
    xs: Sequence[float]
    ys: Sequence[float]
    values: Sequence[Sequence[float]]  # values[row][column], a row a y; nan: not measured

    def __post_init__(self) -> None:
        """Refuse values that do not fit the axes."""
        wide = {len(row) for row in self.values}
        if not self.xs or len(self.values) != len(self.ys) or wide != {len(self.xs)}:
            raise InvalidValue(
                f"{self.title!r} needs {len(self.ys)} rows of {len(self.xs)} values, at least one; "
                f"got {len(self.values)} of {sorted(wide)}"
            )


@dataclass(frozen=True, slots=True)
class Separation:
    """Margins: compatibility of a query's satisfying less that of its violating document."""

    trained: Sequence[float] | NDArray[np.float64]  # one a query, each in [-2, 2]
    base: Sequence[float] | NDArray[np.float64]  # of the encoder before training


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
    draw_survival_panels({"": curves}, path)


def draw_survival_panels(panels: Mapping[str, Mapping[str, Sequence[float]]], path: Path) -> None:
    """Survival curves, a panel a data set; a run looks the same in each and is named once."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    with _sheet(panels, path, size=(2.7, 2.0), y_label=_SURVIVAL) as sheet:
        for axes, curves in zip(sheet.axes, panels.values(), strict=True):
            for name, shares in curves.items():
                look = style(names.index(name)) | {"markevery": max(1, len(shares) // 10)}
                percent = [100 * share for share in shares]
                depths = range(1, len(shares) + 1)
                axes.plot(depths, percent, label=name, clip_on=False, zorder=3, **look)
            longest = max(map(len, curves.values()), default=1)
            axes.set(xlabel="rank k", xlim=(0.5, longest + 0.5), ylim=(0, 100))
            axes.xaxis.get_major_locator().set_params(integer=True, nbins=10)
            axes.grid(axis="y", color="0.9")
        sheet.legend(names)


def draw_scatter(panels: Mapping[str, Mapping[str, NDArray[np.float64]]], path: Path) -> None:
    """Documents by their two scores, (n, 2) arrays of (topical, compatibility) a label, as PNG.

    Labels are satisfying (circles), violating (crosses) and neutral (dots).
    """
    if unknown := sorted({label for groups in panels.values() for label in groups} - set(_POINTS)):
        raise InvalidValue(f"a label is one of {', '.join(_POINTS)}, got {', '.join(unknown)}")
    groups_of = [rows for groups in panels.values() for rows in groups.values()]
    points = np.concatenate([np.zeros((0, 2)), *groups_of])
    limits = {"xlim": _limits(points[:, 0]), "ylim": _limits(points[:, 1])}
    with _sheet(panels, path, size=(2.3, 2.3), y_label="compatibility score") as sheet:
        for axes, groups in zip(sheet.axes, panels.values(), strict=True):
            for label in [label for label in _POINTS if label in groups]:
                axes.scatter(*groups[label].T, label=label, **_POINTS[label])
            axes.set(xlabel="topical score", **limits)
        sheet.legend(list(reversed(_POINTS)), handle=1.0)
        sheet.square()


def draw_heatmaps(grids: Sequence[Grid], path: Path, *, label: str) -> None:
    """Grids side by side, one scale for all, as PNG; `label` says what a cell holds.

    The first row is the lowest, as on an axis; a cell that is nan shows a dash.
    """
    if not grids:
        raise InvalidValue("a figure needs something to draw, got no grid")
    every = np.concatenate([np.ravel(grid.values) for grid in grids])
    wide = [max(len(grid.xs), 3) for grid in grids]
    size = (1.4 + 0.44 * sum(wide), 0.9 + 0.34 * max(3, *(len(grid.ys) for grid in grids)))
    with _drawn(path, size=size, ncols=len(grids), width_ratios=wide) as (figure, axes):
        for number, (one, grid) in enumerate(zip(axes[0], grids, strict=True)):
            image = _draw_grid(one, grid, every[np.isfinite(every)])
            before = grids[number - 1] if number else None
            if before and (before.y_label, [*before.ys]) == (grid.y_label, [*grid.ys]):
                one.set(ylabel="", yticklabels=[])
        bar = figure.colorbar(image, ax=list(axes[0]), label=label, pad=0.02, aspect=15)
        bar.outline.set_visible(False)


def draw_separation(sets: Mapping[str, Separation], path: Path) -> None:
    """How far apart the two documents of a query are, trained and base, a panel a data set."""
    margins = [np.asarray(m) for one in sets.values() for m in (one.trained, one.base)]
    edges = _edges(np.concatenate([np.zeros(1), *margins]))
    with _sheet(sets, path, size=(2.5, 2.2), y_label="queries, %") as sheet:
        highest = 0.0
        for axes, one in zip(sheet.axes, sets.values(), strict=True):
            axes.axvline(0, ymax=1 / _HEADROOM, color="0.35", linewidth=0.7, zorder=1)
            highest = max(highest, _draw_steps(axes, one, edges))
            axes.set(xlabel="margin of compatibility", xlim=(edges[0], edges[-1]))
            axes.legend(frameon=False, loc="upper left", borderaxespad=0.1, fontsize=7)
        first = sheet.axes[0]  # all panels share its y axis
        first.set_ylim(0, _HEADROOM * highest or 1)
        first.set_yticks([tick for tick in first.get_yticks() if tick <= max(1, highest)])


def draw_tradeoff(points: Mapping[str, tuple[float, float]], path: Path, *, y_label: str) -> None:
    """Named systems by what a query costs, in milliseconds, and a value, as PNG."""
    if slow := [name for name, (cost, _) in points.items() if not cost > 0]:
        raise InvalidValue(f"{slow[0]!r} needs milliseconds above 0, got {points[slow[0]][0]}")
    with _sheet([""] if points else [], path, size=(3.4, 2.4), y_label=y_label) as sheet:
        (axes,) = sheet.axes
        for number, (cost, value) in enumerate(points.values()):
            look = style(number) | {"linestyle": "none", "markersize": 6}
            axes.plot([cost], [value], zorder=3, **look)
        axes.set(xscale="log", xlabel="milliseconds a query")
        axes.margins(0.16)
        _tick_plainly(axes.xaxis)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
        place_labels(axes, points)


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Panels of one figure."""

    figure: Any
    axes: Sequence[Any]  # one a panel, row by row

    def legend(self, names: Sequence[str], *, handle: float = 2.6) -> None:
        """One legend below all panels, for which the figure grows; each name once, in order.

        `handle` is the room for a line or mark, in letters.
        """
        drawn = [axes.get_legend_handles_labels() for axes in self.axes]
        known = {
            label: mark
            for marks, labels in drawn
            for mark, label in zip(marks, labels, strict=True)
        }
        shown = [name for name in names if name in known]
        if not shown:
            return
        widest = 0.32 + 0.11 * handle + 0.06 * max(map(len, shown))  # inches
        columns = min(len(shown), max(1, int((0.2 + self.figure.get_figwidth()) / widest)))
        rows = -(-len(shown) // columns)
        self.figure.set_figheight(self.figure.get_figheight() + 0.1 + 0.17 * rows)
        place = {"loc": "outside lower center", "frameon": False, "handlelength": handle}
        self.figure.legend([known[name] for name in shown], shown, ncols=columns, **place)

    def square(self) -> None:
        """Make the finished panels as high as they are wide, by the height of the figure."""
        rows = self.axes[0].get_gridspec().nrows
        for _ in range(2):  # the first time moves ticks, and with them the widths
            self.figure.draw_without_rendering()
            area = self.axes[0].get_window_extent()
            missing = rows * (area.width - area.height) / self.figure.dpi
            self.figure.set_figheight(self.figure.get_figheight() + missing)


@contextmanager
def _sheet(
    titles: Collection[str], path: Path, *, size: tuple[float, float], y_label: str
) -> Iterator[_Sheet]:
    """A panel a title in rows that share their y axis; `size` is one panel's, in inches."""
    if not titles:
        raise InvalidValue("a figure needs something to draw, got no panel")
    rows = -(-len(titles) // _COLUMNS)
    columns = -(-len(titles) // rows)
    wider, higher = _ALONE if len(titles) == 1 else (1, 1)
    whole = (wider * size[0] * columns, higher * size[1] * rows)
    with _drawn(path, size=whole, nrows=rows, ncols=columns, sharey=True) as (figure, grid):
        axes = list(grid.flat)
        for one in axes[len(titles) :]:
            one.remove()
        for one, title in zip(axes, titles, strict=False):
            one.set_title(title)
            one.spines[["top", "right"]].set_visible(False)
        for one in grid[:, 0]:
            one.set_ylabel(y_label)
        yield _Sheet(figure, axes[: len(titles)])


@contextmanager
def _drawn(path: Path, *, size: tuple[float, float], **grid: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its grid of axes, saved at the end; `grid` is what `subplots` takes."""
    plt = pyplot()
    with plt.rc_context(_TEXT):
        figure, axes = plt.subplots(
            figsize=size, dpi=150, layout="constrained", squeeze=False, **grid
        )
        try:
            yield figure, axes
            figure.savefig(path, format="png")
        finally:
            plt.close(figure)


def _draw_grid(axes: Any, grid: Grid, known: NDArray[np.float64]) -> Any:
    """One grid in colours and digits that fit all known values."""
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    room = 0.0 if high > low else 0.5  # one value alone has no scale
    values = np.asarray(grid.values, dtype=np.float64)
    scale = {"cmap": "cividis", "vmin": low - room, "vmax": high + room}
    image = axes.imshow(values, aspect="auto", origin="lower", **scale)
    digits = _digits(known)
    for (row, column), value in np.ndenumerate(values):
        place = {"ha": "center", "va": "center", "fontsize": 7}
        if np.isfinite(value):
            dark = np.dot(image.cmap(image.norm(value))[:3], _LUMA) < _DARK
            text = f"{value:.{digits}f}".replace("-", "−")
            axes.text(column, row, text, color="w" if dark else "k", **place)
        else:
            axes.text(column, row, "–", color="k", **place)
    axes.set(title=grid.title, xlabel=grid.x_label, ylabel=grid.y_label)
    axes.set_xticks(range(len(grid.xs)), [f"{x:g}" for x in grid.xs])
    axes.set_yticks(range(len(grid.ys)), [f"{y:g}" for y in grid.ys])
    axes.set_xticks(np.arange(1, len(grid.xs)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(grid.ys)) - 0.5, minor=True)
    axes.grid(which="minor", color="w", linewidth=1)  # between cells
    axes.tick_params(which="both", length=0)
    axes.set_facecolor("0.95")  # of the cells that were not measured
    axes.spines[:].set_visible(False)
    return image


def _draw_steps(axes: Any, one: Separation, edges: NDArray[np.float64]) -> float:
    """Both histograms, in per cent of the queries; returns the highest step."""
    highest = 0.0
    looks = (("trained", one.trained, "-"), ("base", one.base, "--"))
    for number, (name, margins, dash) in enumerate(looks):
        found = np.asarray(margins, dtype=np.float64)
        steps = 100 * np.histogram(found, edges)[0] / max(1, len(found))
        above = f"{100 * np.mean(found > 0):.0f}% above 0" if len(found) else "no query"
        look = {"color": _COLOURS[number], "linestyle": dash, "linewidth": 1.2}
        axes.stairs(steps, edges, label=f"{name}: {above}", **look)
        if number == 0:
            axes.stairs(steps, edges, fill=True, color="0.88", zorder=0)
        highest = max(highest, float(steps.max()))
    return highest


def _tick_plainly(axis: Any) -> None:
    """Ticks of a logarithmic axis as numbers, as many as fit its range."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    steps = (1,) if high > 500 * low else (1, 2, 5)
    locator = LogLocator(subs=steps) if high > 5 * low else MaxNLocator(5)
    axis.set_major_locator(locator)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _digits(values: NDArray[np.float64]) -> int:
    """Decimals that give the largest value three digits or so."""
    largest = float(np.abs(values).max(initial=0.0))
    return 3 if largest <= 1 else 2 if largest < 10 else 1 if largest <= 100 else 0


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """A little more than the values' range."""
    if not len(values):
        return 0.0, 1.0
    room = max(0.05 * float(np.ptp(values)), 0.01)
    return float(values.min()) - room, float(values.max()) + room


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bins of a round width over the values, with zero between two of them."""
    rough = max(float(np.ptp(values)), 0.01) / _BARS
    unit = 10 ** np.floor(np.log10(rough))
    width = unit * next(step for step in (1, 2, 2.5, 5, 10) if step * unit >= rough)
    first, last = np.floor(values.min() / width), np.ceil(values.max() / width)
    return np.asarray(width * np.arange(first - 1, last + 2))
