"""What bytes are, by their first ones: the media type that is sent with them, and the modality of a column of them."""

from __future__ import annotations

from dataclasses import dataclass

from uql.base.schema import Modality

UNKNOWN = "application/octet-stream"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
)
_KINDS = {"image": Modality.IMAGE, "audio": Modality.AUDIO, "application": Modality.DOCUMENT, "text": Modality.DOCUMENT}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a value that names a file, or is one, cannot be shown to a model."""

    message: str


def media_type(data: bytes) -> str:
    """The media type of bytes by their magic number; "application/octet-stream" where none is known.

    >>> media_type(b"\\x89PNG\\r\\n\\x1a\\n....")
    'image/png'
    >>> media_type(b"RIFF....WEBP"), media_type(b"  <!DOCTYPE html><p>x")
    ('image/webp', 'text/html')
    """
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], UNKNOWN)
    if data[:4] == b"PK\x03\x04" and b"word/" in data[:4096] + data[-65_536:]:
        return DOCX
    if data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return next((kind for start, kind in _MAGIC if data.startswith(start)), UNKNOWN)


def modality(media: str) -> Modality:
    """What a column of such values holds.

    >>> modality("image/png").value, modality("application/pdf").value, modality(UNKNOWN).value
    ('image', 'document', 'structured')
    """
    return Modality.STRUCTURED if media == UNKNOWN else _KINDS.get(media.partition("/")[0], Modality.STRUCTURED)
