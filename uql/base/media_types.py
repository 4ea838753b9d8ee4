"""What bytes are, by their first ones: the media type that is sent with them, and the modality of a column of them."""

from __future__ import annotations

from dataclasses import dataclass

from uql.base.schema import Modality

UNKNOWN = "application/octet-stream"
NUMBER = r"[0-9]+(?:\.[0-9]+)?"
PART = f"(frame|page):({NUMBER})@(.+)"  # what names a frame by its second, or a page by its number, and the file
MOST_HEAD = 4_096  # bytes that say what a file is
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF", "application/pdf"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    # MPEG 1, 2 and 2.5, layer III, without and with checksums
    *((bytes((0xFF, version)), "audio/mpeg") for version in (0xFB, 0xFA, 0xF3, 0xF2, 0xE3, 0xE2)),
)
_MP4_BRANDS = (b"iso", b"mp4", b"avc1", b"M4V", b"MSNV", b"dash", b"3gp", b"f4v", b"mmp4")
_KINDS = {
    "image": Modality.IMAGE,
    "audio": Modality.AUDIO,
    "video": Modality.VIDEO,
    "application": Modality.DOCUMENT,
    "text": Modality.DOCUMENT,
}


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
    >>> media_type(b"\\0\\0\\0 ftypisom...."), media_type(b"\\x1aE\\xdf\\xa3....webm")
    ('video/mp4', 'video/webm')
    """
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], UNKNOWN)
    if data[4:8] == b"ftyp":
        if data[8:12] in (b"M4A ", b"M4B "):
            return "audio/mp4"
        quick = data[8:10] == b"qt"
        return "video/quicktime" if quick else "video/mp4" if data[8:].startswith(_MP4_BRANDS) else UNKNOWN
    if data[4:8] in (b"moov", b"mdat", b"wide") and data[:2] == b"\0\0":  # QuickTime before it said its name
        return "video/quicktime"
    if data[:4] == b"\x1aE\xdf\xa3":
        return "video/webm" if b"webm" in data[:64] else "video/x-matroska"
    if data[:4] == b"PK\x03\x04" and b"word/" in data[:4096] + data[-65_536:]:
        return DOCX
    if data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html")):
        return "text/html"
    by_magic = next((kind for start, kind in _MAGIC if data.startswith(start)), UNKNOWN)
    # a PDF may begin with other bytes: its readers look for its head in the first 1,024
    return "application/pdf" if by_magic == UNKNOWN and b"%PDF-1." in data[:1024] else by_magic


def modality(media: str) -> Modality:
    """What a column of such values holds.

    >>> modality("image/png").value, modality("application/pdf").value, modality(UNKNOWN).value
    ('image', 'document', 'structured')
    """
    return Modality.STRUCTURED if media == UNKNOWN else _KINDS.get(media.partition("/")[0], Modality.STRUCTURED)
