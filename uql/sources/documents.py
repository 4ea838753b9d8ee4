"""The text of documents (PDF, DOCX, HTML), read in a process of its own with limits: a document from data may be made to harm.

    python -m uql.sources.documents     reads documents from its input, each after its length in 8 bytes; one line of JSON for each

The readers are pypdf, python-docx and lxml (the extra `documents`).
"""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from uql.base.extras import need
from uql.base.media_types import DOCX, Unreadable, media_type
from uql.sources.confined import Reply, exchange, replies, serve

MOST_CHARS = 2_000_000  # of one document's text
SECONDS = 30.0  # of one document
AT_ONCE = 64  # documents in one process
COMMAND = ("-I", "-m", "uql.sources.documents")  # of Python
READERS = {"application/pdf": "pypdf", DOCX: "docx", "text/html": "lxml"}


def texts(documents: Sequence[bytes], seconds: float = math.inf) -> list[str | Unreadable]:
    """(n,) the text of each document. Raises ConfigError where the readers are not installed.

    A document that takes longer than `SECONDS`, or than is left of `seconds`, is given up; the others are read.
    """
    need("such documents", "documents", *sorted({READERS[m] for m in map(media_type, documents) if m in READERS}))
    answers = replies(documents, _process, "document", deadline=time.monotonic() + seconds, at_once=AT_ONCE)
    return [reply if isinstance(reply, Unreadable) else str(reply["text"]) for reply in answers]


def _process(part: Sequence[bytes], deadline: float) -> tuple[list[Reply], str]:
    """What one process read before it ended, and how it ended."""
    return exchange(COMMAND, part, SECONDS, deadline)


# ------------------------------------------------------------------------------------------------------ in the process
def read(data: bytes) -> str:
    """The text of one document. Raises ValueError on a kind that is not known; what its reader raises."""
    match media_type(data):
        case "application/pdf":
            return _pdf(data)
        case kind if kind == DOCX:
            import docx

            parts = docx.Document(io.BytesIO(data)).iter_inner_content()
            return "\n".join(line for part in parts for line in _docx_lines(part))
        case "text/html":
            return _html(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\x00"
    if "\x00" in text:
        raise ValueError("it is no PDF, DOCX, HTML or text in UTF-8")
    return text


def _pdf(data: bytes) -> str:
    """The text of its pages, and then what was filled into its form, a line "name: value" each."""
    import pypdf

    document = pypdf.PdfReader(io.BytesIO(data))
    if document.is_encrypted and not document.decrypt(""):
        raise ValueError("it is encrypted")
    values = ((name, field.get("/V")) for name, field in (document.get_fields() or {}).items())
    filled_in = [f"{name}: {str(value).removeprefix('/')}" for name, value in values if value]
    return "\n".join([*(page.extract_text() for page in document.pages), *filled_in])


def _docx_lines(part: Any) -> Iterator[str]:
    """The lines of a paragraph or a table, a row each."""
    if hasattr(part, "rows"):
        yield from ("\t".join(cell.text for cell in row.cells) for row in part.rows)
    else:
        yield part.text


def _html(data: bytes) -> str:
    from lxml import html

    parser = html.HTMLParser(no_network=True, huge_tree=False)
    tree: Any = html.document_fromstring(data, parser=parser)
    # its depth or size is beyond what is read: what follows is not in the tree
    for entry in parser.error_log.filter_from_fatals():
        raise ValueError(entry.message.partition(", ")[0])
    for part in tree.xpath("//script | //style | //noscript | //template"):
        part.drop_tree()
    for block in tree.xpath("//title | //br | //p | //div | //li | //tr | //h1 | //h2 | //h3 | //h4 | //td"):
        block.tail = "\n" + (block.tail or "")
    lines = (" ".join(line.split()) for line in str(tree.text_content()).splitlines())
    return "\n".join(line for line in lines if line)


def main() -> None:
    """Reads documents until the input ends."""
    serve(_reply, SECONDS * AT_ONCE)


def _reply(data: bytes) -> Reply:
    try:
        text = read(data).replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    except MemoryError:
        return {"error": "the document needs too much memory"}
    except _reading_errors() as error:
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        return {"error": f"the document cannot be read: {kind}{str(error)[:200]}"}
    return {"text": text[:MOST_CHARS]} if text.strip() else {"error": "the document holds no text"}


def _reading_errors() -> tuple[type[Exception], ...]:
    """What a broken document makes its reader raise: the readers' own errors, and those of code that trusted the document."""
    names = {
        "pypdf.errors": "PyPdfError",
        "docx.opc.exceptions": "OpcError",
        "lxml.etree": "LxmlError",
        "zipfile": "BadZipFile",
    }
    own = [getattr(sys.modules[module], name) for module, name in names.items() if module in sys.modules]
    return (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, *own)


if __name__ == "__main__":
    main()
