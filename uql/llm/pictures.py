"""Pictures as a model takes them: of a format it knows, no larger than it looks at. Pillow is imported where one has to be changed."""

from __future__ import annotations

import io
import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from uql.base.extras import install

if TYPE_CHECKING:
    from PIL import Image

MOST_PIXELS = 1568  # of the longer side: beyond, vendors shrink a picture themselves, and charge for what they are sent
MOST_BYTES = 3_700_000  # five million as base64
MOST_DECODED = 80_000_000  # pixels: a larger picture is not unpacked
COPIES = {"WEBP": 2}  # how many times the memory of a PNG of its size a picture takes, of its canvases
LONGEST_SIDE = 65_535  # pixels: Pillow keeps an address of each line
SENT = ("image/png", "image/jpeg", "image/webp", "image/gif")
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")  # of Pillow's, the same: of the others EPS starts Ghostscript


def opened(data: bytes) -> Image.Image:
    """A picture that nothing was unpacked of yet.

    Raises: ValueError where the bytes are not a picture of one of FORMATS, or it has too many pixels; ImportError without Pillow.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # MOST_DECODED is below its limit
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"the picture cannot be read: {error}") from error
    size = picture.width * picture.height * COPIES.get(picture.format or "", 1)
    if size > MOST_DECODED or max(picture.size) > LONGEST_SIDE:
        raise ValueError(f"the picture has {picture.width} × {picture.height} pixels, which is too many")
    return picture


@lru_cache(maxsize=64)
def fitted(data: bytes, media_type: str) -> tuple[bytes, str]:
    """A picture and its media type, downsized where a side is longer than MOST_PIXELS or it has more than MOST_BYTES.

    Raises: ValueError where the bytes are not a picture, have too many pixels, or need Pillow, which is not installed.
    """
    if find_spec("PIL") is None:
        if media_type in SENT and len(data) <= MOST_BYTES:
            return data, media_type
        raise ValueError(f"the picture has to be made smaller by Pillow: {install('images')}")
    picture = opened(data)
    try:
        if max(picture.size) <= MOST_PIXELS and len(data) <= MOST_BYTES and media_type in SENT:
            picture.verify()
            return data, media_type
        picture.draft("RGB", (MOST_PIXELS, MOST_PIXELS))
        picture.thumbnail((MOST_PIXELS, MOST_PIXELS))
        has_alpha = "A" in picture.getbands() or "transparency" in picture.info
        image = picture.convert("RGBA" if has_alpha else "RGB")
        buffer = io.BytesIO()
        image.save(buffer, "PNG" if has_alpha else "JPEG", quality=90)
        if has_alpha and buffer.tell() > MOST_BYTES:
            buffer = io.BytesIO()
            image.convert("RGB").save(buffer, "JPEG", quality=85)
            has_alpha = False
    except (OSError, SyntaxError) as error:
        raise ValueError(f"the picture cannot be read: {error}") from error
    return buffer.getvalue(), "image/png" if has_alpha else "image/jpeg"
