#!/usr/bin/env python3
"""Linkers follow the lists that `appulse-reorder order-file` writes.

    order_files.py

A DLL is linked, traced, and linked again with the list of its first touches: by GNU ld with a
linker script, and by lld with /order. Then the functions stand in that order, and the program
does what it did. lld for ELF, which has another option, links a file of empty functions.
"""

import pathlib

import harness
from harness import claim, require

NAME = "jump_tables"
DLL = f"{NAME}.dll"
COMMON = ["-O1", "-ffunction-sections"]
NM = "x86_64-w64-mingw32-nm"
LD = "x86_64-w64-mingw32-ld"


def do(command, folder):
    result = harness.run(command, cwd=folder)
    require(result.code == 0, result.describe())
    return result.stdout.decode()


def script_with(order, folder):
    """The linker's own script, with the list before all other code."""
    text = do([LD, "--verbose"], folder).split("=" * 50)[1]
    begin = text.index("{", text.index("\n  .text "))
    script = folder / "ordered.ld"
    script.write_text(f"{text[:begin + 1]}\n{order.read_text()}{text[begin + 1:]}")
    return script


def link_gnu(folder, output, order=None):
    script = [f"-Wl,-T,{script_with(order, folder)}"] if order else []
    do([harness.fixtures.GCC, *COMMON, "-shared", harness.SOURCE / "fixtures" / f"{NAME}.c",
        "-o", output, *script], folder)


def link_lld(folder, output, order=None):
    options = [f"-Wl,-Xlink=-order:@{order}"] if order else []
    do([*harness.fixtures.clang("clang"), *COMMON, "-shared",
        harness.SOURCE / "fixtures" / f"{NAME}.c", "-o", output, *options], folder)


def addresses(program, nm, folder):
    found = {}
    for line in do([nm, program], folder).splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tT":
            found[words[2]] = int(words[0], 16)
    return found


def listed(order):
    """The names of a list in either form."""
    return [line.split("$")[1].split()[0] if line.startswith("*") else line
            for line in order.read_text().splitlines()]


def write_list(case, folder, database, output, form):
    return harness.tool("appulse-reorder", "order-file", folder / DLL, "--db", database,
                        "-o", output, "--format", form, "--json").json()


def ours(nm, program, folder):
    """Functions of the source file: the compiler's own objects have no section for each."""
    names = addresses(program, nm, folder)
    text = (harness.SOURCE / "fixtures" / f"{NAME}.c").read_text()
    return {name: at for name, at in names.items() if f"{name}(" in text}


def test(case, folder, link, form):
    original = case.stage(folder / "original")
    link(folder, original / DLL)
    expected = case.outcome(original)
    database, probed = folder / "t.db", case.stage(folder / "probed")
    harness.instrument(original / DLL, probed / DLL, database)
    harness.profile(database, case, probed)
    order = folder / "list"
    told = write_list(case, original, database, order, form)
    names = listed(order)
    require(told["named"] + told["ambiguous"] + told["unnamed"] == told["touched_functions"],
            told)
    require(told["named"] <= len(names) == len(set(names)), (told, names))
    again = case.stage(folder / "again")
    link(folder, again / DLL, order)
    places = ours(NM, again / DLL, folder)
    there = [name for name in names if name in places]
    require(len(there) >= 10, f"only {there}")
    require(there == sorted(there, key=places.get), "another order")
    old = ours(NM, original / DLL, folder)
    require(there != sorted(there, key=old.get), "in order already")
    require(max(places[name] for name in there) <
            min(at for name, at in places.items() if name not in there),
            "others stand among them")
    harness.require_same(expected, case.outcome(again), "linked again")
    harness.note(f"{form}: {len(there)} of {len(names)} names; {told}")
    return names


def test_elf(folder, names):
    """Some compilers' names are no C identifiers; these are."""
    order = folder / "symbols"
    order.write_text("".join(f"{name}\n" for name in names))
    (folder / "empty.c").write_text("".join(f"void {name}(void) {{}}\n"
                                            for name in sorted(names)))
    do(["clang", "-c", "-ffunction-sections", "-fno-builtin", "-w", "empty.c"], folder)
    do(["ld.lld", "-shared", "--symbol-ordering-file", order, "empty.o", "-o", "empty.so"],
       folder)
    places = addresses("empty.so", "nm", folder)
    require(sorted(names, key=places.get) == names, "another order")


def main():
    harness.prepare_wine()
    for form, link in (("gnu-ld", link_gnu), ("msvc", link_lld), ("lld", link_lld)):
        with harness.work_folder() as folder, claim(f"{form}: linked by the list"):
            case = harness.fixture_case(NAME, "gcc-O2")
            names = test(case, pathlib.Path(folder), link, form)
            if form == "lld":
                test_elf(folder, [name for name in names if name.isidentifier()])
    harness.finish()


if __name__ == "__main__":
    main()
