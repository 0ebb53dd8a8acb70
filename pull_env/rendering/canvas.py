"""A canvas of pixels in plain numpy: rectangles, lines, grids of cells, and a small font."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]

LETTERS = "0123456789.,:-+/abcdefghijklmnopqrstuvwxyz()=%_?"
HEIGHT, WIDTH = 9, 6  # of a letter in dots: two rows below the line, a column of space after it
SHEET = (  # sixteen letters a band
    " ###    #    ###  #####    #  #####   ##  #####  ###   ###                                      ",
    "#   #  ##   #   #    #    ##  #      #        # #   # #   #              ##           #       # ",
    "#  ##   #       #   #    # #  ####  #        #  #   # #   #              ##           #      #  ",
    "# # #   #      #     #  #  #      # ####    #    ###   ####                   ##### #####   #   ",
    "##  #   #     #       # #####     # #   #  #    #   #     #              ##           #    #    ",
    "#   #   #    #    #   #    #  #   # #   #  #    #   #    #    ##    ##   ##           #   #     ",
    " ###   ###  #####  ###     #   ###   ###   #     ###   ##     ##    ##                          ",
    "                                                                    #                           ",
    "                                                                   #                            ",
    "      #               #         ##        #       #      #  #      ##                           ",
    "      #               #        #  #       #                 #       #                           ",
    " ###  # ##   ###   ## #  ###   #     ## # # ##   ##     ##  #  #    #   ## #  # ##   ###  # ##  ",
    "    # ##  # #   # #  ## #   # ###   #  ## ##  #   #      #  # #     #   # # # ##  # #   # ##  # ",
    " #### #   # #     #   # #####  #    #   # #   #   #      #  ##      #   # # # #   # #   # #   # ",
    "#   # #   # #   # #   # #      #    #  ## #   #   #      #  # #     #   #   # #   # #   # ##  # ",
    " #### ####   ###   ####  ###   #     ## # #   #  ###     #  #  #   ###  #   # #   #  ###  # ##  ",
    "                                        #             #  #                                #     ",
    "                                     ###               ##                                 #     ",
    "                   #                                           #   #          ##           ###  ",
    "                   #                                          #     #         ##  #       #   # ",
    " ## # # ##   ###  ###   #   # #   # #   # #   # #   # #####  #       #  #####    #            # ",
    "#  ## ##  # #      #    #   # #   # #   #  # #  #   #    #   #       #          #            #  ",
    "#   # #      ###   #    #   # #   # # # #   #   #   #   #    #       #  #####  #            #   ",
    "#  ## #         #  #  # #  ##  # #  # # #  # #  #  ##  #      #     #         #  ##             ",
    " ## # #     ####    ##   ## #   #    # #  #   #  ## # #####    #   #             ##         #   ",
    "    #                                               #                               #####       ",
    "    #                                            ###                                            ",
)
DOTS = np.array([[dot == "#" for dot in line] for line in SHEET])
GLYPHS = DOTS.reshape(3, HEIGHT, 16, WIDTH).swapaxes(1, 2).reshape(len(LETTERS), HEIGHT, WIDTH)


class Canvas:
    """An image to draw on; x counts pixels from the left, y from the top.

    Attributes:
        pixels: (height, width, 3) uint8, red, green and blue.
    """

    def __init__(self, width: int, height: int, background: Colour) -> None:
        """Begin with nothing but the background."""
        self.pixels: Pixels = np.full((height, width, 3), background, np.uint8)

    def fill(self, x: int, y: int, width: int, height: int, colour: Colour) -> None:
        """Fill a rectangle."""
        self.pixels[y : y + height, x : x + width] = colour

    def ring(self, x: int, y: int, width: int, height: int, colour: Colour, thickness: int = 2) -> None:
        """Draw a frame around the outside of a rectangle."""
        left, top, t = x - thickness, y - thickness, thickness
        for at in (top, y + height):
            self.fill(left, at, width + 2 * t, t, colour)
        for at in (left, x + width):
            self.fill(at, top, t, height + 2 * t, colour)

    def line(self, start: tuple[int, int], end: tuple[int, int], colour: Colour, thickness: int = 1) -> None:
        """Draw a line from (x, y) to (x, y)."""
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1])) + 1
        x, y = (np.linspace(a, b, steps).round().astype(int) for a, b in zip(start, end, strict=True))
        for k in range(thickness):
            self.pixels[y, x + k] = colour

    def grid(self, x: int, y: int, colours: Pixels, pitch: int, gap: int) -> None:
        """Draw square cells of `colours`, (rows, columns, 3), `pitch` apart; `gap` of that stays free."""
        rows, columns, _ = colours.shape
        area = self.pixels[y : y + rows * pitch, x : x + columns * pitch]
        cells = area.reshape(rows, pitch, columns, pitch, 3)  # a view, as axes are only split
        cells[:, : pitch - gap, :, : pitch - gap] = colours[:, None, :, None]

    def write(self, x: int, y: int, text: str, colour: Colour, scale: int = 2) -> int:
        """Write `text` in small letters, its upper left corner at (x, y); return the x at which it ends.

        What goes over the right edge is cut off, and `?` stands for letters that the font does not have.
        """
        for letter in text.lower():
            if letter != " ":
                dots = GLYPHS[LETTERS.index(letter) if letter in LETTERS else -1]
                ink = dots.repeat(scale, axis=0).repeat(scale, axis=1)
                area = self.pixels[y : y + HEIGHT * scale, x : x + WIDTH * scale]
                area[ink[:, : area.shape[1]]] = colour
            x += WIDTH * scale
        return x


def text_width(text: str, scale: int = 2) -> int:
    """Return the width of `text` in pixels."""
    return len(text) * WIDTH * scale
