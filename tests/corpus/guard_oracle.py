#!/usr/bin/env python3
"""Compares the guard tables of relinked images with what the compiler asked for.

    guard_oracle.py APPULSE_REORDER

clang writes into each object which functions indirect calls may reach, where longjmp may go, and
where execution may go on after an exception (sections .gfids, .gljmp, .gehcont: indices into the
symbol table).  lld makes the tables of it, and keeps the symbols.  After a relink the rows must
ascend, and the symbols at their RVAs must be those that the objects name, no more and no fewer.
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

import corpus
from graph_oracle import Object

HERE = pathlib.Path(__file__).resolve().parent
TARGET = ["clang", "--target=x86_64-pc-windows-msvc", "-Xclang", "-cfguard",
          "-Xclang", "-ehcontguard", "-w", "-c"]
CPP = ["-fms-extensions", "-fexceptions", "-fcxx-exceptions"]
LINK = ["lld-link", "/dll", "/entry:DllMain", "/nodefaultlib", "/debug:symtab",
        "/guard:cf,longjmp,ehcont", "/out:guarded.dll", "guarded.o", "runtime.o"]
# Section of the objects: where the table and its count stand in the load configuration, and the
# bytes of a row (observed: lld 14).
TABLES = {".gfids$y": (0x80, 4), ".gljmp$y": (0xb0, 4), ".gehcont$y": (0x108, 5)}
# The linker adds them: what is exported, and the entry point.
LINKER = {"run", "DllMain"}
SEEDS = range(1, 6)


def build(level):
    return corpus.cached_folder("guard", [
        [*TARGET, level, *CPP, "guarded.cpp", "-o", "guarded.o"],
        [*TARGET, level, "runtime.c", "-o", "runtime.o"], LINK],
        [HERE / "guard" / "guarded.cpp", HERE / "guard" / "runtime.c"])


def asked_for(folder, section):
    """The names that the objects want in a table."""
    names = set(LINKER) if section == ".gfids$y" else set()
    for path in ("guarded.o", "runtime.o"):
        obj = Object(folder / path)
        for found in obj.sections:
            if found.name == section:
                names.update(obj.symbols[i].name for i, in struct.iter_unpack(
                    "<I", found.data))
    return names


class Image:
    def __init__(self, path):
        self.bytes = path.read_bytes()
        pe = self.u32(0x3c)
        count, = struct.unpack_from("<H", self.bytes, pe + 6)
        size, = struct.unpack_from("<H", self.bytes, pe + 20)
        optional = pe + 24
        self.base, = struct.unpack_from("<Q", self.bytes, optional + 24)
        self.config = self.u32(optional + 112 + 8 * 10)
        self.sections = [struct.unpack_from("<8sIIII", self.bytes, optional + size + 40 * i)
                         for i in range(count)]
        self.names = {}
        symbols, symbol_count = struct.unpack_from("<II", self.bytes, pe + 12)
        strings = symbols + 18 * symbol_count
        for symbol in Object.read_symbols(self, symbols, symbol_count, strings):
            if symbol and symbol.section > 0:
                rva = self.sections[symbol.section - 1][2] + symbol.value
                self.names.setdefault(rva, set()).add(symbol.name)

    string = Object.string

    def u32(self, at):
        return struct.unpack_from("<I", self.bytes, at)[0]

    def at(self, rva):
        for _, size, begin, raw_size, raw in self.sections:
            if begin <= rva < begin + min(size, raw_size):
                return raw + rva - begin
        sys.exit(f"nothing stands at RVA {rva:#x}")

    def table(self, offset, stride):
        va, count = struct.unpack_from("<QQ", self.bytes, self.at(self.config) + offset)
        return [self.u32(self.at(va - self.base + stride * i)) for i in range(count)]


def check(path, wanted):
    """What is wrong with the image's tables, a line each."""
    image = Image(path)
    for section, names in wanted.items():
        rows = image.table(*TABLES[section])
        if rows != sorted(set(rows)):
            yield f"{section}: the table does not ascend"
        left = set(names)
        for row in rows:
            here = image.names.get(row, set())
            if not here & names:
                yield f"{section}: {row:#x} is {sorted(here)}, which nobody asked for"
            left -= here
        if left:
            yield f"{section}: {sorted(left)} is not in the table"


def relinked(tool, original, folder):
    for seed in SEEDS:
        for placement in ("exchange", "append"):
            out = folder / f"{placement}-{seed}.dll"
            subprocess.run([tool, original, "-o", out, "--quiet", "--order", "random",
                            "--seed", str(seed), "--placement", placement], check=True,
                           stdout=subprocess.DEVNULL)
            yield out


def main():
    tool, failures, checked = sys.argv[1], 0, 0
    for level in ("-O0", "-O1", "-O2"):
        folder = build(level)
        original = folder / "guarded.dll"
        wanted = {section: asked_for(folder, section) for section in TABLES}
        counts = [len(Image(original).table(*where)) for where in TABLES.values()]
        if min(counts) < 2:
            sys.exit(f"{level}: tables of {counts} rows prove nothing")
        with tempfile.TemporaryDirectory() as temporary:
            for path in [original, *relinked(tool, original, pathlib.Path(temporary))]:
                checked += 1
                for line in check(path, wanted):
                    failures += 1
                    print(f"{level} {path.name}: {line}")
        print(f"{level}: tables of {counts} rows")
    print(f"{checked} images, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
