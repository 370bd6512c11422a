"""Decodes XPlane files (`*.xplane.pb`), the protobuf that the profilers of JAX and TensorFlow write.

Only what a trace needs is decoded: planes, lines, events and their statistics, with names looked up in the
plane's tables. The messages are those of `tsl/profiler/protobuf/xplane.proto`; a field's number follows its
name in the comments below.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

type Names = dict[int, str]


@dataclass(frozen=True, slots=True)
class XEvent:
    """An event: its name, start and duration in nanoseconds, and the profiler's statistics."""

    name: str
    start_ns: float
    duration_ns: float
    stats: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class XLine:
    """A thread, a stream or a unit of a device, with its events."""

    name: str
    events: tuple[XEvent, ...]


@dataclass(frozen=True, slots=True)
class XPlane:
    """A device or the host, with its lines and statistics."""

    name: str
    lines: tuple[XLine, ...] = ()
    stats: dict[str, Any] = field(default_factory=dict)


def planes(content: bytes, name: str) -> tuple[XPlane, ...]:
    """The planes of an XPlane file's content.

    Raises a ValueError that calls the file `name` if it is another kind of file or is truncated.
    """
    try:
        return tuple(_plane(value) for number, value in _fields(memoryview(content)) if number == 1)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{name} is not a complete XPlane file: its {len(content):,} bytes are not the protobuf that a "
            "profiler writes; give the *.xplane.pb of a profile, or record it again"
        ) from error


def _plane(data: memoryview) -> XPlane:
    name, lines, stats = "", [], []
    events: dict[int, tuple[str, list[memoryview]]] = {}
    names: Names = {}
    for number, value in _fields(data):  # XPlane: name 2, lines 3, event_metadata 4, stat_metadata 5, stats 6
        if number == 2:
            name = _text(value)
        elif number == 3:
            lines.append(value)
        elif number == 4:
            key, metadata = _entry(value)
            events[key] = _event_metadata(metadata)
        elif number == 5:
            key, metadata = _entry(value)
            names[key] = next((_text(v) for n, v in _fields(metadata) if n == 2), "")
        elif number == 6:
            stats.append(value)
    return XPlane(name, tuple(_line(line, events, names) for line in lines), _stats(stats, names))


def _entry(data: memoryview) -> tuple[int, memoryview]:
    """The key and the value of one entry of a map."""
    found = dict(_fields(data))
    return found.get(1, 0), found.get(2, memoryview(b""))


def _event_metadata(data: memoryview) -> tuple[str, list[memoryview]]:
    """The name of an event, and the statistics that all events of this name share."""
    name, stats = "", []
    for number, value in _fields(data):  # XEventMetadata: name 2, stats 5
        if number == 2:
            name = _text(value)
        elif number == 5:
            stats.append(value)
    return name, stats


def _line(data: memoryview, metadata: dict[int, tuple[str, list[memoryview]]], names: Names) -> XLine:
    name, display_name, start_ns, events = "", "", 0, []
    for number, value in _fields(data):  # XLine: name 2, timestamp_ns 3, events 4, display_name 11
        if number == 2:
            name = _text(value)
        elif number == 3:
            start_ns = _signed(value)
        elif number == 4:
            events.append(value)
        elif number == 11:
            display_name = _text(value)
    return XLine(display_name or name, tuple(_event(event, start_ns, metadata, names) for event in events))


def _event(
    data: memoryview, line_ns: int, metadata: dict[int, tuple[str, list[memoryview]]], names: Names
) -> XEvent:
    kind = offset_ps = duration_ps = 0
    stats = []
    for number, value in _fields(data):  # XEvent: metadata_id 1, offset_ps 2, duration_ps 3, stats 4
        if number == 1:
            kind = value
        elif number == 2:
            offset_ps = _signed(value)
        elif number == 3:
            duration_ps = _signed(value)
        elif number == 4:
            stats.append(value)
    name, shared = metadata.get(kind, ("", []))
    return XEvent(name, line_ns + offset_ps / 1000, duration_ps / 1000, _stats([*shared, *stats], names))


def _stats(messages: list[memoryview], names: Names) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for message in messages:
        name, value = "", None
        # XStat: metadata_id 1, double 2, uint64 3, int64 4, str 5, bytes 6, ref 7 (a name of the plane)
        for number, raw in _fields(message):
            match number:
                case 1:
                    name = names.get(raw, "")
                case 2:
                    (value,) = struct.unpack("<d", raw)
                case 3:
                    value = raw
                case 4:
                    value = _signed(raw)
                case 5:
                    value = _text(raw)
                case 6:
                    value = bytes(raw)
                case 7:
                    value = names.get(raw, "")
        found[name] = value
    return found


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message in order: (number, int), or (number, bytes) for a length-delimited field."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        match key & 7:  # the wire type
            case 0:
                value, at = _varint(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                size, at = _varint(data, at)
                value, at = data[at : at + size], at + size
            case 5:
                value, at = data[at : at + 4], at + 4
            case _:
                raise IndexError("a wire type that protobuf does not have")
        if at > end:
            raise IndexError("the message ends before its field")
        yield key >> 3, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The integer at a position, seven bits per byte with the lowest first, and the position after it."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def _signed(value: int) -> int:
    """An int64, which protobuf writes in two's complement."""
    return value - 2**64 if value >= 2**63 else value


def _text(data: memoryview) -> str:
    return bytes(data).decode()
