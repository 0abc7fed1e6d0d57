#!/usr/bin/env python3
"""Compares what discovery finds in an image with what the compiler knew.

    graph_oracle.py GRAPH_DUMP [NAME...]

A program is compiled and linked with a map.  The object's relocations, placed through the map,
tell every reference between sections.  Its assembly tells every word of every jump table,
whichever section it stands in, and an object with all local labels kept gives their places.
Nothing of this is known to discovery, which sees the linked image, stripped of its symbols.

Each relocation against code or from code must be a reference with the right target, each word
of a jump table too, and the graph may hold no other reference in the object's sections, unless
both ends lie in one section, where the assembler resolves fields without a relocation.  Each
function symbol must be a function.  Code in doubt is not judged, but what it refers to must be
pinned.

The programs are SQLite and those in oracle/, by GCC and clang with their linkers, at all levels
of optimization, and a fixture with exceptions of the MSVC ABI, by clang and lld-link.  What
compilers made is cached by corpus.py.  Without names, all are compared but SQLite at -O3, which
is known too.
"""

import bisect
import collections
import concurrent.futures
import os
import pathlib
import re
import struct
import subprocess
import sys

import corpus

HERE = pathlib.Path(__file__).resolve().parent
ADDR64, ADDR32NB, REL32, REL32_5, SECTION, SECREL = 1, 3, 4, 9, 10, 11
REL64 = 14 # GNU's own, where the PE specification has SREL32
TYPE_FUNCTION = 0x20

# Options that change the forms of jumps and tables, tried with the small programs at -O2.
SPECIAL = {"gcc": ["-mcmodel=large", "-fcf-protection=full", "-mstackrealign",
                   "-fno-reorder-blocks-and-partition", "-falign-functions=1"],
           "clang": ["-fcf-protection=full", "-mstackrealign", "-Oz"]}
# A program of the MSVC ABI, what it needs beside it, and how it is compiled.
FIXTURES = HERE.parent.parent / "fixtures"
MSVC_SOURCE = FIXTURES / "msvc_exceptions.cpp"
MSVC_MORE = [FIXTURES / "msvc_type_info.c", FIXTURES / "vcruntime.def"]
MSVC = ["clang", "--target=x86_64-pc-windows-msvc", "-fms-extensions", "-fexceptions",
        "-fcxx-exceptions"]
FLAGS = ["-ffunction-sections", "-fdata-sections", "-w"]


def cases():
    """name: (compiler, source, options)"""
    found = {}
    sources = sorted((HERE / "oracle").iterdir())
    for compiler in ("gcc", "clang"):
        for level in ("O0", "O1", "Os", "O2", "O3"):
            if level != "O1": # nearly the same as -Os
                found[f"sqlite-{compiler}-{level}"] = (
                    compiler, "sqlite3.c", [f"-{level}", *corpus.DEFINES])
            for source in sources:
                found[f"{source.stem}-{compiler}-{level}"] = (compiler, source, [f"-{level}"])
        for option in SPECIAL[compiler]:
            for source in sources:
                found[f"{source.stem}-{compiler}-O2{option}"] = (compiler, source,
                                                                 ["-O2", option])
    for level in ("O0", "O1", "Os", "O2", "O3"):
        found[f"exceptions-msvc-{level}"] = ("msvc", MSVC_SOURCE, [f"-{level}"])
    return found


def driver(compiler, cxx):
    command = list(corpus.COMPILERS[compiler])
    if compiler == "gcc":
        return ["x86_64-w64-mingw32-g++"] if cxx else command
    if cxx:
        command[0] = "clang++"
        library = corpus.run(["x86_64-w64-mingw32-gcc", "-print-file-name=libstdc++.a"], "/")
        headers = pathlib.Path(library.strip()).parent / "include" / "c++"
        command += ["-isystem", str(headers), "-isystem", str(headers / "x86_64-w64-mingw32")]
    return command + ["-Wno-unused-command-line-argument"]


def build_msvc(source, options):
    """As build, for the MSVC ABI."""
    compile_it = MSVC + options + FLAGS
    return corpus.cached_folder("oracle", [
        compile_it + ["-S", source.name, "-o", "program.s"],
        compile_it + ["-c", "-Wa,-L", source.name, "-o", "program.o"],
        ["cp", "program.o", "labels.o"],
        compile_it + ["-c", MSVC_MORE[0].name, "-o", "type_info.o"],
        ["llvm-dlltool", "-m", "i386:x86-64", "-d", MSVC_MORE[1].name, "-l", "vcruntime.lib"],
        ["lld-link", "/dll", "/noentry", "/nodefaultlib", "/brepro", "/opt:noref,noicf",
         "/out:program.dll", "/lldmap:program.map", "program.o", "type_info.o",
         "vcruntime.lib"],
    ], [source, *MSVC_MORE])


def build(compiler, source, options):
    """The folder with program.s, labels.o, program.o, program.map and program.dll."""
    if compiler == "msvc":
        return build_msvc(source, options)
    path = corpus.fetch(source) if source == "sqlite3.c" else source
    command = driver(compiler, path.suffix == ".cpp")
    if path.suffix == ".cpp":
        options = ["-std=gnu++17", *options]
    compile_it = command + options + FLAGS
    link = command + ["-shared", "-o", "program.dll", "program.o", "-Wl,-Map,program.map",
                      "-Wl,--no-insert-timestamp", "-s"]
    steps = [compile_it + ["-S", path.name, "-o", "program.s"]]
    if compiler == "gcc":
        # GNU as writes some relocations wrong when it keeps local labels (observed: 2.40).
        steps += [command + ["-c", "program.s", "-o", "program.o"],
                  command + ["-c", "-Wa,-L", "program.s", "-o", "labels.o"]]
    else:
        # clang lays exception data otherwise when it assembles a file (observed: 14).
        steps += [compile_it + ["-c", "-Wa,-L", path.name, "-o", "program.o"],
                  ["cp", "program.o", "labels.o"]]
    return corpus.cached_folder("oracle", steps + [link], [path])


Section = collections.namedtuple("Section", "name number size relocs data is_code")
Symbol = collections.namedtuple("Symbol", "name value section type storage")


class Object:
    """A COFF object: its sections with their relocations, and its symbols."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        _, count, _, symbols, symbol_count, optional, _ = struct.unpack_from(
            "<HHIIIHH", self.bytes)
        strings = symbols + 18 * symbol_count
        self.symbols = self.read_symbols(symbols, symbol_count, strings)
        self.sections = [self.read_section(20 + optional + 40 * i, i + 1, strings)
                         for i in range(count)]

    def string(self, offset):
        return self.bytes[offset:self.bytes.index(b"\0", offset)].decode()

    def name(self, raw, strings):
        if raw.startswith(b"/"):
            return self.string(strings + int(raw[1:].rstrip(b"\0")))
        return raw.rstrip(b"\0").decode()

    def read_symbols(self, at, count, strings):
        found, skip = [], 0
        for i in range(count):
            raw, value, section, kind, storage, aux = struct.unpack_from(
                "<8sIhHBB", self.bytes, at + 18 * i)
            if skip:
                skip -= 1
                found.append(None)
                continue
            skip = aux
            name = (self.string(strings + struct.unpack_from("<I", raw, 4)[0])
                    if raw[:4] == b"\0\0\0\0" else raw.rstrip(b"\0").decode())
            found.append(Symbol(name, value, section, kind, storage))
        return found

    def read_section(self, at, number, strings):
        raw, _, _, size, data, relocs, _, count, _, flags = struct.unpack_from(
            "<8sIIIIIIHHI", self.bytes, at)
        if flags & 0x01000000 and count == 0xffff:
            count, = struct.unpack_from("<I", self.bytes, relocs)
        entries = [struct.unpack_from("<IIH", self.bytes, relocs + 10 * i) for i in range(count)]
        if flags & 0x01000000:
            entries = entries[1:]
        content = self.bytes[data:data + size] if data else b""
        return Section(self.name(raw, strings), number, size, entries, content,
                       bool(flags & 0x20))


def image_base_of(data):
    pe, = struct.unpack_from("<I", data, 0x3c)
    return struct.unpack_from("<Q", data, pe + 24 + 24)[0]


def placed_sections(text, base):
    """{section name: [(RVA, size), ...]} of program.o, from either linker's map."""
    placed = collections.defaultdict(list)
    text = re.sub(r"\n {16,}(0x[0-9a-f]+ +0x[0-9a-f]+ \S)", r" \1", text)
    for match in re.finditer(r"^ (\S+) +0x([0-9a-f]+) +0x([0-9a-f]+) program\.o$", text, re.M):
        address = int(match[2], 16)
        if address >= base:
            placed[match[1]].append((address - base, int(match[3], 16)))
    for match in re.finditer(r"^([0-9a-f]{8}) ([0-9a-f]{8}) +\d+ +program\.o:\((.+)\)$", text,
                             re.M):
        placed[match[3]].append((int(match[1], 16), int(match[2], 16)))
    return placed


def place(obj, placed):
    """{section number: RVA}; sections that the linker left out are missing."""
    where, seen = {}, collections.Counter()
    for section in obj.sections:
        if section.size == 0:
            continue
        homes = [home for home in placed.get(section.name, []) if home[1]]
        index = seen[section.name]
        seen[section.name] += 1
        if index < len(homes):
            where[section.number] = homes[index][0]
    return where


def table_words(assembly):
    """[(label of a table, offset, target's label, base's label)] of .long A-B and .quad A-B
    lines."""
    words, label, offset = [], None, 0
    for line in assembly.splitlines():
        line = line.split("#")[0].rstrip()
        match = re.match(r"^([.\w$@?]+):$", line)
        if match:
            label, offset = match[1], 0
            continue
        match = re.match(r"^\t\.(?:long|quad)\t(\.L\w+)-(\.L\w+)$", line)
        if match and label:
            words.append((label, offset, match[1], match[2]))
        if re.match(r"^\t\.(long|quad)\t", line):
            offset += 4 if line.startswith("\t.long") else 8
        elif line.startswith("\t.") and not re.match(r"^\t\.(p2)?align", line):
            label = None
    return words


class Graph:
    def __init__(self, text):
        self.refs, self.functions, self.tables, self.ranges = {}, [], [], []
        self.pinned = {}
        for line in text.splitlines():
            kind, *rest = line.split(" ")
            if kind == "ref":
                site, target, what, size, tail, base = rest
                self.refs[int(site, 16)] = (what, int(target, 16), int(size, 16), int(tail, 16),
                                            int(base, 16))
            elif kind == "function":
                begin, size, what, pins = rest[:4]
                self.functions.append((int(begin, 16), int(size, 16), what, pins))
            elif kind == "range":
                self.ranges.append((int(rest[0], 16), int(rest[1], 16)))
            elif kind == "block":
                self.pinned[int(rest[0], 16)] = rest[2]
        self.begins = [f[0] for f in self.functions]
        self.blocks = sorted(self.pinned)

    def function_at(self, rva):
        index = bisect.bisect_right(self.begins, rva) - 1
        if index < 0:
            return None
        begin, size, *_ = self.functions[index]
        return self.functions[index] if rva < begin + size else None

    def is_code(self, rva):
        return any(begin <= rva < begin + size for begin, size in self.ranges)

    def is_pinned(self, rva):
        """Whether what stands at `rva` stays there; padding does."""
        if not self.function_at(rva):
            return True
        return self.pinned[self.blocks[bisect.bisect_right(self.blocks, rva) - 1]] != "-"

    def is_doubtful(self, rva):
        function = self.function_at(rva)
        return function is not None and (
            function[2] == "bytes" or
            bool({"undecoded", "overlapping-code", "unknown-bytes"} & set(function[3].split(","))))


class Oracle:
    def __init__(self, folder, graph):
        self.graph, self.faults = graph, []
        self.counts = collections.Counter()
        self.image = (folder / "program.dll").read_bytes()
        base = image_base_of(self.image)
        self.obj = Object(folder / "program.o")
        self.where = place(self.obj, placed_sections((folder / "program.map").read_text(), base))
        self.sections = {s.number: s for s in self.obj.sections}
        self.words = table_words((folder / "program.s").read_text())
        self.labels = self.place_labels(Object(folder / "labels.o"))
        self.read_image_sections()

    def place_labels(self, labels):
        """{label: RVA}; the sections of both objects are the same, in the same order."""
        homes = [(s.name, s.size, s.number) for s in self.obj.sections]
        assert homes == [(s.name, s.size, s.number) for s in labels.sections]
        return {s.name: self.where[s.section] + s.value
                for s in labels.symbols if s and s.section in self.where}

    def read_image_sections(self):
        pe, = struct.unpack_from("<I", self.image, 0x3c)
        count, = struct.unpack_from("<H", self.image, pe + 6)
        optional, = struct.unpack_from("<H", self.image, pe + 20)
        self.raw = [struct.unpack_from("<IIII", self.image, pe + 24 + optional + 40 * i + 8)
                    for i in range(count)]

    def image_word(self, rva):
        for _, address, size, pointer in self.raw:
            if address <= rva < address + size:
                return struct.unpack_from("<i", self.image, pointer + rva - address)[0]
        raise LookupError(hex(rva))

    def fault(self, text, *numbers):
        self.faults.append(text.format(*(hex(n) if isinstance(n, int) else n for n in numbers)))

    def address(self, symbol):
        """RVA of a symbol of the object, None for another object's."""
        if symbol.section <= 0 or symbol.section not in self.where:
            return None
        return self.where[symbol.section] + symbol.value

    def expected(self):
        """{site: (kinds, target of the relocation or None)}, .pdata left out: linkers sort it."""
        found = {}
        for section in self.obj.sections:
            if section.number not in self.where or section.name.startswith((".pdata", ".debug")):
                continue
            for offset, index, kind in section.relocs:
                symbol, site = self.obj.symbols[index], self.where[section.number] + offset
                home = self.address(symbol)
                if kind == ADDR64:
                    addend, = struct.unpack_from("<q", section.data, offset)
                    found[site] = ({"va64"}, None if home is None else home + addend)
                elif kind == ADDR32NB:
                    addend, = struct.unpack_from("<i", section.data, offset)
                    found[site] = ({"rva", "rva-end", "state"},
                                   None if home is None else home + addend)
                elif REL32 <= kind <= REL32_5 and section.is_code:
                    addend, = struct.unpack_from("<i", section.data, offset)
                    found[site] = ({"branch", "address", "memory"},
                                   None if home is None else home + addend - (kind - REL32))
                elif kind in (REL32, REL64):
                    # Of a jump table, or from data to data.
                    if self.sections[symbol.section].is_code if symbol.section > 0 else True:
                        found[site] = ({"table"}, None)
                else:
                    self.fault("relocation {} of type {} is not known here", site, kind)
        return found

    def check_relocations(self, expected):
        graph = self.graph
        for site, (kinds, target) in expected.items():
            if kinds == {"table"}:
                continue # judged by the assembly
            ref = graph.refs.get(site)
            in_code = graph.is_code(site)
            if ref is None:
                self.judge_missing(site, target, in_code)
                continue
            self.counts["references"] += 1
            what, found, _, tail, _ = ref
            if what not in kinds:
                self.fault("{}: a reference of kind {}", site, what)
            if target is not None and in_code:
                target += tail
            if target is not None and found != target:
                self.fault("{}: leads to {}, not {}", site, target, found)

    def judge_missing(self, site, target, in_code):
        graph = self.graph
        if not in_code:
            if target is None or not graph.is_code(target):
                return
            # LLVM's row of a state map behind a call that never returns: it stands where
            # the unit ends, says nothing, and is no reference.
            before = graph.function_at(target - 1)
            if (graph.refs.get(site - 8, ("",))[0] == "state" and before and
                    before[0] + before[1] == target):
                self.counts["state rows behind their unit"] += 1
            else:
                self.fault("{}: missed, leads to {}", site, target)
            return
        if target is None:
            target = site + 4 + self.image_word(site)
        here = graph.function_at(site)
        if here and here == graph.function_at(target):
            self.counts["inside a function"] += 1
        elif graph.is_doubtful(site):
            self.counts["in doubtful code"] += 1
            if graph.is_code(target) and not graph.is_pinned(target):
                self.fault("{}: in doubtful code, but {} is not pinned", site, target)
        else:
            self.fault("{}: missed, leads to {}", site, target)

    def check_tables(self, expected):
        graph = self.graph
        labels, truth = self.labels, {}
        for table, offset, target, base in self.words:
            if any(labels.get(name) is None for name in (table, target, base)):
                continue # of a section that the linker left out
            if not graph.is_code(labels[target]):
                continue
            truth[labels[table] + offset] = (labels[target], labels[base])
        for site, (target, base) in sorted(truth.items()):
            ref = graph.refs.get(site)
            self.counts["table words"] += 1
            if ref is not None and ref[0] == "table":
                if ref[1] != target or ref[4] != base:
                    self.fault("{}: a table word that leads to {} from {}, not {} from {}", site,
                               target, base, ref[1], ref[4])
            elif ref is not None:
                self.fault("{}: a table word that is taken for {}", site, ref[0])
            elif graph.is_pinned(target) and graph.is_pinned(base):
                self.counts["table words of pinned code"] += 1
            elif graph.function_at(target) == graph.function_at(base) is not None:
                self.counts["table words that move along"] += 1
            else:
                self.fault("{}: a missed table word, leads to {}", site, target)
        for site, (kinds, _) in expected.items():
            if kinds == {"table"} and site not in truth:
                self.fault("{}: the assembly has no such table word", site)
        return truth

    def check_nothing_made_up(self, expected, truth):
        homes = sorted((rva, rva + self.sections[number].size, self.sections[number])
                       for number, rva in self.where.items())
        begins = [home[0] for home in homes]

        def home_of(rva):
            index = bisect.bisect_right(begins, rva) - 1
            return homes[index] if index >= 0 and rva < homes[index][1] else None

        for site, (what, target, *_) in self.graph.refs.items():
            home = home_of(site)
            if not home or home[2].name.startswith(".pdata"):
                continue
            if what == "table":
                if site not in truth:
                    self.fault("{}: a table word made up, to {}", site, target)
            elif site not in expected:
                if home_of(target) is not home:
                    self.fault("{}: made up, {} to {}", site, what, target)
                self.counts["resolved by the assembler"] += 1

    def check_functions(self):
        begins = set(self.graph.begins)
        for symbol in self.obj.symbols:
            if not symbol or symbol.type != TYPE_FUNCTION or symbol.section <= 0:
                continue
            rva = self.address(symbol)
            if rva is None or self.sections[symbol.section].size == symbol.value:
                continue
            self.counts["functions"] += 1
            holder = self.graph.function_at(rva)
            if holder and holder[0] < rva and holder[2] in ("leaf", "island"):
                # Bare code that only a jump out of bare code leads to.
                self.counts["functions within another"] += 1
            elif rva not in begins:
                self.fault("{}: \"{}\" is no function's begin", rva, symbol.name)

    def check(self):
        expected = self.expected()
        self.check_relocations(expected)
        truth = self.check_tables(expected)
        self.check_nothing_made_up(expected, truth)
        self.check_functions()
        if not self.counts["references"]:
            self.fault("no references at all: the map was not understood")
        total = len(self.graph.functions)
        self.counts["movable of 1000 functions"] = sum(
            not self.graph.is_pinned(f[0]) for f in self.graph.functions) * 1000 // total


def compare(dump, name):
    """The lines that tell what was found, and how many faults there are."""
    folder = build(*cases()[name])
    text = subprocess.run([dump, folder / "program.dll"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    oracle = Oracle(folder, Graph(text))
    oracle.check()
    lines = [f"{name}: " + ", ".join(f"{n} {what}" for what, n in oracle.counts.items())]
    lines += [f"    {fault}" for fault in oracle.faults[:20]]
    if len(oracle.faults) > 20:
        lines.append(f"    and {len(oracle.faults) - 20} more")
    return lines, len(oracle.faults)


def main():
    dump, *names = sys.argv[1:]
    names = names or [n for n in cases() if not re.match(r"sqlite-.*-O3", n)]
    differ = 0
    try:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
            list(workers.map(lambda name: build(*cases()[name]), names))
        for name in names:
            lines, faults = compare(dump, name)
            print("\n".join(lines), flush=True)
            differ += faults > 0
    except corpus.CorpusError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{differ} of {len(names)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
