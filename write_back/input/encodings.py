"""How the bytes of a text file become text. No other module decodes a file. The first case decides:

    a byte-order mark  → its encoding
    --encoding NAME    → that encoding
    otherwise          → UTF-8

A file that is not in that encoding is refused, because the bytes alone do not show which letters
they are. Not here: reading the text (`files`)."""

import codecs

from write_back.input.rows import InputError

_UTF_8 = "utf-8"
#: UTF-32 first, since its little-endian mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: _UTF_8,
}
_MARK = "\ufeff"
_ADVICE = (
    "save it as .xlsx or as CSV UTF-8, or name its encoding, like --encoding windows-1252 "
    "(Western Europe), windows-1251 (Cyrillic) or mac-roman (old Macs)"
)


def decode_text(name: str, content: bytes, encoding: str | None = None) -> str:
    """The text of a file. Raises InputError when it is in another encoding."""
    marked = next((marked for mark, marked in _MARKS.items() if content.startswith(mark)), None)
    chosen = marked or codecs.lookup(encoding or _UTF_8).name
    if chosen == _UTF_8 and b"\0" in content:
        raise InputError(
            f"{name} is not text: give a CSV, TSV, Parquet or Excel (.xlsx) file; if it is UTF-16 "
            "without a byte-order mark, add --encoding utf-16-le or utf-16-be"
        )
    try:
        return content.decode(chosen).lstrip(_MARK)  # some programs write the mark twice
    except UnicodeError as error:
        number = content[: getattr(error, "start", 0)].count(b"\n") + 1
        raise InputError(
            f"{name} is not in the encoding {chosen} (line {number}): {_ADVICE}"
        ) from None
