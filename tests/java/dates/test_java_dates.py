"""Patterns of SimpleDateFormat, by what Java 17 writes and reads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.java.dates.civil import civil, day_of
from headgate.java.dates.format import DateFormat

MOMENTS = (0, 1700000000123, -1, -62135596800000, -12219292800001, 253402300800000, 1735516800000, 951782400000)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("G", ("AD",) * 8),
        ("y", ("1970", "2023", "1969", "1", "1582", "10000", "2024", "2000")),
        ("yy", ("70", "23", "69", "01", "82", "00", "24", "00")),
        ("yyyyy", ("01970", "02023", "01969", "00001", "01582", "10000", "02024", "02000")),
        ("YYYY", ("1970", "2023", "1970", "0001", "1582", "10000", "2025", "2000")),
        ("M", ("1", "11", "12", "1", "10", "1", "12", "2")),
        ("MMM", ("Jan", "Nov", "Dec", "Jan", "Oct", "Jan", "Dec", "Feb")),
        ("LLLL", ("January", "November", "December", "January", "October", "January", "December", "February")),
        ("ww", ("01", "46", "01", "02", "40", "01", "01", "10")),
        ("W", ("1", "3", "5", "2", "1", "1", "5", "5")),
        ("DDD", ("001", "318", "365", "003", "277", "001", "365", "060")),
        ("dd", ("01", "14", "31", "03", "04", "01", "30", "29")),
        ("F", ("1", "2", "5", "1", "1", "1", "5", "5")),
        ("E", ("Thu", "Tue", "Wed", "Mon", "Thu", "Sat", "Mon", "Tue")),
        ("EEEE", ("Thursday", "Tuesday", "Wednesday", "Monday", "Thursday", "Saturday", "Monday", "Tuesday")),
        ("u", ("4", "2", "3", "1", "4", "6", "1", "2")),
        ("a", ("AM", "PM", "PM", "AM", "PM", "AM", "AM", "AM")),
        ("H", ("0", "22", "23", "0", "23", "0", "0", "0")),
        ("kk", ("24", "22", "23", "24", "23", "24", "24", "24")),
        ("K", ("0", "10", "11", "0", "11", "0", "0", "0")),
        ("hh", ("12", "10", "11", "12", "11", "12", "12", "12")),
        ("m:s", ("0:0", "13:20", "59:59", "0:0", "59:59", "0:0", "0:0", "0:0")),
        ("S", ("0", "123", "999", "0", "999", "0", "0", "0")),
        ("SSSSSS", ("000000", "000123", "000999", "000000", "000999", "000000", "000000", "000000")),
    ],
)
def test_letters(pattern: str, texts: tuple[str, ...]) -> None:
    assert tuple(map(DateFormat(pattern).format, MOMENTS)) == texts


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2023-11-14T22:13:20.123Z"),
        ("EEE MMM dd HH:mm:ss zzz yyyy", "Tue Nov 14 22:13:20 UTC 2023"),
        ("zzzz Z X XX", "Coordinated Universal Time +0000 Z Z"),
        ("h 'o''clock' a", "10 o'clock PM"),
        ("''", "'"),
        ("yyyy.MM\u00e9", "2023.11\u00e9"),
        ("", ""),
    ],
)
def test_whole_patterns(pattern: str, text: str) -> None:
    assert DateFormat(pattern).format(1700000000123) == text


def test_before_the_first_year() -> None:
    assert DateFormat("G yyyy-MM-dd YYYY").format(-69489644979575) == "BC 0234-12-21 -0233"


@pytest.mark.parametrize(
    ("pattern", "text", "ms"),
    [
        ("yyyy-MM-dd", "2020-1-2", 1577923200000),
        ("yyyy-MM-dd", "2020-13-40", 1612828800000),
        ("yyyy-MM-dd", "2020-01-02 trailing", 1577923200000),
        ("yyyy-MM-dd", " 2020-\t01-02", 1577923200000),
        ("yyyy-MM-dd", "2020-01-\u0663", 1578009600000),
        ("yyyyMMdd", "20200102", 1577923200000),
        ("yyyyMMdd", "2020012", 1577923200000),
        ("yyyyMMdd", "202001023", 1579737600000),
        ("yyyyMMddHHmmssSSS", "20200102030405678", 1577934245678),
        ("HHmm", "930", 334800000),
        ("yy-MM-dd", "20-01-02", 1577923200000),
        ("yy-MM-dd", "99-01-02", 915235200000),
        ("yy-MM-dd", "2020-01-02", 1577923200000),
        ("yy-MM-dd", "5-01-02", -62009452800000),
        ("yyyy", "20", -61536240000000),
        ("y", "20", 1577836800000),
        ("MMM d, yyyy", "january 5, 2020", 1578182400000),
        ("MMMM d, yyyy", "Jan 5, 2020", 1578182400000),
        ("MMM", "Sept", 20995200000),
        ("HH:mm", "25:61", 93660000),
        ("hh:mm a", "12:30 AM", 1800000),
        ("hh:mm a", "12:30 PM", 45000000),
        ("hh:mm a", "01:30 pm", 48600000),
        ("HH:mm a", "13:30 AM", 48600000),
        ("HH hh a", "03 05 PM", 61200000),
        ("hh", "13", 46800000),
        ("kk", "24", 0),
        ("KK a", "00 PM", 43200000),
        ("a", "PM", 43200000),
        ("ss.SSS", "5.5", 5005),
        ("ss.SSS", "5.123456", 128456),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2020-01-02T03:04:05+01", 1577930645000),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2020-01-02T03:04:05Z", 1577934245000),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2020-01-02T03:04:05+01:00", 1577930645000),
        ("HH Z", "03 +0130", 5400000),
        ("HH Z", "03 GMT+1:30", 5400000),
        ("HH z", "03 gmt-05:00", 28800000),
        ("HH z", "03 GMT", 10800000),
        ("HH z", "03 utc", 10800000),
        ("HH z", "03 PST", 39600000),
        ("HH z", "03 Pacific Standard Time", 39600000),
        ("HH z", "03 CEST", 3600000),
        ("HH z", "03 +0100", 7200000),
        ("D yyyy", "60 2020", 1582934400000),
        ("dd D", "05 100", 8553600000),
        ("DDD-MM", "100-02", 8553600000),
        ("EEE, d MMM yyyy", "Fri, 2 Jan 2020", 1577923200000),
        ("u yyyy-MM-dd", "3 2020-01-02", 1577923200000),
        ("YYYY-'W'ww-u", "2020-W05-3", 1580256000000),
        ("YYYY-ww", "2020-05", 1579996800000),
        ("yyyy-ww", "2020-05", 1579996800000),
        ("F E MMM yyyy", "2 Tue Jan 2020", 1578960000000),
        ("W yyyy-MM E", "2 2020-01 Tue", 1578355200000),
        ("E", "Thu", 0),
        ("u", "3", 518400000),
        ("G yyyy", "BC 5", -62293622400000),
        ("yyyy-MM-dd", "-5-01-02", -62325072000000),
        ("yyyy-MM-dd", "0001-01-01", -62135769600000),
        ("yyyy-MM-dd", "1582-10-10", -12218860800000),
        ("yyyy-MM-dd", "99999-01-01", 3093496444800000),
        ("yyyy MM", "2020 -1", 1572566400000),
    ],
)
def test_what_is_read(pattern: str, text: str, ms: int) -> None:
    assert DateFormat(pattern).parse(text) == ms


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2020-01"),
        ("yyyy-MM-dd", ""),
        ("yyyy-MM-dd HH", "2020-01-02T03"),
        ("MM", "Jan"),
        ("MMM", "01"),
        ("", "x"),
        ("yyyyMM", "202"),
        ("ssXX", "05+01:00"),
        ("ssXXX", "05+0100"),
        ("HH Z", "03 +01:30"),
        ("HH z", "03 Z"),
        ("HH z", "03 Europe/Berlin"),
        ("a", "x"),
        ("HH", "x"),
    ],
)
def test_what_is_no_such_date(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"^Unparseable date: "):
        DateFormat(pattern).parse(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("b", "Illegal pattern character 'b'"),
        ("yyyy'", "Unterminated quote"),
        ("yyyy-MM-dd'T", "Unterminated quote"),
        ("XXXX", "invalid ISO 8601 format: length=4"),
    ],
)
def test_what_is_no_pattern(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DateFormat(pattern)


@given(
    st.integers(-62_000_000_000_000, 250_000_000_000_000),
    st.sampled_from(
        [
            "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
            "yyyyMMddHHmmssSSS",
            "EEE, d MMM yyyy hh:mm:ss.SSS a Z",
            "G yyyy DDD kk:mm:ss.SSS",
            "K mm ss SSS a F E MMMM yyyy",
            "W u M yyyy HH:mm:ss.S z",
        ]
    ),
)
@settings(max_examples=3 * settings().max_examples // 2)
def test_what_was_written_is_read_again(ms: int, pattern: str) -> None:
    dates = DateFormat(pattern)
    assert dates.parse(dates.format(ms)) == ms


@given(st.integers(-106_751_991_167, 106_751_991_167))
def test_days_and_civil_dates_are_the_same_thing(day: int) -> None:
    assert day_of(*civil(day)) == day
