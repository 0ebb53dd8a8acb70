"""An image to draw on: rectangles, frames, lines, grids of cells, and text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Pixels = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]

FONT = ImageFont.load_default_imagefont()  # a bitmap: the same pixels whatever the version of FreeType
LETTER_WIDTH, LETTER_TOP = 6, 2  # pixels: width of every letter, rows above digits and capitals


class Canvas:
    """An image to draw on; x counts pixels from the left, y from the top."""

    def __init__(self, width: int, height: int, background: Colour) -> None:
        """Create an image of the background only."""
        self._background = background
        self._image = Image.new("RGB", (width, height), background)
        self._draw = ImageDraw.Draw(self._image)

    @property
    def pixels(self) -> Pixels:
        """A copy of the image, (height, width, 3) uint8: red, green and blue."""
        return np.array(self._image)

    def fill(self, x: int, y: int, width: int, height: int, colour: Colour) -> None:
        """Fill a rectangle, which may be empty."""
        if width > 0 and height > 0:
            self._draw.rectangle((x, y, x + width - 1, y + height - 1), colour)

    def frame(self, x: int, y: int, width: int, height: int, colour: Colour, thickness: int = 2) -> None:
        """Draw a frame around the outside of a rectangle."""
        t = thickness
        box = (x - t, y - t, x + width + t - 1, y + height + t - 1)
        self._draw.rectangle(box, outline=colour, width=t)

    def line(self, start: tuple[int, int], end: tuple[int, int], colour: Colour, thickness: int = 1) -> None:
        """Draw a line from (x, y) to (x, y)."""
        self._draw.line((start, end), colour, thickness)

    def grid(self, x: int, y: int, colours: Pixels, pitch: int, gap: int) -> None:
        """Draw square cells of `colours`, (rows, columns, 3), with gaps between."""
        rows, columns, _ = colours.shape
        cells = np.full((rows, pitch, columns, pitch, 3), self._background, np.uint8)
        cells[:, : pitch - gap, :, : pitch - gap] = colours[:, None, :, None]
        self._image.paste(Image.fromarray(cells.reshape(rows * pitch, columns * pitch, 3)), (x, y))

    def write(self, x: int, y: int, text: str, colour: Colour, scale: int = 2) -> int:
        """Write a line of text, the top of its digits at y; return the x at which it ends.

        What goes over the right edge is cut off; `?` replaces characters that the font does not have.
        """
        text = " ".join(text.splitlines()).encode("latin-1", "replace").decode("latin-1")
        letters = Image.new("1", (LETTER_WIDTH * len(text), 11))
        ImageDraw.Draw(letters).text((0, 0), text, 1, FONT)
        if text:
            mask = letters.resize((letters.width * scale, letters.height * scale), Image.Resampling.NEAREST)
            self._image.paste(colour, (x, y - LETTER_TOP * scale), mask)
        return x + text_width(text, scale)


def text_width(text: str, scale: int = 2) -> int:
    """Return the width of `text` in pixels."""
    return len(text) * LETTER_WIDTH * scale
