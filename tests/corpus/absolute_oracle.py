#!/usr/bin/env python3
"""Finds all addresses in images whose base relocations were taken away.

    absolute_oracle.py GRAPH_DUMP

The base relocations of a real image are the whole truth: each relocated word that leads to
code is an address.  Discovery sees the image without them, at its own base and below 4 GiB,
and must pin each function that such a word leads into.  What may move then is told.
"""

import bisect
import pathlib
import struct
import subprocess
import sys
import tempfile

import corpus

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402
from harness import claim, require  # noqa: E402

IMAGES = ["7za.exe", "libstdc++-6.dll", "rollup.node", "sqlite-gcc", "sqlite-clang",
          "node-pty/prebuilds/win32-x64/winpty-agent.exe"]
BASES = [None, 0x400000]


def blocks_of(graph_dump, data):
    """Begin, end and pins of each block, ascending, and where code lies."""
    with tempfile.NamedTemporaryFile(suffix=".dll") as file:
        file.write(data)
        file.flush()
        text = subprocess.run([graph_dump, file.name], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    blocks, ranges = [], []
    for line in text.splitlines():
        words = line.split()
        if words[0] in ("block", "range"):
            begin, size = int(words[1], 16), int(words[2], 16)
            if words[0] == "block":
                blocks.append((begin, begin + size, words[3]))
            else:
                ranges.append((begin, begin + size))
    return sorted(blocks), ranges


def compare(graph_dump, name, base):
    original = corpus.path_of(name).read_bytes()
    header = int.from_bytes(original[60:64], "little")
    old_base, = struct.unpack_from("<Q", original, header + 24 + 24)
    blocks, ranges = blocks_of(graph_dump, harness.fix_base(original, base))
    begins = [begin for begin, _, _ in blocks]
    named = free = 0
    for rva in harness.relocations(original)[0]:
        target, = struct.unpack_from("<Q", original, harness.file_offset(original, rva))
        target -= old_base
        at = bisect.bisect_right(begins, target) - 1
        if (not any(begin <= target < end for begin, end in ranges)
                or at < 0 or target >= blocks[at][1]):
            continue
        named += 1
        require(blocks[at][2] != "-",
                f"the word at 0x{rva:x} leads to 0x{target:x}, which may move")
    size = sum(end - begin for begin, end, _ in blocks)
    free = sum(end - begin for begin, end, pins in blocks if pins == "-")
    require(named > 0, "no word leads to code")
    require(free > 0, "nothing may move")
    harness.note(f"{name}: {named} words lead to code, {free / size:.1%} of the bytes may move")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name in IMAGES:
        for base in BASES:
            where = f"base 0x{base:x}" if base else "its own base"
            with claim(f"{name} at {where}: all addresses are found"):
                compare(sys.argv[1], name, base)
    harness.finish()


if __name__ == "__main__":
    main()
