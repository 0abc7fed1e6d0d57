#!/usr/bin/env python3
"""A PDB of more than 200 MB for a small image: how much memory and time it takes to read.

usage: big_pdb.py APPULSE
       big_pdb.py --write FILE

The PDB is SQLite's, written anew with blocks of 512 bytes, so that its directory needs some
twenty blocks that list the directory's blocks, and with streams of its module symbols over
and over again, in modules of their own.  `appulse doctor` must name as many functions with it
as with the true one, and take less than a quarter of the PDB's size in memory.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import corpus
from tap import finish, result

BUILD = "sqlite-clang-codeview"
BLOCK = 512
BYTES = 210 << 20
DBI, NO_STREAM = 3, 0xffffffff
MODULE_ROW = 64


def blocks_of(size, block):
    return -(-size // block)


def streams_of(data):
    """All streams, as bytes."""
    block, _, _, size = struct.unpack_from("<4I", data, 32)

    def gather(numbers, length):
        return b"".join(data[n * block:(n + 1) * block] for n in numbers)[:length]

    count = blocks_of(size, block)
    listed, = struct.unpack_from("<I", data, 52)
    directory = gather(struct.unpack_from(f"<{count}I", data, listed * block), size)
    number, = struct.unpack_from("<I", directory)
    sizes = [0 if s == NO_STREAM else s for s in struct.unpack_from(f"<{number}I", directory, 4)]
    at, streams = 4 + 4 * number, []
    for length in sizes:
        count = blocks_of(length, block)
        streams.append(gather(struct.unpack_from(f"<{count}I", directory, at), length))
        at += 4 * count
    return streams


def write(path, streams):
    """An MSF file of small blocks; blocks that Microsoft keeps for the map of free ones stay
    empty."""
    blocks = []

    def take(data):
        numbers = []
        for at in range(0, len(data), BLOCK):
            while len(blocks) % BLOCK in (1, 2) or not blocks:
                blocks.append(b"")
            numbers.append(len(blocks))
            blocks.append(data[at:at + BLOCK])
        return struct.pack(f"<{len(numbers)}I", *numbers)

    lists = [take(stream) for stream in streams]
    directory = struct.pack(f"<{1 + len(streams)}I", len(streams), *map(len, streams)) \
        + b"".join(lists)
    listing = take(directory)
    maps = take(listing)
    blocks[0] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0" + struct.pack(
        "<5I", BLOCK, 1, len(blocks), len(directory), 0) + maps
    with open(path, "wb") as file:
        for data in blocks:
            file.write(data.ljust(BLOCK, b"\0"))
    return len(maps) // 4


def grow(streams):
    """Modules of the largest one's symbols until there are enough bytes."""
    dbi = streams[DBI]
    size, = struct.unpack_from("<I", dbi, 24)
    rows, at = [], 64
    while at < 64 + size:
        stream, = struct.unpack_from("<H", dbi, at + 34)
        symbols, = struct.unpack_from("<I", dbi, at + 36)
        end = dbi.index(b"\0", dbi.index(b"\0", at + MODULE_ROW) + 1) + 1
        end += -(end - 64) % 4
        rows.append((symbols, stream, dbi[at:end]))
        at = end
    symbols, stream, row = max(rows)
    added = []
    while len(added) * symbols < BYTES:
        copy = bytearray(row)
        struct.pack_into("<H", copy, 34, len(streams))
        struct.pack_into("<3I", copy, 36, symbols, 0, 0)
        added.append(bytes(copy))
        streams.append(streams[stream][:symbols])
    new = bytearray(dbi[:64 + size]) + b"".join(added) + dbi[64 + size:]
    struct.pack_into("<I", new, 24, size + sum(map(len, added)))
    streams[DBI] = bytes(new)


def doctor(appulse, image, pdb):
    """Functions with names, and the peak of memory in bytes."""
    process = subprocess.Popen([appulse, "doctor", image, "--pdb", pdb, "--json", "--quiet"],
                               stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss * 1024
    names = json.loads(text)["image"]["names"]
    return names["own"] + names["added"], names["contradictions"], peak


def write_big(path):
    streams = streams_of(corpus.path_of(f"{BUILD}/sqlite3.pdb").read_bytes())
    grow(streams)
    print(write(path, streams))


def main():
    if sys.argv[1] == "--write":
        write_big(sys.argv[2])
        return 0
    appulse, = sys.argv[1:]
    image, pdb = corpus.path_of(BUILD), corpus.path_of(f"{BUILD}/sqlite3.pdb")
    with tempfile.TemporaryDirectory() as folder:
        big = pathlib.Path(folder) / "big.pdb"
        # The kernel counts what this process has in memory as its children's too.
        process = subprocess.Popen([sys.executable, __file__, "--write", big],
                                   stdout=subprocess.PIPE, text=True)
        maps = int(process.communicate()[0])
        size = big.stat().st_size
        result("it is big", size > 200 << 20 and maps > 1, f"{size:,} bytes, {maps} lists")
        expected, found = doctor(appulse, image, pdb), doctor(appulse, image, big)
        result("names", found[0] and found[:2] == expected[:2],
               f"{found[0]} names, {expected[0]} expected")
        result("memory", found[2] < size / 4,
               f"{found[2]:,} bytes, {found[2] / size:.2f} of the file's")
    return finish()


if __name__ == "__main__":
    sys.exit(main())
