"""Shapes and text are drawn where they are asked for."""

import string

import numpy as np
import pytest

from pull_env.rendering import canvas

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def drawn(draw, width=60, height=24):
    """Return which pixels of a black canvas are white, (height, width), after `draw(canvas)`."""
    board = canvas.Canvas(width, height, BLACK)
    draw(board)
    assert board.pixels.shape == (height, width, 3)
    assert set(np.unique(board.pixels)) <= {0, 255}
    return board.pixels.any(axis=2)


def written(text, scale=2, **size):
    return drawn(lambda board: board.write(0, 4, text, WHITE, scale), **size)


def test_a_rectangle_and_its_frame():
    inside = drawn(lambda board: board.fill(10, 5, 6, 4, WHITE))
    assert np.argwhere(inside).min(axis=0).tolist() == [5, 10]
    assert np.argwhere(inside).max(axis=0).tolist() == [8, 15]
    assert inside.sum() == 24
    frame = drawn(lambda board: board.frame(10, 5, 6, 4, WHITE, 2))
    assert frame.sum() == 10 * 8 - 24
    assert not (frame & inside).any()
    assert np.argwhere(frame).min(axis=0).tolist() == [3, 8]
    assert not drawn(lambda board: board.fill(10, 5, 6, 0, WHITE)).any()


def test_a_line_joins_its_ends():
    line = drawn(lambda board: board.line((3, 2), (40, 20), WHITE))
    assert line[2, 3]
    assert line[20, 40]
    assert line.any(axis=0)[3:41].all()
    assert line.sum() == 38
    assert drawn(lambda board: board.line((3, 2), (40, 20), WHITE, 2)).sum() > line.sum()


def test_cells_of_a_grid_and_the_gaps_between():
    cells = drawn(lambda board: board.grid(4, 3, np.full((2, 3, 3), 255, np.uint8), 5, 2))
    assert cells.sum() == 6 * 3 * 3
    assert cells[3:6, 4:7].all()
    assert cells[8:11, 14:17].all()
    assert not cells[6:8].any()


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_every_character_has_pixels_of_its_own(scale):
    glyphs = [written(c, scale, height=40).tobytes() for c in string.printable.strip()]
    assert len(set(glyphs)) == len(glyphs) == 94
    assert not written(" ", scale).any()
    small, large = (written("R8g", k, width=80, height=60) for k in (1, scale))
    assert large.sum() == scale**2 * small.sum()


def test_text_begins_and_ends_where_it_says():
    board = canvas.Canvas(200, 40, BLACK)
    assert board.write(20, 10, "H 12", WHITE, 3) == 20 + canvas.text_width("H 12", 3) == 20 + 4 * 6 * 3
    rows, columns = np.nonzero(board.pixels.any(axis=2))
    assert (rows.min(), rows.max()) == (10, 10 + 7 * 3 - 1)
    assert columns.min() >= 20
    assert columns.max() < 20 + 4 * 6 * 3


def test_unknown_characters_are_questions_and_long_text_is_cut_off():
    assert np.array_equal(written("a日"), written("a?"))
    assert not np.array_equal(written("aé"), written("a?"))
    assert np.array_equal(written("a\nb"), written("a b"))
    assert not np.array_equal(written("a b"), written("ab"))
    assert np.array_equal(written("abcdefgh"), written("abcde"))
    assert not written("").any()
