"""Names beside the points of a figure, none over another name or point where there is room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

_MARK = 4.5  # points from the middle of a mark to where something else may begin
_GAP = 1.0  # points around a name
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))  # best first
_DISTANCES = (6.0, 15.0, 26.0, 40.0)  # points; past the first, a thin line leads to the point
_LEAD = {"arrowstyle": "-", "linewidth": 0.5, "color": "0.5", "shrinkA": 1, "shrinkB": 4}


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, in points."""

    left: float
    bottom: float
    width: float
    height: float

    def shared(self, other: "Box") -> float:
        """Area that both cover."""
        wide = min(self.left + self.width, other.left + other.width) - max(self.left, other.left)
        low = max(self.bottom, other.bottom)
        high = min(self.bottom + self.height, other.bottom + other.height) - low
        return max(0.0, wide) * max(0.0, high)

    def outside(self, frame: "Box") -> float:
        """Area that the frame does not cover."""
        return self.width * self.height - self.shared(frame)


@dataclass(frozen=True, slots=True)
class Name:
    """A text to stand beside a point; all in points."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name goes."""

    box: Box
    near: bool  # beside its point, so that no line is needed


def place_labels(axes: Any, points: Mapping[str, tuple[float, float]]) -> None:
    """Name each point of axes that are otherwise finished."""
    figure = axes.get_figure()
    figure.draw_without_rendering()  # settles the layout, and with it where the points are
    per_pixel = 72 / figure.dpi
    middles = [axes.transData.transform(point) * per_pixel for point in points.values()]
    names = [
        Name(float(x), float(y), *_size(axes, text))
        for text, (x, y) in zip(points, middles, strict=True)
    ]
    frame = Box(*(per_pixel * edge for edge in axes.get_window_extent().bounds))
    places = free_places(names, frame)
    for text, name, place in zip(points, names, places, strict=True):
        right = place.box.left + place.box.width / 2 - name.x
        up = place.box.bottom + place.box.height / 2 - name.y
        axes.annotate(
            text,
            points[text],
            xytext=(right, up),
            textcoords="offset points",
            ha="center",
            va="center",
            arrowprops=None if place.near else _LEAD,
        ).set_in_layout(False)


def _size(axes: Any, text: str) -> tuple[float, float]:
    """Width and height of a text with the gap around it, in points."""
    drawn = axes.text(0, 0, text, transform=axes.transAxes)
    extent = drawn.get_window_extent()
    drawn.remove()
    per_pixel = 72 / axes.get_figure().dpi
    return extent.width * per_pixel + 2 * _GAP, extent.height * per_pixel + 2 * _GAP


def free_places(names: Sequence[Name], frame: Box) -> list[Place]:
    """Where each name goes, in turn: the nearest free place, else the one that covers least."""
    taken = [Box(name.x - _MARK, name.y - _MARK, 2 * _MARK, 2 * _MARK) for name in names]
    places = []
    for name in names:
        tries = [_place(name, distance, side) for distance, side in product(_DISTANCES, _SIDES)]
        costs = [_covered(place.box, taken, frame) for place in tries]
        best = tries[costs.index(min(costs))]  # of equals the first, which is the nearest
        taken.append(best.box)
        places.append(best)
    return places


def _covered(box: Box, taken: Sequence[Box], frame: Box) -> float:
    """What a place would hide; to stand outside the frame is worst."""
    return round(sum(box.shared(other) for other in taken) + 10 * box.outside(frame), 6)


def _place(name: Name, distance: float, side: tuple[int, int]) -> Place:
    right, up = side
    reach = distance if 0 in side else 0.7 * distance  # a diagonal is no farther away
    box = Box(
        name.x + right * reach - (1 - right) / 2 * name.width,
        name.y + up * reach - (1 - up) / 2 * name.height,
        name.width,
        name.height,
    )
    return Place(box, near=distance == _DISTANCES[0])
