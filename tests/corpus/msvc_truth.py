#!/usr/bin/env python3
"""What MSVC says of its own images, against what discovery finds without being told.

usage: msvc_truth.py GRAPH-DUMP

node-pty's x64 images come with their PDBs:

    procedures   every S_GPROC32 and S_LPROC32 begins a function; one that no call, no jump
                 out of the function table and no word in the data names begins at least an
                 instruction of one without a row (the compiler leaves many dead ones, one
                 behind the other)
    volatile     every address of the volatile metadata begins an instruction, and its ranges
                 do so at both ends
    guarded      every function of the guard tables begins a function
    states       no address at which __CxxFrameHandler4 changes its state lies inside an
                 instruction

PDBs are read by llvm-pdbutil, load configurations by llvm-readobj; what neither prints is
read here, without any code of ours.
"""

import bisect
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True

import corpus
from tap import finish, result

FOLDER = "node-pty/prebuilds/win32-x64"
IMAGES = {"conpty.node": "conpty.pdb", "pty.node": "pty.pdb", "winpty.dll": "winpty.pdb",
          "conpty_console_list.node": "conpty_console_list.pdb",
          "winpty-agent.exe": "winpty-agent.pdb"}
HANDLERS_OF_FH4 = ("__CxxFrameHandler4", "__GSHandlerCheck_EH4")
HAS_HANDLER, CHAINED = 3, 4
EXCEPTION_DIRECTORY, LOAD_CONFIG_DIRECTORY = 3, 10
VOLATILE_METADATA = 0x100   # in the load configuration


def say(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


class Image:
    """Bytes by RVA."""

    def __init__(self, path):
        self.path, self.data = path, path.read_bytes()
        header, = struct.unpack_from("<I", self.data, 60)
        count, = struct.unpack_from("<H", self.data, header + 6)
        size, = struct.unpack_from("<H", self.data, header + 20)
        self.optional = header + 24
        self.base, = struct.unpack_from("<Q", self.data, self.optional + 24)
        self.sections = [struct.unpack_from("<4I", self.data, self.optional + size + 40 * i + 8)
                         for i in range(count)]

    def directory(self, number):
        return struct.unpack_from("<2I", self.data, self.optional + 112 + 8 * number)

    def offset(self, rva):
        for virtual_size, begin, raw_size, raw in self.sections:
            if begin <= rva < begin + max(virtual_size, raw_size):
                return raw + rva - begin
        raise ValueError(f"0x{rva:x} is in no section")

    def read(self, form, rva):
        return struct.unpack_from(form, self.data, self.offset(rva))


# ---- what the compiler says -------------------------------------------------------------

def procedures(image, pdb):
    """RVA: name, of all procedures in all modules."""
    found = {}
    text = say("llvm-pdbutil", "dump", "--symbols", pdb)
    for name, segment, offset in re.findall(
            r"S_[GL]PROC32 \[size = \d+\] `(.*)`\n.*addr = (\d+):(\d+),", text):
        found[image.sections[int(segment) - 1][1] + int(offset)] = name
    return found


def volatile_places(image):
    """Instructions that access volatile memory, and the ends of what has none."""
    directory, _ = image.directory(LOAD_CONFIG_DIRECTORY)
    pointer, = image.read("<Q", directory + VOLATILE_METADATA)
    if not pointer:
        return [], []
    _, _, table, size, ranges, ranges_size = image.read("<6I", pointer - image.base)
    places = [place for i in range(size // 4) for place in image.read("<I", table + 4 * i)]
    spans = [image.read("<2I", ranges + 8 * i) for i in range(ranges_size // 8)]
    return places, [end for begin, size in spans for end in (begin, begin + size)]


def guarded(image):
    """Functions of the table of control flow guard's, and targets of longjmp."""
    text = say("llvm-readobj", "--coff-load-config", image.path)
    return [int(address, 16) - image.base for table in re.findall(
        r"^Guard(?:FidTable|LJmpTable) \[$(.*?)^\]$", text, re.MULTILINE | re.DOTALL)
        for address in re.findall(r"0x[0-9A-F]+", table)]


class Compressed:
    """The numbers of FuncInfo4: the low bits of the first byte tell how many follow."""

    def __init__(self, image, rva):
        self.data, self.at = image.data, image.offset(rva)

    def number(self):
        first = self.data[self.at]
        length = next((n for n in range(1, 5) if not first >> (n - 1) & 1), 5)
        raw = int.from_bytes(self.data[self.at:self.at + length], "little")
        self.at += length
        return raw >> length if length < 5 else raw >> 8


def states_of(image, begin, info):
    """Addresses of the map from instructions to states of one FuncInfo4."""
    flags, = image.read("<B", info)
    at = info + 1
    if flags & 4:   # has a number for basic block transformations
        reader = Compressed(image, at)
        before = reader.at
        reader.number()
        at += reader.at - before
    at += 4 * bin(flags & 0x18).count("1")   # unwind map, try blocks
    table, = image.read("<I", at)
    if flags & 2:   # in several segments: count, then their begins and tables
        reader = Compressed(image, table)
        count = reader.number()
        segments = [struct.unpack_from("<2I", image.data, reader.at + 8 * i)
                    for i in range(count)]
    else:
        segments = [(begin, table)]
    for place, table in segments:
        reader = Compressed(image, table)
        for _ in range(reader.number()):
            place += reader.number()
            reader.number()
            yield place


def states(image, names):
    """Of all functions whose handler is of that kind."""
    handlers = {rva for rva, name in names.items() if name in HANDLERS_OF_FH4}
    table, size = image.directory(EXCEPTION_DIRECTORY)
    for row in range(table, table + size, 12):
        begin, _, unwind = image.read("<3I", row)
        flags, _, count, _ = image.read("<4B", unwind)
        at = unwind + 4 + 2 * ((count + 1) & ~1)
        if not flags >> 3 & HAS_HANDLER or flags >> 3 & CHAINED:
            continue
        handler, info = image.read("<2I", at)
        if handler in handlers:
            yield from states_of(image, begin, info)


# ---- what refers to code, by objdump ----------------------------------------------------

class References:
    def __init__(self, image):
        self.image = image
        _, _, size, begin = image.sections[0]   # .text
        self.elsewhere = image.data[begin + size:]
        table, size = image.directory(EXCEPTION_DIRECTORY)
        self.rows = [image.read("<2I", row) for row in range(table, table + size, 12)]
        self.branches = set()
        for at, kind, target in re.findall(
                r"^ *([0-9a-f]+):\t[0-9a-f ]+\t(call|j\w+) +0x([0-9a-f]+)",
                say("x86_64-w64-mingw32-objdump", "-d", "--wide", "--insn-width=15",
                    image.path), re.MULTILINE):
            if kind == "call" or self.in_row(int(at, 16) - image.base):
                self.branches.add(int(target, 16) - image.base)

    def in_row(self, rva):
        at = bisect.bisect_right(self.rows, (rva, 1 << 32)) - 1
        return at >= 0 and self.rows[at][0] <= rva < self.rows[at][1]

    def lead_to(self, rva):
        """Perhaps: a word may be chance."""
        return (rva in self.branches or self.in_row(rva)
                or struct.pack("<I", rva) in self.elsewhere
                or struct.pack("<Q", self.image.base + rva) in self.elsewhere)


# ---- what discovery finds ---------------------------------------------------------------

class Discovered:
    def __init__(self, graph_dump, path):
        self.functions, self.starts, self.inside = set(), set(), set()
        for line in say(graph_dump, "--instructions", path).splitlines():
            kind, *words = line.split()
            rva = int(words[0], 16)
            if kind == "function" and words[2] != "bytes":
                self.functions.add(rva)
            elif kind == "instruction":
                self.starts.add(rva)
                self.inside |= set(range(rva + 1, rva + int(words[1], 16)))


def all_hold(name, claims, holds, at_least):
    """Each claim holds, and there are enough of them to mean something."""
    claims = set(claims)
    wrong = [f"0x{rva:x}" for rva in sorted(claims) if not holds(rva)]
    result(name, not wrong and len(claims) >= at_least,
           f"{len(claims)} claims, {len(wrong)} wrong: {wrong[:20]}")


def main():
    graph_dump, = sys.argv[1:]
    for name, pdb in IMAGES.items():
        image = Image(corpus.path_of(f"{FOLDER}/{name}"))
        names = procedures(image, corpus.path_of(f"{FOLDER}/{pdb}"))
        found = Discovered(graph_dump, image.path)
        places, edges = volatile_places(image)
        references = References(image)
        all_hold(f"{name}: procedures", names, lambda rva: rva in found.functions or (
            rva in found.starts and not references.lead_to(rva)), 400)
        all_hold(f"{name}: volatile accesses", places, found.starts.__contains__, 50)
        all_hold(f"{name}: volatile ranges", edges, lambda rva: rva not in found.inside, 10)
        all_hold(f"{name}: guarded functions", guarded(image), found.functions.__contains__, 50)
        all_hold(f"{name}: states", states(image, names), lambda rva: rva not in found.inside,
                 20)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
