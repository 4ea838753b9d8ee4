"""The text of documents (PDF, DOCX, HTML), read in a process of its own with limits: a document from data may be made to harm.

    python -m uql.sources.documents     reads documents from its input, each after its length in 8 bytes; one line of JSON for each

The readers are pypdf, python-docx and lxml (the extra `documents`).
"""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any, BinaryIO

from uql.base.extras import need
from uql.base.media_types import DOCX, Unreadable, media_type

MOST_CHARS = 2_000_000  # of one document's text
MEMORY_BYTES = 2_000_000_000
SECONDS = 30.0  # of one document
AT_ONCE = 64  # documents in one process
COMMAND = ("-I", "-m", "uql.sources.documents")  # of Python
READERS = {"application/pdf": "pypdf", DOCX: "docx", "text/html": "lxml"}


def texts(documents: Sequence[bytes], seconds: float = math.inf) -> list[str | Unreadable]:
    """(n,) the text of each document. Raises ConfigError where the readers are not installed.

    A document that takes longer than `SECONDS`, or than is left of `seconds`, is given up; the others are read.
    """
    deadline = time.monotonic() + seconds
    found: list[str | Unreadable] = []
    while len(found) < len(documents):
        if time.monotonic() >= deadline:
            found += [Unreadable("the document is not read: no time is left")] * (len(documents) - len(found))
            break
        part = documents[len(found) : len(found) + AT_ONCE]
        need("such documents", "documents", *sorted({READERS.get(media_type(d), "lxml") for d in part}))
        read, ended = _process(part, deadline)
        found += read
        if len(read) < len(part):  # the process ended within a document: that one is lost, the others go on
            found.append(Unreadable(f"the document cannot be read: its reader {ended}"))
    return found


def _process(part: Sequence[bytes], deadline: float) -> tuple[list[str | Unreadable], str]:
    """What one process read before it ended, and how it ended."""
    read: list[str | Unreadable] = []
    lines: Queue[bytes] = Queue()
    command = [sys.executable, *COMMAND]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
    ) as process:
        threads = [Thread(target=_send, args=(process, part)), Thread(target=_receive, args=(process, lines))]
        for thread in threads:
            thread.start()
        ended = ""
        while len(read) < len(part):
            limit = min(SECONDS, max(0.0, deadline - time.monotonic()))
            try:
                line = lines.get(timeout=limit)
            except Empty:
                ended = f"took longer than {limit:.3g} s"
                break
            if not line.endswith(b"\n"):  # the end of its output
                break
            reply = json.loads(line)
            read.append(reply["text"] if "text" in reply else Unreadable(reply["error"]))
        if len(read) < len(part):
            process.kill()
        for thread in threads:
            thread.join()
    return read, ended or f"ended with {process.returncode}"


def _send(process: subprocess.Popen[bytes], part: Sequence[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # the process has ended
        for data in part:
            process.stdin.write(len(data).to_bytes(8, "big") + data)
    with suppress(OSError):
        process.stdin.close()


def _receive(process: subprocess.Popen[bytes], lines: Queue[bytes]) -> None:
    """The lines of its output, then what is left behind the last of them."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(b"")


# ------------------------------------------------------------------------------------------------------ in the process
def _limit() -> None:
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS * AT_ONCE), int(SECONDS * AT_ONCE)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _documents(source: BinaryIO) -> Iterator[bytes]:
    while head := source.read(8):
        yield source.read(int.from_bytes(head, "big"))


def read(data: bytes) -> str:
    """The text of one document. Raises ValueError on a kind that is not known; what its reader raises."""
    match media_type(data):
        case "application/pdf":
            import pypdf

            return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)
        case kind if kind == DOCX:
            import docx

            document = docx.Document(io.BytesIO(data))
            rows = ("\t".join(cell.text for cell in row.cells) for table in document.tables for row in table.rows)
            return "\n".join([*(p.text for p in document.paragraphs), *rows])
        case "text/html":
            return _html(data)
    text = data.decode("utf-8-sig")
    if "\x00" in text:
        raise ValueError("it is no PDF, DOCX, HTML or text")
    return text


def _html(data: bytes) -> str:
    from lxml import html

    tree: Any = html.document_fromstring(data, parser=html.HTMLParser(no_network=True, huge_tree=False))
    for part in tree.xpath("//script | //style | //noscript | //template"):
        part.drop_tree()
    for block in tree.xpath("//title | //br | //p | //div | //li | //tr | //h1 | //h2 | //h3 | //h4 | //td"):
        block.tail = "\n" + (block.tail or "")
    lines = (" ".join(line.split()) for line in str(tree.text_content()).splitlines())
    return "\n".join(line for line in lines if line)


def main() -> None:
    """Reads documents until the input ends."""
    _limit()
    for data in _documents(sys.stdin.buffer):
        sys.stdout.write(json.dumps(_reply(data)) + "\n")
        sys.stdout.flush()


def _reply(data: bytes) -> dict[str, str]:
    try:
        text = read(data).replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    except MemoryError:
        return {"error": "the document needs too much memory"}
    except _reading_errors() as error:
        return {"error": f"the document cannot be read: {type(error).__name__}: {str(error)[:200]}"}
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
