"""Whatever encoding a file is in, what is sent are the letters that were meant, or nothing is."""

import io
from pathlib import Path

import pytest

from tests.write_back.input.test_files import reading, records
from tests.write_back.planner import Memory
from write_back.account_state import Known
from write_back.input.files import read_file
from write_back.input.rows import InputError, Rows
from write_back.item import Options, Plan
from write_back.kinds import TAGS, make_plan

#: Encodings that a file says of itself, by a mark or by being valid UTF-8.
SELF_EVIDENT = [
    ("utf-8", "José Müller"),
    ("utf-8", "Иван"),
    ("utf-8-sig", "Νίκος"),
    ("utf-16", "山田太郎"),
    ("utf-32", "김철수"),
    ("ascii", "Ann"),
]
#: Encodings that have to be named, with a text that they can hold.
TO_BE_NAMED = [
    ("utf-16-le", "Иван"),
    ("utf-16-be", "山田太郎"),
    ("utf-32-le", "José"),
    ("windows-1252", "José – “Müller”"),
    ("latin-1", "José Müller"),
    ("iso8859-15", "Œuvre 5 €"),
    ("mac-roman", "José Müller"),
    ("cp437", "José Müller"),
    ("cp850", "José Müller"),
    ("cp037", "José Müller"),
    ("windows-1250", "Łukasz Dvořák"),
    ("iso8859-2", "Łukasz Dvořák"),
    ("windows-1251", "Иван"),
    ("iso8859-5", "Иван"),
    ("koi8-r", "Иван"),
    ("mac-cyrillic", "Иван"),
    ("cp866", "Иван"),
    ("windows-1253", "Νίκος"),
    ("iso8859-7", "Νίκος"),
    ("windows-1254", "Şükrü"),
    ("windows-1255", "דוד"),
    ("windows-1256", "محمد"),
    ("windows-1257", "Jānis Ķīsis"),
    ("windows-1258", "Trần"),
    ("tis-620", "สมชาย"),
    ("shift-jis", "山田ﾀﾛｳ"),
    ("euc-jp", "山田太郎"),
    ("gb18030", "张伟"),
    ("gbk", "李"),
    ("big5", "張偉"),
    ("euc-kr", "김철수"),
]


def table(*tags: str) -> str:
    rows = [f"person{place}@example.com,{tag}" for place, tag in enumerate(tags)]
    return "\r\n".join(["email,tag", *rows, ""])


def encoded(text: str, encoding: str) -> bytes:
    if encoding == "windows-1258":  # has letters and accents apart
        text = text.replace("ầ", "â\u0300")
    return text.encode(encoding)


def read_bytes(content: bytes, encoding: str | None = None) -> Rows:
    return read_file(Path("-"), stdin=io.BytesIO(content), encoding=encoding)


def plan(known: Known, rows: Rows) -> Plan:
    return make_plan(TAGS, rows, known, Memory(), Options())  # type: ignore[arg-type]


def tags_sent(known: Known, rows: Rows) -> list[str]:
    return [item.params["tagname"] for item in plan(known, rows).items]


@pytest.mark.parametrize(("encoding", "name"), SELF_EVIDENT)
def test_a_file_that_says_its_encoding_is_sent_as_meant(known: Known, encoding: str, name: str) -> None:
    rows = read_bytes(table(name, "vip").encode(encoding))
    assert tags_sent(known, rows) == [name, "vip"]
    assert rows.warnings == ()


@pytest.mark.parametrize(("encoding", "name"), TO_BE_NAMED)
def test_any_other_file_is_refused_until_its_encoding_is_named(
    known: Known, encoding: str, name: str
) -> None:
    content = encoded(table(name, "vip"), encoding)
    with pytest.raises(InputError, match="--encoding") as refusal:
        read_bytes(content)
    assert "\n" not in str(refusal.value)
    assert tags_sent(known, read_bytes(content, encoding)) == [name, "vip"]


@pytest.mark.parametrize(("encoding", "name"), SELF_EVIDENT[2:5])
def test_a_mark_goes_before_an_encoding_that_is_named(known: Known, encoding: str, name: str) -> None:
    assert tags_sent(known, read_bytes(table(name).encode(encoding), "windows-1252")) == [name]


@pytest.mark.parametrize(
    "tag",
    [
        "ann+abc-x@example.com",
        "+41-79 555",
        "+144-555 01",
        "C+Java-Devs",
        "Plan+Basic",
        "ann+ANY@example.com",
        "+ALL",
        "~{x}",
        "a+b-c",
        "~~{}",
    ],
)
def test_signs_that_some_encodings_escape_letters_with_are_text(known: Known, tag: str) -> None:
    assert tags_sent(known, read_bytes(table(tag).encode())) == [tag]


def test_letters_that_are_written_in_ascii_are_not_sent_as_that(known: Known) -> None:
    content = table("山田太郎", "vip").encode("iso2022-jp")
    assert tags_sent(known, read_bytes(content)) == ["vip"]
    assert tags_sent(known, read_bytes(content, "iso2022-jp")) == ["山田太郎", "vip"]


def test_a_file_that_is_not_in_the_encoding_that_is_named_is_refused() -> None:
    for content, encoding in [("é".encode("cp1252"), "shift-jis"), (table("é").encode("utf-16")[:-1], None)]:
        with pytest.raises(InputError, match="is not in the encoding"):
            read_bytes(content, encoding)


def test_a_letter_that_an_encoding_lacks_is_not_sent(known: Known) -> None:
    """Windows-1252 has letters where Latin-1 has control characters; programs write � for what they lose."""
    rows = read_bytes("email,tag\na@b.co,“vip”\nc@d.co,caf\xe9".encode("cp1252"), "latin-1")
    assert tags_sent(known, rows) == ["café"]
    assert tags_sent(known, read_bytes("email,tag\na@b.co,caf\ufffd\n\ufffdc@d.co,vip".encode())) == []


def test_a_file_that_is_not_utf_8_is_refused_with_the_line() -> None:
    for content in (
        b"email,tag\na@b.co,vip\nc@d.co,Ren\xe9",
        b"\xef\xbb\xbfemail,tag\na@b.co,vip\nc@d.co,\xe9",
    ):
        with pytest.raises(InputError, match=r"is not in the encoding utf-8 \(line 3\): save it as"):
            read_bytes(content)


def test_letters_are_the_same_from_a_file_with_two_marks() -> None:
    assert records(reading("\ufeff\ufeffemail,tag\na@b.co,ë")) == [{"email": "a@b.co", "tag": "ë"}]
