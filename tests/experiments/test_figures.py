"""Every figure is an image that shows its data, in grey as in colour."""

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("matplotlib", reason="needs matplotlib: the extra bench")

from PIL import Image

from coder_ir.errors import InvalidValue
from coder_ir.experiments.figures import (
    Grid,
    Separation,
    draw_heatmaps,
    draw_scatter,
    draw_separation,
    draw_survival,
    draw_survival_panels,
    draw_tradeoff,
    pyplot,
    style,
)

Draw = Callable[[Any, Path], None]
NAN = float("nan")
CURVES = {"topical": [0.6, 0.4, 0.3], "CoDeR-Seq": [0.9, 0.85, 0.8]}


def cloud(x: float, y: float, *, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal((x, y), 0.05, size=(40, 2))


def margins(mean: float, *, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(mean, 0.1, size=200)


def heatmaps(grids: Any, path: Path) -> None:
    draw_heatmaps(grids, path, label="nDCG@10")


def tradeoff(points: Any, path: Path) -> None:
    draw_tradeoff(points, path, y_label="accuracy")


GROUPS = {
    "satisfying": cloud(0.7, 0.6),
    "violating": cloud(0.7, 0.1),
    "neutral": cloud(0.3, 0.3),
}
GRID = Grid("NevIR", "α", "τ", [0, 0.5, 1], [0.1, 0.3], [[0.1, 0.5, NAN], [0.7, 0.8, 0.9]])
OTHER = Grid("ExcluIR", "α", "τ", [0, 0.5, 1], [0.1, 0.3], [[0.1, 0.5, 0.2], [0.7, 0.8, 0.9]])
APART = Separation(margins(0.3), margins(0.0))
COSTS = {"BM25": (2.0, 0.41), "dense": (9.0, 0.46), "CoDeR": (9.5, 0.63), "rerank": (900.0, 0.6)}

# Name: how to draw, what, and what differs from it in one thing.
FIGURES: dict[str, tuple[Draw, Any, Any]] = {
    "one survival": (draw_survival, CURVES, CURVES | {"topical": [0.6, 0.4, 0.2]}),
    "survival": (
        draw_survival_panels,
        {"NevIR": CURVES, "ExcluIR": CURVES},
        {"NevIR": CURVES, "ExcluIR": {"topical": [0.6, 0.4, 0.3]}},
    ),
    "scatter": (
        draw_scatter,
        {"NevIR": GROUPS, "ExcluIR": GROUPS},
        {"NevIR": GROUPS, "ExcluIR": GROUPS | {"violating": cloud(0.7, 0.1, seed=2)}},
    ),
    "heatmaps": (heatmaps, [GRID, OTHER], [GRID, GRID]),
    "separation": (
        draw_separation,
        {"NevIR": APART, "ExcluIR": APART},
        {"NevIR": APART, "ExcluIR": Separation(margins(0.3), margins(0.05))},
    ),
    "tradeoff": (tradeoff, COSTS, COSTS | {"dense": (12.0, 0.46)}),
}
HOLLOW: dict[str, tuple[Draw, Any]] = {
    "a curve of one rank": (draw_survival, {"topical": [0.5]}),
    "no curve": (draw_survival, {}),
    "curves of many ranks": (draw_survival, {"topical": [1 / k for k in range(1, 101)]}),
    "five survival panels": (draw_survival_panels, {f"set {i}": CURVES for i in range(5)}),
    "panels with unlike runs": (draw_survival_panels, {"a": CURVES, "b": {"other": [0.5, 0.4]}}),
    "one scatter panel": (draw_scatter, {"NevIR": GROUPS}),
    "one point": (draw_scatter, {"NevIR": {"satisfying": np.array([[0.5, 0.5]])}}),
    "no point": (draw_scatter, {"NevIR": {"satisfying": np.zeros((0, 2))}}),
    "one cell": (heatmaps, [Grid("", "α", "τ", [0.5], [0.3], [[0.5]])]),
    "one nan cell": (heatmaps, [Grid("", "α", "τ", [0.5], [0.3], [[NAN]])]),
    "grids of unlike axes": (heatmaps, [GRID, Grid("", "n", "k", [1, 2], [3], [[-120, 14]])]),
    "one set": (draw_separation, {"NevIR": APART}),
    "one query": (draw_separation, {"NevIR": Separation([0.1], [-0.2])}),
    "no query": (
        draw_separation,
        {"NevIR": Separation([], [])},
    ),
    "equal margins": (draw_separation, {"NevIR": Separation([0, 0], [0, 0])}),
    "one system": (tradeoff, {"BM25": (2.0, 0.4)}),
    "systems of one place": (tradeoff, {"a": (2.0, 0.4), "b": (2.0, 0.4)}),
}


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What was drawn, kept open."""
    kept: list[Any] = []
    monkeypatch.setattr(pyplot(), "close", kept.append)
    yield kept
    monkeypatch.undo()
    pyplot().close("all")


def grey(path: Path) -> NDArray[np.uint8]:
    """The picture as a grey printer sees it, (height, width)."""
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)
        return np.asarray(image.convert("L"))


def check_picture(path: Path) -> None:
    pixels = grey(path)
    height, width = pixels.shape
    assert 250 <= height <= 1000
    assert 350 <= width <= 1700
    assert len(np.unique(pixels)) > 20
    edges = (pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:])
    assert min(edge.min() for edge in edges) > 250, "something is cut off at an edge"
    assert np.mean(pixels > 250) < 0.99, "nearly nothing is drawn"


@pytest.mark.parametrize(("draw", "data", "_"), FIGURES.values(), ids=FIGURES)
def test_a_figure_is_a_png_of_a_sane_size_with_nothing_cut_off(
    tmp_path: Path, draw: Draw, data: Any, _: Any
):
    draw(data, tmp_path / "figure.png")
    check_picture(tmp_path / "figure.png")


@pytest.mark.parametrize(("draw", "data"), HOLLOW.values(), ids=HOLLOW)
def test_a_figure_of_little_or_odd_data_is_drawn_too(tmp_path: Path, draw: Draw, data: Any):
    draw(data, tmp_path / "figure.png")
    check_picture(tmp_path / "figure.png")


@pytest.mark.parametrize(("draw", "data", "other"), FIGURES.values(), ids=FIGURES)
def test_other_data_gives_another_picture_and_the_same_data_the_same(
    tmp_path: Path, draw: Draw, data: Any, other: Any
):
    paths = [tmp_path / name for name in ("one.png", "again.png", "other.png")]
    for path, drawn in zip(paths, (data, data, other), strict=True):
        draw(drawn, path)
    one, again, differs = (path.read_bytes() for path in paths)
    assert one == again
    assert one != differs


def test_labels_of_a_scatter_differ_in_grey(tmp_path: Path):
    pictures = []
    for label in GROUPS:
        draw_scatter({"": {label: cloud(0.5, 0.5)}}, tmp_path / "figure.png")
        pixels = grey(tmp_path / "figure.png")
        pictures.append(pixels[: int(0.8 * len(pixels))])  # without the legend
    assert not any(np.array_equal(a, b) for a, b in combinations(pictures, 2))


def test_scatter_panels_are_square(tmp_path: Path, figures: list[Any]):
    for panels in ({"a": GROUPS}, {name: GROUPS for name in "abc"}, {n: GROUPS for n in "abcde"}):
        draw_scatter(panels, tmp_path / "figure.png")
    seen = [axes for figure in figures for axes in figure.axes]
    areas = [axes.get_window_extent() for axes in seen]
    assert len(areas) == 9
    assert [area.height / area.width for area in areas] == pytest.approx([1] * 9, abs=0.03)
    for drawn in (seen[1:4], seen[4:]):
        assert len({(axes.get_xlim(), axes.get_ylim()) for axes in drawn}) == 1


def test_a_run_keeps_its_look_in_every_panel(tmp_path: Path, figures: list[Any]):
    panels = {"a": CURVES, "b": {"CoDeR-Seq": [0.5], "new": [0.4]}}
    draw_survival_panels(panels, tmp_path / "figure.png")
    (figure,) = figures
    marks = [{line.get_label(): line.get_marker() for line in a.lines} for a in figure.axes]
    names = ["topical", "CoDeR-Seq", "new"]
    look = {name: style(number)["marker"] for number, name in enumerate(names)}
    assert marks == [{name: look[name] for name in curves} for curves in panels.values()]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names


def test_a_cell_shows_its_number_and_a_missing_one_a_dash(tmp_path: Path, figures: list[Any]):
    heatmaps([GRID], tmp_path / "figure.png")
    drawn = figures[0].axes[0].texts
    texts = {text.get_position(): (text.get_text(), text.get_color()) for text in drawn}
    assert texts == {
        (0, 0): ("0.100", "w"),
        (1, 0): ("0.500", "k"),
        (2, 0): ("–", "k"),
        (0, 1): ("0.700", "k"),
        (1, 1): ("0.800", "k"),
        (2, 1): ("0.900", "k"),
    }


def test_the_legend_of_a_separation_gives_the_share_above_zero(tmp_path: Path, figures: list[Any]):
    draw_separation({"": Separation([0.1, 0.2, 0.3, -0.1], [0.0, 0.1])}, tmp_path / "figure.png")
    legend = figures[0].axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "trained: 75% above 0",
        "base: 50% above 0",
    ]


@pytest.mark.parametrize(
    ("draw", "data", "message"),
    [
        (draw_survival_panels, {}, "needs something to draw, got no panel"),
        (draw_scatter, {}, "needs something to draw, got no panel"),
        (draw_scatter, {"a": {"good": cloud(0, 0)}}, "one of neutral, .*, got good"),
        (heatmaps, [], "needs something to draw, got no grid"),
        (draw_separation, {}, "needs something to draw, got no panel"),
        (tradeoff, {}, "needs something to draw, got no panel"),
        (tradeoff, {"BM25": (0.0, 0.4)}, "'BM25' needs milliseconds above 0, got 0.0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, draw: Draw, data: Any, message: str):
    with pytest.raises(InvalidValue, match=message):
        draw(data, tmp_path / "figure.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("values", [[[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 2.0], [3.0]], []], ids=str)
def test_a_grid_whose_values_do_not_fit_its_axes_is_refused(values: list[list[float]]):
    with pytest.raises(InvalidValue, match="'g' needs 2 rows of 2 values"):
        Grid("g", "x", "y", [1, 2], [1, 2], values)
