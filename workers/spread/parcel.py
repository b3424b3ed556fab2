"""A value in anonymous memory that every process of this machine can map by its descriptor.

It is pickled once (protocol 5, its arrays beside the pickle, aligned), mapped as often as wanted without a copy, and gone with the
last process that holds it: after a kill -9 nothing is left, not even a file. Sent over a cluster it arrives as a parcel again.
"""

import mmap
import os
import pickle
from typing import Any, Final, Self

ALIGNMENT: Final = 64
LENGTH_BYTES: Final = 8


class Parcel:
    """One value; `descriptor` is a memfd that this object owns."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def empty(cls) -> Self:
        """One to be filled, perhaps by another process."""
        return cls(os.memfd_create("parcel", os.MFD_CLOEXEC))

    @classmethod
    def of(cls, value: Any) -> Self:
        parcel = cls.empty()
        parcel.fill(value)
        return parcel

    @classmethod
    def of_bytes(cls, content: bytes | bytearray | memoryview) -> Self:
        """The parcel whose memory another machine sent."""
        parcel = cls.empty()
        _write(parcel.descriptor, content, 0)
        return parcel

    def fill(self, value: Any) -> None:
        """Put `value` in; once."""
        buffers: list[pickle.PickleBuffer] = []
        stream = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        views = [buffer.raw() for buffer in buffers]
        head = pickle.dumps((stream, [view.nbytes for view in views]))
        at = _write(self.descriptor, len(head).to_bytes(LENGTH_BYTES, "little") + head, 0)
        for view in views:
            at = _write(self.descriptor, view, _aligned(at))

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def open(self) -> Any:
        """The value. Its arrays lie in the mapping itself; writing to them changes a private copy of the page, nobody else's."""
        memory = memoryview(mmap.mmap(self.descriptor, self.size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
        at = LENGTH_BYTES + int.from_bytes(memory[:LENGTH_BYTES], "little")
        stream, sizes = pickle.loads(memory[LENGTH_BYTES:at])  # noqa: S301 - written by a process of ours
        buffers = []
        for size in sizes:
            at = _aligned(at)
            buffers.append(memory[at : at + size])
            at += size
        return pickle.loads(stream, buffers=buffers)  # noqa: S301

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        content = mmap.mmap(self.descriptor, self.size, mmap.MAP_PRIVATE, mmap.PROT_READ)
        return (Parcel.of_bytes, (pickle.PickleBuffer(content),))

    def __sizeof__(self) -> int:
        return self.size


def _aligned(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT


def _write(descriptor: int, content: bytes | bytearray | memoryview, at: int) -> int:
    """Write all of `content` at `at`; returns where it ends."""
    view = memoryview(content).cast("B")
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written
    return at
