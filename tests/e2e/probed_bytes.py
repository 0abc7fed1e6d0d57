#!/usr/bin/env python3
"""Every byte of an instrumented image, against the original.

    probed_bytes.py        the corpus, the compiler's own DLLs and all fixtures

With a reader of PE files of its own, this shows for each image that

- each byte that changed belongs to a field that led to a function's start and now leads
  to that function's thunk, and the thunk's slot leads back to the function;
- no field was missed: every relocated word, export, far branch and lea that leads to a
  probed function in the original, as objdump sees them, leads to its thunk in the output.
  Without base relocations a word that may be a function's address stays, and then every
  lea and export has to stay as well: two pointers to a function are equal or not.

Headers are left out but for the entry, and so is the relocation table, which is read.

No program runs here.
"""

import pathlib
import re
import sqlite3
import struct
import subprocess

import harness
from harness import claim, require

OBJDUMP = "x86_64-w64-mingw32-objdump"
ADDED = (".apcode", ".apdata", ".apmeta")
UNIT_BYTES, STUB = 16, 6
EXPORT, RELOCATION, DEBUG = 0, 5, 6


class Image:
    def __init__(self, path):
        self.path = path
        self.data = path.read_bytes()
        pe, = struct.unpack_from("<I", self.data, 60)
        self.optional = pe + 24
        count, = struct.unpack_from("<H", self.data, pe + 6)
        optional_size, = struct.unpack_from("<H", self.data, pe + 20)
        self.base, = struct.unpack_from("<Q", self.data, self.optional + 24)
        self.entry, = struct.unpack_from("<I", self.data, self.optional + 16)
        self.sections = []
        for i in range(count):
            at = self.optional + optional_size + 40 * i
            name = self.data[at:at + 8].rstrip(b"\0").decode()
            size, rva, raw_size, raw = struct.unpack_from("<4I", self.data, at + 8)
            flags, = struct.unpack_from("<I", self.data, at + 36)
            self.sections.append((name, rva, size, raw, min(raw_size, size) if raw else 0,
                                  flags))

    def directory(self, index):
        return struct.unpack_from("<2I", self.data, self.optional + 112 + 8 * index)

    def section(self, name):
        return next(s for s in self.sections if s[0] == name)

    def offset(self, rva):
        for _, begin, _, raw, size, _ in self.sections:
            if begin <= rva < begin + size:
                return raw + rva - begin
        raise harness.Failure(f"{self.path.name}: no data at 0x{rva:x}")

    def holds(self, rva):
        return any(begin <= rva < begin + size for _, begin, _, _, size, _ in self.sections)

    def is_code(self, rva):
        return any(begin <= rva < begin + size and flags & 0x20
                   for _, begin, size, _, _, flags in self.sections)

    def read(self, form, rva):
        return struct.unpack_from("<" + form, self.data, self.offset(rva))[0]

    def pointed_at(self):
        """What words of 8 bytes in data lead to, relocated or not."""
        for name, _, size, raw, raw_size, flags in self.sections:
            # A section named "/123" holds DWARF.
            if flags & 0x20 or name.startswith("/"):
                continue
            for at in range(raw, raw + min(size, raw_size) // 8 * 8, 8):
                yield struct.unpack_from("<Q", self.data, at)[0] - self.base

    def relocated(self):
        """RVAs of all words under a base relocation."""
        at, size = self.directory(RELOCATION)
        end = at + size
        while at < end:
            page, block = self.read("I", at), self.read("I", at + 4)
            for row in range(at + 8, at + block, 2):
                word = self.read("H", row)
                if word >> 12 == 10:
                    yield page + (word & 0xfff)
            at += block

    def debug_data(self):
        """RVA of each debug entry's file offset, and the data there."""
        at, size = self.directory(DEBUG)
        for entry in range(at, at + size, 28):
            length, offset = self.read("I", entry + 16), self.read("I", entry + 24)
            yield entry + 24, self.data[offset:offset + length]

    def export_fields(self):
        at, size = self.directory(EXPORT)
        if not size:
            return
        count, words = self.read("I", at + 20), self.read("I", at + 28)
        for i in range(count):
            target = self.read("I", words + 4 * i)
            if target and not at <= target < at + size:
                yield words + 4 * i

    def branches(self):
        """RVAs of the 32-bit fields of calls, jumps and lea, with their targets."""
        text = subprocess.run([OBJDUMP, "-d", "--wide", "--insn-width=15", self.path],
                              check=True, text=True, stdout=subprocess.PIPE).stdout
        pattern = re.compile(
            r"^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t(?:(?:call|j\w+) +(?:0x)?([0-9a-f]+)\b|"
            r"lea .*\(%rip\).*# (?:0x)?([0-9a-f]+)\b)", re.MULTILINE)
        for found in pattern.finditer(text):
            length = len(found[2].split())
            if length >= 5:
                yield (int(found[1], 16) + length - 4 - self.base,
                       int(found[3] or found[4], 16) - self.base, bool(found[4]))


class Pair:
    def __init__(self, old, new, functions):
        self.old, self.new = Image(old), Image(new)
        self.functions = functions  # RVA: size
        self.thunks = {}            # RVA of the function: of its thunk
        self.read_probes()

    def read_probes(self):
        code, data = self.new.section(".apcode")[1], self.new.section(".apdata")[1]
        count = self.new.read("I", data + 12)
        slots, functions = (self.new.read("Q", data + at) - self.new.base
                            for at in (24, 32))
        relocated = set(self.new.relocated())
        for i in range(count):
            function = self.new.read("I", functions + 4 * i)
            thunk = code + UNIT_BYTES * i
            require(self.new.read("H", thunk) == 0x25ff and
                    thunk + 6 + self.new.read("i", thunk + 2) == slots + 8 * i,
                    f"thunk {i} does not lead to its slot")
            require(self.new.read("Q", slots + 8 * i) - self.new.base == thunk + STUB and
                    (slots + 8 * i in relocated) != harness.is_fixed(self.new.data),
                    f"slot {i} does not lead to its stub")
            self.thunks[function] = thunk

    def changed_fields(self):
        """RVAs of bytes that differ, but for the relocations and file offsets."""
        relocation, size = self.old.directory(RELOCATION)
        skip = {*range(relocation, relocation + size),
                *(field + i for field, _ in self.old.debug_data() for i in range(4))}
        for _, rva, _, raw, size, _ in self.old.sections:
            new_raw = self.new.offset(rva) if size else 0
            a, b = self.old.data[raw:raw + size], self.new.data[new_raw:new_raw + size]
            if a == b:
                continue
            for i in range(size):
                if a[i] != b[i] and rva + i not in skip:
                    yield rva + i

    def explains(self, field, relocated, rva):
        """Whether the field that begins at `field` and covers `rva` was led to a thunk."""
        both = self.old, self.new
        if field in relocated:
            old, new = (image.read("Q", field) - image.base for image in both)
            return self.thunks.get(old) == new
        if not self.old.holds(field) or not self.old.holds(field + 3) or rva > field + 3:
            return False
        if self.old.is_code(field):
            old, new = (field + 4 + image.read("i", field) for image in both)
        else:
            old, new = (image.read("I", field) for image in both)
        return self.thunks.get(old) == new

    def check_changes(self):
        relocated = set(self.old.relocated())
        open_questions = [f"0x{rva:x}" for rva in self.changed_fields()
                          if not any(self.explains(field, relocated, rva)
                                     for field in range(rva - 7, rva + 1))]
        require(not open_questions,
                f"{len(open_questions)} bytes changed for nothing: {open_questions[:20]}")
        require(list(self.old.debug_data()) == list(self.new.debug_data()), "debug data")
        require(self.new.entry == self.thunks.get(self.old.entry, self.old.entry) or
                (self.may_stay(self.old.entry) and self.new.entry == self.old.entry), "entry")

    def check_missed(self):
        missed = [f"word at 0x{rva:x}" for rva in self.old.relocated()
                  if self.missed(self.old.read("Q", rva) - self.old.base,
                                 self.new.read("Q", rva) - self.new.base)]
        missed += [f"export at 0x{rva:x}" for rva in self.old.export_fields()
                   if self.missed(self.old.read("I", rva), self.new.read("I", rva), True)]
        pointed_at = set(self.old.pointed_at()) if harness.is_fixed(self.old.data) else set()
        unequal = []
        begins = sorted(self.functions)
        for rva, target, is_lea in self.old.branches():
            if target not in self.thunks:
                continue
            # A loop to a function's own first byte stays inside.
            inside = target <= rva < target + self.functions[target] and not is_lea
            now = rva + 4 + self.new.read("i", rva)
            if not inside and self.missed(target, now, is_lea):
                missed.append(f"field at 0x{rva:x}")
            if is_lea and target in pointed_at and now != target:
                unequal.append(f"lea at 0x{rva:x}")
        require(begins and not missed, f"{len(missed)} fields were missed: {missed[:20]}")
        require(not unequal, f"{len(unequal)} pointers are not equal now: {unequal[:20]}")

    def may_stay(self, rva):
        return harness.may_hold_address(self.old.data, self.old.base + rva)

    def missed(self, old, new, takes_address=False):
        return (old in self.thunks and new != self.thunks[old] and
                not (takes_address and new == old and self.may_stay(old)))


def functions_of(database, image):
    connection = sqlite3.connect(database)
    rows = connection.execute("SELECT f.rva, f.size FROM functions f JOIN images i"
                              " ON i.id = f.image WHERE i.name = ?", (image,)).fetchall()
    connection.close()
    return dict(rows)


def check_image(path, folder):
    output, database = folder / path.name, folder / "t.db"
    harness.instrument(path, output, database)
    pair = Pair(path, output, functions_of(database, path.name))
    pair.check_changes()
    pair.check_missed()
    harness.note(f"{path}: {len(pair.thunks)} probes")


def images():
    """Real ones, and one build of each fixture of both compilers."""
    for name in [*harness.SQLITE, *harness.SQLITE_MORE]:
        yield name, harness.corpus.path_of(name)
    compiler = pathlib.Path(harness.fixtures.gcc_file("libgcc.a")).parent
    for path in sorted(compiler.glob("*.dll")):
        yield path.name, path
    yield "zlib1.dll", harness.corpus.path_of("zlib1.dll")
    for case in harness.fixture_cases():
        for name in case.images:
            yield f"{case.name} {name}", next(p for p, n in case.files if n == name)


def main():
    for name, path in images():
        with harness.work_folder() as folder, claim(f"{name}: every byte"):
            check_image(pathlib.Path(path), folder)
    harness.finish()


if __name__ == "__main__":
    main()
