"""What bytes are, by their first ones."""

from __future__ import annotations

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
)


def media_type(data: bytes) -> str:
    """The media type of bytes by their magic number; "application/octet-stream" where none is known.

    >>> media_type(b"\\x89PNG\\r\\n\\x1a\\n....")
    'image/png'
    >>> media_type(b"RIFF....WEBP")
    'image/webp'
    """
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "application/octet-stream")
    for start, kind in _MAGIC:
        if data.startswith(start):
            return kind
    return "application/octet-stream"
