"""Names beside points, on boxes that can be worked out by hand."""

from itertools import combinations

import pytest

from coder_ir.experiments.labels import Box, Name, Place, free_places

FRAME = Box(0, 0, 200, 100)


@pytest.mark.parametrize(
    ("other", "area"),
    [
        (Box(0, 0, 10, 10), 100),
        (Box(5, 8, 10, 10), 10),
        (Box(2, 3, 4, 5), 20),
        (Box(10, 0, 10, 10), 0),
        (Box(20, 20, 1, 1), 0),
    ],
    ids=["same", "corner", "inside", "edge", "apart"],
)
def test_two_boxes_share_the_area_both_cover(other: Box, area: float):
    one = Box(0, 0, 10, 10)
    assert one.shared(other) == other.shared(one) == area


def test_a_box_stands_outside_with_what_the_frame_does_not_cover():
    assert Box(195, 50, 10, 4).outside(FRAME) == 20
    assert Box(50, 50, 10, 4).outside(FRAME) == 0


def test_a_name_alone_stands_right_of_its_point():
    assert free_places([Name(50, 50, 40, 10)], FRAME) == [Place(Box(56, 45, 40, 10), near=True)]


def test_a_name_that_would_leave_the_frame_stands_left():
    assert free_places([Name(180, 50, 40, 10)], FRAME) == [Place(Box(134, 45, 40, 10), near=True)]


def test_a_name_keeps_off_other_points():
    first, _ = free_places([Name(50, 50, 40, 10), Name(70, 50, 40, 10)], FRAME)
    assert first.box == Box(4, 45, 40, 10)


def test_names_of_crowded_points_cover_neither_each_other_nor_a_point():
    names = [Name(60 + 8 * i, 50 + i, 36, 10) for i in range(8)]
    places = free_places(names, FRAME)
    assert not any(a.box.shared(b.box) for a, b in combinations(places, 2))
    points = [Box(name.x - 4, name.y - 4, 8, 8) for name in names]
    assert not any(place.box.shared(point) for place in places for point in points)
    assert not any(place.box.outside(FRAME) for place in places)
    assert {place.near for place in places} == {True, False}


def test_where_nothing_is_free_every_name_still_has_a_place():
    assert len(free_places([Name(5, 5, 90, 90)] * 6, Box(0, 0, 100, 100))) == 6
