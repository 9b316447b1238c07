#!/usr/bin/env python3
"""Turns the recorded conversation into seeds for the fuzz targets."""

import pathlib

root = pathlib.Path(__file__).resolve().parent
entries: list[bytes] = []
for line in (root.parent / "crates/wire/tests/recorded.txt").read_text().splitlines():
    if line[:1] in "<>" and line:
        entries.append(b"")
    elif line.startswith("    "):
        entries[-1] += bytes.fromhex(line)

for target in ("frames", "hello_and_messages"):
    (root / "corpus" / target).mkdir(parents=True, exist_ok=True)
for number, entry in enumerate(entries):
    (root / "corpus/frames" / f"recorded-{number:02}").write_bytes(entry)
    if entry[12:13] == b"{":
        (root / "corpus/hello_and_messages" / f"recorded-{number:02}").write_bytes(entry[12:])
