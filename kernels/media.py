"""Values that are no text of their own: bytes of pictures, sounds and documents, and the paths and addresses that name such files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uql.base.media_types import Unreadable, media_type, modality
from uql.base.schema import Field, Modality

if TYPE_CHECKING:
    from uql.sources.media import Media


def lasting(values: Sequence[Any], field: Field | None, loader: Media | None) -> list[float]:
    """(n,) seconds that each value of a column lasts which is sent as a sound or a video; 0 of others, and where nobody knows.

    Args:
        values: (n,) bytes, or names of files.
        loader: reads the files that values name.
    """
    kind = Modality.STRUCTURED if field is None else field.modality
    if loader is not None and (kind is Modality.VIDEO or (kind is Modality.AUDIO and loader.listen)):
        return loader.parts.seconds(values)
    return [0.0] * len(values)


def loaded(values: list[Any], field: Field | None, loader: Media | None) -> tuple[list[Any], dict[int, str]]:
    """The values of one column as a model is shown them, and why some cannot be shown, by position.

    Texts stay as they are; bytes of documents, and what an IMAGE, AUDIO or DOCUMENT column names, are read. Recordings are shown as
    their words, unless `loader.listen`.

    Args:
        values: (n,) texts, bytes, or names of files.
        field: of the column; None: it is not known, and holds no media.
        loader: reads the files that values name; None: such values cannot be shown.
    """
    kind = field.modality if field is not None else Modality.STRUCTURED
    is_media = kind in (Modality.IMAGE, Modality.AUDIO, Modality.VIDEO, Modality.DOCUMENT)
    if not is_media and {str, type(None)}.issuperset(map(type, values)):
        return values, {}
    values = [bytes(v) if isinstance(v, bytearray | memoryview) else v for v in values]
    documents = [
        i for i, v in enumerate(values) if isinstance(v, bytes) and modality(media_type(v)) is Modality.DOCUMENT
    ]
    if kind is Modality.DOCUMENT:
        documents = [i for i, v in enumerate(values) if v is not None]
    # the bytes of a video may be more than a request takes
    as_file = (str, bytes) if kind is Modality.VIDEO and loader is not None else str
    files = [i for i, v in enumerate(values) if is_media and isinstance(v, as_file) and kind is not Modality.DOCUMENT]
    missing: dict[int, str] = {}
    for i, value in enumerate(values):
        if (
            isinstance(value, bytes)
            and kind in (Modality.IMAGE, Modality.AUDIO, Modality.VIDEO)
            and modality(media_type(value)) is not kind
        ):
            missing[i], values[i] = f"the bytes are no {kind} of a known format", None
    hears = kind is Modality.AUDIO and loader is not None and not loader.listen
    if hears:
        files = [i for i, v in enumerate(values) if v is not None]
    for places, what in ((documents, Modality.DOCUMENT), (files, kind)):
        if not places:
            continue
        if loader is None:
            missing.update(dict.fromkeys(places, "files named in rows are not read here"))
            continue
        sources = [values[i] for i in places]
        read = loader.parts.transcripts(sources) if hears else loader.load(sources, what)
        for i, content in zip(places, read, strict=True):
            if isinstance(content, Unreadable):
                missing[i] = content.message
            values[i] = None if isinstance(content, Unreadable) else content
    return values, missing
