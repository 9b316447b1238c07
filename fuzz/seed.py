#!/usr/bin/env python3
"""Turns the recorded conversation, and the commands in a file if one is named, into seeds for the fuzz targets.

fuzz/seed.py [commands.jsonl]: the file has one JSON record per line with a field `command`.
"""

import json
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parent
entries: list[bytes] = []
for line in (root.parent / "crates/wire/tests/recorded.txt").read_text().splitlines():
    if line[:1] in "<>" and line:
        entries.append(b"")
    elif line.startswith("    "):
        entries[-1] += bytes.fromhex(line)

for target in ("frames", "hello_and_messages", "guard"):
    (root / "corpus" / target).mkdir(parents=True, exist_ok=True)
for number, entry in enumerate(entries):
    (root / "corpus/frames" / f"recorded-{number:02}").write_bytes(entry)
    if entry[12:13] == b"{":
        (root / "corpus/hello_and_messages" / f"recorded-{number:02}").write_bytes(entry[12:])

commands = []
for name in ("allow", "ask", "block"):
    text = (root.parent / f"crates/guard/src/examples/{name}.txt").read_text()
    commands += [line.replace("⏎", "\n") for line in text.splitlines()]
if len(sys.argv) > 1:
    lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
    commands += [json.loads(line)["command"] for line in lines]
for number, command in enumerate(commands):
    (root / "corpus/guard" / f"command-{number:04}").write_bytes(command.encode())
