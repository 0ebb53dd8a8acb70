"""Records through which kernels find arrays, by their addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
T = TypeVar("T")


class LinkedRecord:
    """A record of numpy, and the arrays beside it whose addresses it holds.

    It keeps those arrays alive. Copies and unpickled objects write their own addresses, so that they go on
    where the original was. See the drawing in `pull_env/kernels/__init__.py`.

    Attributes:
        record: (1,) of a record type of the kernels.
        linked: Names of what it links to: fields of the record, and attributes of the object that are arrays
            or linked records.
    """

    record: Array
    linked: ClassVar[tuple[str, ...]]

    @property
    def address(self) -> int:
        """The address of the record, by which kernels know all of it."""
        return int(self.record.ctypes.data)

    def link(self) -> None:
        """Write all addresses into the record; call it when an array was replaced."""
        self._write_addresses(self.linked)

    def _write_addresses(self, names: Sequence[str]) -> None:
        record = self.record[0]
        for name in names:
            value = getattr(self, name)
            record[name] = value.ctypes.data if isinstance(value, np.ndarray) else value.address

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Take over the copied or unpickled arrays, which have addresses of their own."""
        self.__dict__.update(attributes)
        self.link()


def shallow_copy(original: T) -> T:
    """Return another object with the same attributes, without calling `__setstate__`."""
    other = object.__new__(type(original))
    other.__dict__.update(original.__dict__)
    return other
