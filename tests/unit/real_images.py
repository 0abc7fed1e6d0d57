"""Compares what the readers of common/pe find in real images with what
objdump finds: headers, sections, imports, exports, relocations, function
tables, symbols, and with what the symbols say: pseudo relocations and the
handlers of exception tables.

    real_images.py PE_TABLES MINGW_GCC

The images are the DLLs that come with mingw-w64, and a small C++ program built
by its GCC and, when it is installed, by clang with lld.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

OBJDUMP = "x86_64-w64-mingw32-objdump"
CPLUSPLUS = """
#include <stdexcept>
#include <string>
#include <iostream>
struct guard { std::string s; ~guard() { if (s.size() > 99) std::cout << s; } };
int inner(int n) { guard g{"a"}; if (n > 3) throw std::runtime_error("x"); return n; }
extern "C" __declspec(dllexport) int outer(int n)
{
    try { guard g{"b"}; return inner(n) + inner(n + 1); }
    catch (const std::runtime_error &e) { guard g{e.what()}; return -1; }
    catch (int) { return -2; }
}
int main(int argc, char **) { std::cout << outer(argc); }
"""


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode("latin-1")


def facts_of(tool, image):
    """{kind: [fields, ...]} as pe_tables prints them."""
    facts = collections.defaultdict(list)
    for line in output(tool, image).splitlines():
        kind, *fields = line.split(" ", 3)
        facts[kind].append(tuple(fields))
    return facts


def number(text):
    return "%x" % int(text, 16)


def rva(text, base):
    return "%x" % (int(text, 16) - base)


def between(text, begin, end):
    """The part of `text` from the line with `begin` to the line with `end`."""
    start = text.find(begin)
    if start < 0:
        return ""
    stop = text.find(end, start)
    return text[start:] if stop < 0 else text[start:stop]


def expected_headers(text, base):
    def field(name):
        return number(re.search(name + r"\s+([0-9a-f]+)", text).group(1))
    expected = {"base": [("%x" % base,)], "entry": [(field("AddressOfEntryPoint"),)],
                "checksum": [(field("CheckSum"),)]}
    expected["directory"] = [tuple(number(f) for f in row) for row in
                             re.findall(r"^Entry (\w) (\w+) (\w+)", text, re.M)]
    return expected


def expected_sections(image, base):
    sections = []
    for name, size, vma, offset, flags in re.findall(
            r"^ +\d+ (\S+) +(\w+)  (\w+)  \w+  (\w+)  2\*\*\d+\s*\n +(.*)$",
            output(OBJDUMP, "-h", image), re.M):
        sections.append((name, rva(vma, base), int(size, 16), number(offset),
                         "CONTENTS" in flags))
    return sections


def expected_imports(text):
    imports, dll = [], None
    part = between(text, "The Import Tables", "There is an export table")
    for line in between(part, "", "The Function Table").splitlines():
        match = re.match(r"\tDLL Name: (.*)", line)
        if match:
            dll = match.group(1)
            continue
        match = re.match(r"\t([0-9a-f]+)\t +(\d+)  (\S+)", line)
        if match and dll:
            imports.append((dll, match.group(3), "%x" % int(match.group(2))))
    return imports


def expected_exports(text):
    names = {}
    for index, name in re.findall(r"^\t\[ *(\d+)\] (\S+)$",
                                  between(text, "[Ordinal/Name Pointer]", "The Function"), re.M):
        names.setdefault(int(index), name)
    return [("%x" % int(ordinal), target, names.get(int(index), "-"))
            for index, ordinal, target in re.findall(
                r"^\t\[ *(\d+)\] \+base\[ *(\d+)\] (\w+) ", text, re.M)]


def expected_relocs(text):
    types = {"DIR64": "a", "HIGHLOW": "3"}
    return [(site, types[kind]) for site, kind in
            re.findall(r"^\treloc +\d+ offset +\w+ \[(\w+)\] (\w+)$", text, re.M)
            if kind != "ABSOLUTE"]


def expected_functions(text, base):
    part = between(text, "The Function Table", "Dump of .xdata")
    return [tuple(rva(f, base) for f in row) for row in
            re.findall(r"^ \w+:\t(\w+) (\w+) (\w+)$", part, re.M)]


def expected_symbols(image, sections):
    symbols = []
    for section, value, name in re.findall(
            r"^\[ *\d+\]\(sec +(-?\d+)\).* 0x(\w+) (.*)$", output(OBJDUMP, "-t", image), re.M):
        if int(section) > 0:
            begin = int(sections[int(section) - 1][1], 16)
            symbols.append((begin + int(value, 16), name))
    return symbols


class Comparison:
    def __init__(self, image):
        self.image, self.faults, self.checks = image, 0, 0

    def equal(self, what, found, expected):
        self.checks += 1
        if found == expected:
            return
        self.faults += 1
        print(f"{self.image}: {what}: {len(found)} found, {len(expected)} expected")
        for kind, one, other in (("too much", found, expected), ("missing", expected, found)):
            rest = list((collections.Counter(one) - collections.Counter(other)).elements())
            print(f"  {kind}: {rest[:5]}")

    def true(self, what, condition):
        self.equal(what, [bool(condition)], [True])


def compare_symbols(check, facts, symbols):
    check.equal("symbols", facts["symbol"],
                [("%x" % at, *name.split(" ", 1)) for at, name in
                 sorted(symbols, key=lambda s: s[0])])
    named = {name: at for at, name in symbols}
    if "__RUNTIME_PSEUDO_RELOC_LIST__" in named:
        size = (named["__RUNTIME_PSEUDO_RELOC_LIST_END__"] -
                named["__RUNTIME_PSEUDO_RELOC_LIST__"])
        check.equal("pseudo relocations", [len(facts["pseudo"])],
                    [(size - 12) // 12 if size >= 12 else 0])
    return named


def compare_handlers(check, facts, symbols, is_cplusplus):
    """Every function of a known personality has a table of its form."""
    names = collections.defaultdict(set)
    for at, name in symbols:
        names["%x" % at].add(name)
    ends = {row[0]: int(row[1], 16) for row in facts["function"]}
    tables = 0
    for begin, handler, forms in facts["handler"]:
        if "__gxx_personality_seh0" in names[handler]:
            tables += 1
            check.true(f"exception table of {begin}", forms.startswith("lsda"))
        elif "__C_specific_handler" in names[handler]:
            check.true(f"scope table of {begin}", forms == "- scopes")
    for begin, pad in facts["pad"]:
        check.true(f"landing pad {pad}", int(begin, 16) < int(pad, 16) < ends[begin])
    if is_cplusplus:
        check.true("some exception tables", tables and facts["pad"])


def compare(tool, image, is_cplusplus):
    check = Comparison(image)
    text = output(OBJDUMP, "-p", image)
    base = int(re.search(r"ImageBase\s+(\w+)", text).group(1), 16)
    facts = facts_of(tool, image)
    for kind, rows in expected_headers(text, base).items():
        check.equal(kind, facts[kind], rows)
    sections = expected_sections(image, base)
    check.equal("section RVAs", [s[0] for s in facts["section"]], [s[1] for s in sections])
    check.equal("sections in the file", [s[2] for s in facts["section"] if s[1] != "0"],
                [s[3] for s in sections if s[4]])
    check.equal("imports", facts["import"], expected_imports(text))
    check.equal("exports", facts["export"], expected_exports(text))
    check.equal("relocations", facts["reloc"], expected_relocs(text))
    check.equal("functions", facts["function"], expected_functions(text, base))
    symbols = expected_symbols(image, sections)
    compare_symbols(check, facts, symbols)
    compare_handlers(check, facts, symbols, is_cplusplus)
    counts = {kind: len(rows) for kind, rows in facts.items()}
    print(f"{image}: {check.checks} checks, {check.faults} faults; "
          + ", ".join(f"{counts.get(k, 0)} {k}s" for k in
                      ("import", "export", "reloc", "function", "symbol", "pad", "pseudo")))
    return check.faults


def installed(gcc):
    """(path, is C++) of the DLLs that the packages have."""
    def find(name):
        path = output(gcc, "-print-file-name=" + name).strip()
        return path if os.path.isabs(path) else None
    images = [(find("libgcc_s_seh-1.dll"), False), (find("libstdc++-6.dll"), True),
              (find("libwinpthread-1.dll"), False)]
    for folder in ("/usr/x86_64-w64-mingw32/lib", "/usr/x86_64-w64-mingw32/bin"):
        images.append((os.path.join(folder, "zlib1.dll"), False))
    return [i for i in images if i[0] and os.path.exists(i[0])]


def built(gcc, folder):
    """(path, is C++) of the C++ program, by each compiler that is there."""
    source = os.path.join(folder, "made.cpp")
    with open(source, "w") as f:
        f.write(CPLUSPLUS)
    images = []
    gxx = re.sub(r"gcc", "g++", gcc)
    if shutil.which(gxx):
        for level, kind in (("-O2", []), ("-O0", ["-shared"])):
            images.append((os.path.join(folder, "gcc%s.dll" % level), True))
            subprocess.run([gxx, level, *kind, source, "-o", images[-1][0]], check=True)
    if shutil.which("clang++") and shutil.which("ld.lld") and shutil.which(gxx):
        folders = [f for f in re.findall(r"^ (/\S*c\+\+\S*)$", subprocess.run(
            [gxx, "-E", "-x", "c++", "-v", "/dev/null"], check=True, capture_output=True,
            text=True).stderr, re.M)]
        library = os.path.dirname(output(gxx, "-print-libgcc-file-name").strip())
        for level, kind in (("-O2", []), ("-O0", ["-shared"])):
            images.append((os.path.join(folder, "clang%s.dll" % level), True))
            subprocess.run(["clang++", "--target=x86_64-w64-windows-gnu", level, *kind, source,
                            "-fuse-ld=lld", "-L" + library, *("-I" + f for f in folders),
                            "-o", images[-1][0]], check=True)
    return images


def main():
    tool, gcc = sys.argv[1:3]
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        images = installed(gcc) + built(gcc, folder)
        for image, is_cplusplus in images:
            faults += compare(tool, image, is_cplusplus)
    if not images:
        print("no image to compare")
        return 77
    return 1 if faults else 0


sys.exit(main())
