#!/usr/bin/env python3
"""The probes see every function that an emulator sees, in the same order.

    emulator.py fixtures | real

qemu-x86_64 runs Wine with the unchanged program and logs each run of instructions when it
is executed for the first time, with addresses.  It shares nothing with the probes, not even
a debugger's idea of where to look: so it also tells when the program executes bytes that
discovery took for something else than code.

A function counts as reached when its first instruction was executed.  completeness.py says
which differences are explained, and checks them; here their order counts too, where the
program has one thread.
"""

import pathlib
import re
import shutil
import sys

import completeness
import harness
from harness import claim, require

SECONDS = 300
INSTRUCTION = re.compile(r"0x([0-9a-f]+):  ")
LOADED = re.compile(rb'Loaded L"[^"]*\\\\([^"\\]+)" at ([0-9A-F]+): native')


def wine_loader():
    """The binary itself: the emulator runs no scripts."""
    for path in ("/usr/lib/wine/wine64", shutil.which("wine64") or ""):
        if path and pathlib.Path(path).read_bytes()[:4] == b"\x7fELF":
            return path
    raise harness.Failure("no binary of wine64 to emulate")


def emulate(case, folder, arguments):
    """Runs the program; addresses in the order in which they were first executed, and where
    the images were loaded."""
    log = folder / "qemu.log"
    environment = harness.wine_environment() | {"WINEDEBUG": "+loaddll",
                                                "WINELOADERNOEXEC": "1"}
    result = harness.run(["qemu-x86_64", "-d", "in_asm", "-D", log, wine_loader(), case.exe,
                          *arguments], cwd=folder, environment=environment, seconds=SECONDS)
    bases = {name.decode(): int(base, 16) for name, base in LOADED.findall(result.stderr)}
    addresses = {}
    with open(log, encoding="ascii", errors="replace") as lines:
        for line in lines:
            found = INSTRUCTION.match(line)
            if found:
                addresses.setdefault(int(found[1], 16))
    return result, list(addresses), bases


def trace_order(comparison, image):
    """Functions by probes, in the order of the first run's touches, and their threads."""
    rows = comparison.rows(
        "SELECT t.rva, t.thread FROM touches t JOIN traces f ON f.id = t.trace"
        " JOIN images i ON i.id = f.image JOIN processes p ON p.id = f.process"
        " WHERE i.name = ? AND p.run = (SELECT min(id) FROM runs WHERE kind = 'trace')"
        " ORDER BY t.seq", image)
    return [row["rva"] for row in rows], {row["thread"] for row in rows}


def compare(case, folder, ordered):
    """One way of the program, for all images of the case."""
    comparison = completeness.Comparison(case, folder)
    plain = case.outcome(comparison.original)[0]
    harness.profile(comparison.path, case, comparison.instrumented)
    result, addresses, bases = emulate(case, comparison.original, case.runs[0])
    require((result.stdout, result.code) == (plain.stdout, plain.code), result.describe())
    for image in case.images:
        require(image in bases, f"\"{image}\" was not loaded: {bases}")
        compare_image(comparison, image, addresses, bases[image], ordered)


def compare_image(comparison, image, addresses, base, ordered):
    functions = comparison.functions(image)
    code = {rva for rva, size in comparison.images[image].code_sections()
            for rva in range(rva, rva + size)}
    executed = [address - base for address in addresses if address - base in code]
    reached = [rva for rva in executed if rva in functions]
    traced, threads = trace_order(comparison, image)
    harness.note(f"{comparison.case.name} {image}: {len(executed)} instructions in "
                 f"{len(reached)} functions by the emulator, {len(traced)} by probes")
    require(reached, "the emulator saw nothing")
    require_all_known(functions, executed)
    ranges = [(rva, rva + functions[rva]["size"]) for rva in reached]
    comparison.images[image].study(set(reached))
    instrumented = (comparison.instrumented / image).read_bytes()
    reasons = {rva: completeness.explain_lost(comparison.images[image], functions[rva],
                                              ranges, instrumented) for rva in reached}
    lost = set(reached) - set(traced)
    open_questions = [f"0x{rva:x} {functions[rva]['name']}: only the emulator"
                      for rva in lost if not reasons[rva]]
    open_questions += [f"0x{rva:x}: only probes" for rva in set(traced) - set(reached)]
    if lost:
        harness.note(f"explained: {sorted(str(reasons[rva]) for rva in lost)}")
    require(not open_questions,
            f"{len(open_questions)} not explained: {open_questions[:40]}")
    if ordered:
        require(len(threads) == 1, f"{len(threads)} threads have no order among them")
        require_same_order(*([rva for rva in story if not reasons[rva]]
                             for story in (traced, reached)))


def require_same_order(traced, reached):
    """Of the functions whose every way in leads through their thunk."""
    harness.note(f"order of {len(reached)} functions compared")
    for i, (a, b) in enumerate(zip(traced, reached, strict=True)):
        require(a == b, f"touch {i}: 0x{a:x} by probes, 0x{b:x} by the emulator")


def require_all_known(functions, executed):
    """Every executed instruction lies in code that discovery has understood."""
    known = set()
    for function in functions.values():
        if "unknown-bytes" not in (function["pins"] or ""):
            known.update(range(function["rva"], function["rva"] + function["size"]))
    astray = [f"0x{rva:x}" for rva in executed if rva not in known]
    require(not astray, f"{len(astray)} executed outside all functions: {astray[:20]}")


# Of one thread each, but for the ones of `THREADS`; none that builds on the processor's
# own exceptions, which the emulator does not hand to Wine as it expects them (observed:
# qemu 7.2, Wine 8.0).
FIXTURES = ["cxx_exceptions", "data_imports", "delay_load", "exports", "frames",
            "function_pointers", "itself", "jump_tables", "tail_calls", "tiny",
            "tls_callbacks"]
USUAL = ("gcc-O2", "clang-O2")
THREADS = ("cxx_exceptions", "libstdc++", "tls_callbacks")


def cases_of(what):
    if what == "fixtures":
        return [case for case in harness.fixture_cases()
                if case.name.split()[0] in FIXTURES and case.name.split()[1] in USUAL]
    libstdcxx = harness.libstdcxx_case()
    # Who waits for a lock depends on how fast the program is.
    libstdcxx.images.remove("libwinpthread-1.dll")
    return [harness.sqlite_case("sqlite-gcc"), harness.sqlite_case("sqlite-clang"),
            harness.zlib_case(), libstdcxx]


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what not in ("fixtures", "real"):
        sys.exit(__doc__)
    harness.prepare_wine()
    for case in cases_of(what):
        case.runs = case.runs[:1]
        with harness.work_folder() as folder, claim(f"{case.name}: probes and emulator"):
            compare(case, folder, case.name.split()[0] not in THREADS)
    harness.finish()


if __name__ == "__main__":
    main()
