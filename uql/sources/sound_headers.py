"""How long a WAV or MP3 file lasts by its own header. FFmpeg takes the length of the file instead, so it does not see that one was cut."""

from __future__ import annotations

import struct
from typing import BinaryIO

MOST_CHUNKS = 64  # of a WAV, before its sound
UNSTATED = 0x7FFF_0000  # bytes: from here on, and at 0, the writer did not know the size, as in a pipe
MOST_TAGS = 8  # ID3 tags before the sound of an MP3
MOST_JUNK = 4_096  # bytes before its first frame
SAMPLE_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}  # by MPEG version
LAYER_3 = 1


def stated_seconds(file: BinaryIO) -> float:
    """The seconds that the header of a WAV or MP3 file states; 0 where it states none.

    >>> import io
    >>> form = struct.pack("<HHIIHH", 1, 1, 16_000, 32_000, 2, 16)
    >>> stated_seconds(io.BytesIO(b"RIFF\\0\\0\\0\\0WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", 64_000)))
    2.0
    """
    return _wav(file) if file.read(4) == b"RIFF" else _mp3(file)


def _wav(file: BinaryIO) -> float:
    """Source: Microsoft and IBM, *Multimedia Programming Interface and Data Specifications 1.0* (1991)."""
    file.seek(12)
    bytes_a_second = 0
    for _ in range(MOST_CHUNKS):
        head = file.read(8)
        if len(head) < 8:
            break
        name, size = struct.unpack("<4sI", head)
        if name == b"data":
            return size / bytes_a_second if bytes_a_second and size < UNSTATED else 0.0
        begin = file.tell()
        if name == b"fmt ":
            form = file.read(12)
            bytes_a_second = int.from_bytes(form[8:12], "little")
        file.seek(begin + size + size % 2)
    return 0.0


def _mp3(file: BinaryIO) -> float:
    """By the frames that its first frame counts, in a header of Xing (also named Info) or Fraunhofer (VBRI).

    Source: ISO/IEC 11172-3, 13818-3; https://www.codeproject.com/Articles/8295/MPEG-Audio-Frame-Header.
    """
    begin = 0
    for _ in range(MOST_TAGS):
        file.seek(begin)
        tag = file.read(10)
        if tag[:3] != b"ID3" or len(tag) < 10:
            break
        begin += 10 + sum((byte & 127) << shift for byte, shift in zip(tag[6:], (21, 14, 7, 0), strict=True))
    file.seek(begin)
    data = file.read(2 * MOST_JUNK)
    for at in range(min(MOST_JUNK, len(data) - 4)):
        rate, samples, side = _frame(data[at : at + 4])
        if rate:
            return _frames(data[at + 4 :], side) * samples / rate
    return 0.0


def _frame(head: bytes) -> tuple[int, int, int]:
    """Of a frame of layer III by its 4 bytes: samples a second, its samples, the bytes of its side information; zeros for other bytes."""
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bits, rate = head[2] >> 4, head[2] >> 2 & 3
    if head[0] != 0xFF or head[1] < 0xE0 or version == 1 or layer != LAYER_3 or bits in (0, 15) or rate == 3:
        return 0, 0, 0
    mono, first = head[3] >> 6 == 3, version == 3
    side = (17 if mono else 32) if first else (9 if mono else 17)
    return SAMPLE_RATES[version][rate], 1152 if first else 576, side


def _frames(data: bytes, side: int) -> int:
    """The frames that a first frame counts; 0 where it is one of sound.

    Args:
        data: what follows its 4 bytes.
        side: bytes of its side information.
    """
    xing = data[side : side + 12]
    if xing[:4] in (b"Xing", b"Info") and xing[7] & 1:
        return int.from_bytes(xing[8:12], "big")
    if data[32:36] == b"VBRI":
        return int.from_bytes(data[46:50], "big")
    return 0
