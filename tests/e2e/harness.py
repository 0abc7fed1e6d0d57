#!/usr/bin/env python3
"""What the end-to-end tests share: Wine, the tools, the programs to run, and results.

    harness.py --environment BUILD     prints shell lines that set up Wine for BUILD

All tests of a build folder use one Wine prefix, BUILD/wine: making one takes seconds, and
a server that is warm starts a program at once.  Whoever comes first makes it.  The server
stays for a minute after the last program and then ends by itself; nothing here ends it
while another test may be using it.

A test program calls check() for each of its claims and finish() at the end; the output is
TAP.  A claim that fails tells all that is needed to do it again by hand.
"""

import contextlib
import dataclasses
import difflib
import fcntl
import filecmp
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("APPULSE_BUILD", SOURCE / "build")).resolve()

sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "tests" / "corpus"), str(SOURCE / "fixtures")]

import build as fixtures  # noqa: E402  fixtures/build.py
import corpus  # noqa: E402

SERVER_SECONDS = 60
WINE_SECONDS = 60
STARTS = 3
RESTARTS = 2    # in a test program; more are no accident
TOOL_SECONDS = 120
# On a machine that does much else, all limits times this.
PATIENCE = float(os.environ.get("APPULSE_PATIENCE", "1"))


# ---- results ---------------------------------------------------------------------------

class Results:
    count = failed = restarts = 0


def note(text):
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def check(name, good, detail=""):
    """One claim, with what to look at when it does not hold."""
    Results.count += 1
    Results.failed += not good
    print(f"{'ok' if good else 'not ok'} {Results.count} - {name}".replace("#", "-"),
          flush=True)
    if not good:
        note(detail)
    return good


def finish():
    if Results.restarts > RESTARTS:
        check("Wine starts programs", False, f"{Results.restarts} were started again")
    print(f"1..{Results.count}")
    sys.exit(1 if Results.failed or not Results.count else 0)


class Failure(Exception):
    """A step that the rest of the claim builds on."""


@contextlib.contextmanager
def claim(name):
    """The body is the claim: it holds when it comes to its end."""
    try:
        yield
    except (Failure, corpus.CorpusError) as failure:
        check(name, False, failure)
    else:
        check(name, True)


def require(good, detail):
    if not good:
        raise Failure(detail)


# ---- programs --------------------------------------------------------------------------

@dataclasses.dataclass
class Result:
    command: list
    stdout: bytes
    stderr: bytes
    code: int   # negative: the signal; None: ran out of time

    def describe(self):
        return (f"{shlex.join(map(str, self.command))}\nexit code {self.code}\n"
                f"stdout: {self.stdout[-1500:].decode(errors='replace')}\n"
                f"stderr: {self.stderr[-1500:].decode(errors='replace')}")

    def json(self):
        return json.loads(self.stdout)


def run(command, cwd=None, environment=None, seconds=TOOL_SECONDS):
    """Output goes through files: a pipe would stay open as long as a server of Wine's that
    the program happened to start."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(word) for word in command], cwd=cwd, stdout=out,
                                   stderr=err, stdin=subprocess.DEVNULL, env=environment,
                                   start_new_session=True)
        try:
            code = process.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        err.seek(0)
        return Result(command, out.read(), err.read(), code)


TOOL_FOLDERS = {"appulse": "reorder", "appulse-instrument": "instrument",
                "appulse-profile": "profile", "appulse-reorder": "reorder"}


def tool_path(name):
    return BUILD / TOOL_FOLDERS[name] / name


def tool(name, *arguments, expect=0, **more):
    """Runs one of ours; any other exit code is a failure."""
    result = run([tool_path(name), *arguments], environment=wine_environment(), **more)
    require(result.code == expect, result.describe())
    return result


# ---- Wine ------------------------------------------------------------------------------

def wine_variables():
    return {"WINEPREFIX": str(BUILD / "wine"), "WINEDEBUG": "-all", "DISPLAY": "",
            # No installers for parts that no test needs, and no debugger for a crash.
            # Wine brings a zlib1.dll of its own, which it prefers to the program's.
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winedbg.exe=d;zlib1=n,b"}


def wine_environment():
    return os.environ | wine_variables()


def prepare_wine():
    """Makes the prefix if there is none, and sees to it that the server stays a while."""
    ready = BUILD / "wine" / "ready-win10"
    with open(BUILD / "wine.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            for _ in range(3):
                shutil.rmtree(BUILD / "wine", ignore_errors=True)
                made = run(["wineboot", "-i"], environment=wine_environment(), seconds=300)
                if made.code == 0:
                    break
            else:
                sys.exit(made.describe())
            # Written out at its end: from then on the prefix is whole.
            run(["wineserver", "-w"], environment=wine_environment(), seconds=120)
            # Node and others refuse the Windows that Wine 8 plays by default.
            run(["wine", "winecfg", "-v", "win10"], environment=wine_environment())
            run(["wineserver", "-w"], environment=wine_environment(), seconds=120)
            ready.touch()
        run(["wineserver", f"-p{SERVER_SECONDS}"], environment=wine_environment())


def never_began(result):
    """Whether a program ended as one that Wine could not start: with 1, and not a word.
    Observed once in some thousand starts (Wine 8.0, Linux 6.18): the kernel has put
    the heap where Windows has the shared user data, and Wine "failed to map" that."""
    return result.code == 1 and not result.stdout and not result.stderr


def run_wine(exe, arguments=(), cwd=None, seconds=WINE_SECONDS, variables=None):
    return run(["wine", exe, *arguments], cwd=cwd, seconds=seconds,
               environment=wine_environment() | (variables or {}))


# ---- what is run -----------------------------------------------------------------------

@dataclasses.dataclass
class Case:
    """A folder with a program, the images in it that a test may transform, and the ways to
    run the program, one after the other."""
    name: str
    files: list           # copied beside each other
    exe: str
    images: list
    runs: list            # argument lists
    seconds: int = WINE_SECONDS   # for one run
    attempts: int = 0             # of completeness.py; 0: as many as usual

    def stage(self, folder):
        """A private copy of all that the program needs."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for path, name in self.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)
        return folder

    def before(self, folder, number):
        """Called before each run with its number: makes its input and clears away what
        earlier ones left."""

    def outcome(self, folder, variables=None):
        """What the program does in all its ways: enough to tell one from another."""
        return [self.way(folder, number, variables) for number in range(len(self.runs))]

    def way(self, folder, number, variables):
        for start in range(STARTS):
            self.before(folder, number)
            result = run_wine(self.exe, self.runs[number], cwd=folder, variables=variables,
                              seconds=self.seconds)
            if not never_began(result):
                break
        else:
            return result   # each time, so it is the program
        if start:
            Results.restarts += 1
            note(f"started {start + 1} times: {self.exe} in {folder}")
        return result


RUNS = {
    "itself": [[], ["uncaught"]],
    "sqlite": [["start"], ["broad"]],
    "libstdcxx": [[]],
}


def fixture_case(name, variant):
    folder = BUILD / "fixtures" / name / variant
    ours = [dll for _, dll, _ in fixtures.FIXTURES[name][0]] + [f"{name}.exe"]
    files = [(path, path.name) for path in sorted(folder.iterdir())]
    return Case(f"{name} {variant}", files, f"{name}.exe", ours, RUNS.get(name, [[]]))


# Not fixtures by themselves: programs for real images.
DRIVERS = ("duckdb", "libstdcxx", "sqlite", "wine", "zlib")


def fixture_cases():
    return [fixture_case(name, variant) for name, (_, _, variants) in
            fixtures.FIXTURES.items() if name not in DRIVERS for variant in variants]


def driver_case(driver, label, images):
    """A driver with real images laid beside it, in place of those that it was built with."""
    files = {p.name: p for p in sorted((BUILD / "fixtures" / driver / "gcc-O2").iterdir())}
    for corpus_name, name in images:
        files[name] = corpus.path_of(corpus_name)
    return Case(f"{label}", [(path, name) for name, path in files.items()],
                f"{driver}.exe", [name for _, name in images], RUNS.get(driver, [[]]))


SQLITE = ["sqlite-gcc", "sqlite-gcc-stripped", "sqlite-clang", "sqlite-clang-stripped"]
SQLITE_MORE = [f"sqlite-{compiler}-{level}-sections" for compiler in ("gcc", "clang")
               for level in ("O0", "Os", "O2")]


def sqlite_case(build):
    return driver_case("sqlite", build, [(build, "sqlite3.dll")])


def libstdcxx_case():
    return driver_case("libstdcxx", "libstdc++", [
        (name, name) for name in ("libstdc++-6.dll", "libgcc_s_seh-1.dll",
                                  "libwinpthread-1.dll")])


def zlib_case():
    return driver_case("zlib", "zlib", [("zlib1.dll", "zlib1.dll")])


def real_cases():
    return [*(sqlite_case(build) for build in SQLITE + SQLITE_MORE), libstdcxx_case(),
            zlib_case()]


@contextlib.contextmanager
def work_folder():
    """Below the build folder, so that what a killed test left goes with it."""
    (BUILD / "e2e").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD / "e2e") as folder:
        yield pathlib.Path(folder)


# ---- transformations -------------------------------------------------------------------

def relink(source, target, *arguments):
    """appulse-reorder from one file to another; what --json says."""
    return tool("appulse-reorder", source, "-o", target, "--force", "--json",
                *arguments).json()


def instrument(source, target, database):
    return tool("appulse-instrument", source, "-o", target, "--db", database, "--force",
                "--json").json()


def profile_way(database, case, folder, number, command="run", options=(), variables=None):
    """One way of a case's program; a run in the database, its scenario "wayN"."""
    case.before(folder, number)
    result = run([tool_path("appulse-profile"), command, "--db", database, "--json",
                  "--scenario", f"way{number}", *options, "--", "wine", case.exe,
                  *case.runs[number]], cwd=folder,
                 environment=wine_environment() | (variables or {}),
                 seconds=TOOL_SECONDS + case.seconds)
    # The program's own exit code may well be a failure: then that is its class.
    require(result.code in (0, 1) and result.stdout, result.describe())
    report = result.json()
    require(report["status"] in ("ok", "command-failed"), result.describe())
    return report


def profile(database, case, folder, command="run", options=()):
    """Every way of a case's program, each a run of its own."""
    return [profile_way(database, case, folder, number, command, options)
            for number in range(len(case.runs))]


def relink_all(case, original, folder, *arguments):
    """Relinks all images of a case, from one staged folder to another."""
    return [relink(original / image, folder / image, *arguments) for image in case.images]


def first_difference(expected, found):
    """The lines around it, of two outputs."""
    lines = [text.decode(errors="replace").splitlines() for text in (expected, found)]
    return "\n".join(list(difflib.unified_diff(*lines, "expected", "found", lineterm="",
                                               n=1))[:20])


def require_same(expected, found, what):
    for e, f in zip(expected, found, strict=True):
        require((e.stdout, e.stderr, e.code) == (f.stdout, f.stderr, f.code),
                f"{what}\n{first_difference(e.stdout, f.stdout)}\n"
                f"expected: {e.describe()}\nfound: {f.describe()}")


def seeds(count):
    """The same ones on every machine, unless APPULSE_SEED says where to begin."""
    first = int(os.environ.get("APPULSE_SEED", "1"))
    return range(first, first + count)


def same_bytes(a, b):
    return filecmp.cmp(a, b, shallow=False)


def sections(data):
    """(RVA, virtual size, file offset, size in the file, characteristics) of each."""
    header = int.from_bytes(data[60:64], "little")
    count = int.from_bytes(data[header + 6:header + 8], "little")
    table = header + 24 + int.from_bytes(data[header + 20:header + 22], "little")
    for at in range(table, table + 40 * count, 40):
        virtual_size, rva, raw_size, raw = struct.unpack_from("<4I", data, at + 8)
        yield rva, virtual_size, raw, raw_size, *struct.unpack_from("<I", data, at + 36)


def file_offset(data, rva):
    return next(raw + rva - begin for begin, _, raw, raw_size, _ in sections(data)
                if begin <= rva < begin + raw_size)


def code_ranges(data):
    """File ranges of an image's sections that hold code."""
    return [(raw, raw + min(virtual_size, raw_size))
            for _, virtual_size, raw, raw_size, flags in sections(data) if flags & 0x20]


def added_from(instrumented):
    """Where in the file what instrumenting adds begins."""
    return int.from_bytes(instrumented[instrumented.index(b".apcode\0"):][20:24], "little")


def function_table(data):
    """The file range of an image's exception directory."""
    header = int.from_bytes(data[60:64], "little")
    directory, size = struct.unpack_from("<2I", data, header + 24 + 112 + 3 * 8)
    for rva, virtual_size, raw, _, _ in sections(data):
        if rva <= directory < rva + virtual_size:
            return raw + directory - rva, raw + directory - rva + size
    return 0, 0


def relocations(data):
    """RVAs of the relocated words of 64 bits (PE/COFF specification, ".reloc Section"), and
    the file range of their table."""
    header = int.from_bytes(data[60:64], "little")
    directory, size = struct.unpack_from("<2I", data, header + 24 + 112 + 5 * 8)
    begin = file_offset(data, directory)
    words, at = [], begin
    while at < begin + size:
        page, block = struct.unpack_from("<2I", data, at)
        for entry, in struct.iter_unpack("<H", data[at + 8:at + block]):
            if entry >> 12 == 10:
                words.append(page + (entry & 0xfff))
        at += block
    return words, (begin, begin + size)


def fix_base(data, base=None):
    """The image as a linker makes it for a fixed base, another one if that is asked for:
    without base relocations, and marked so."""
    data = bytearray(data)
    header = int.from_bytes(data[60:64], "little")
    characteristics, = struct.unpack_from("<H", data, header + 22)
    dll_characteristics, = struct.unpack_from("<H", data, header + 24 + 70)
    old_base, = struct.unpack_from("<Q", data, header + 24 + 24)
    words, (begin, end) = relocations(data)
    for rva in words if base is not None else []:
        offset = file_offset(data, rva)
        word, = struct.unpack_from("<Q", data, offset)
        struct.pack_into("<Q", data, offset, word - old_base + base)
    data[begin:end] = bytes(end - begin)
    struct.pack_into("<2I", data, header + 24 + 112 + 5 * 8, 0, 0)
    struct.pack_into("<H", data, header + 22, characteristics | 1)
    struct.pack_into("<H", data, header + 24 + 70, dll_characteristics & ~0x60)
    struct.pack_into("<Q", data, header + 24 + 24, old_base if base is None else base)
    return bytes(data)


def is_fixed(data):
    """Whether the image says that it has no base relocations."""
    header = int.from_bytes(data[60:64], "little")
    return bool(struct.unpack_from("<H", data, header + 22)[0] & 1)


def may_hold_address(data, address):
    """Whether some word of an image at a fixed base equals the address."""
    return is_fixed(data) and (
        address.to_bytes(8, "little") in data
        or address < 1 << 32 and address.to_bytes(4, "little") in data)


class FixedCase(Case):
    """A case whose images lie at a fixed base, one above the other from `base` on if there is
    one."""
    base = None

    def stage(self, folder):
        folder = super().stage(folder)
        for number, image in enumerate(self.images):
            base = self.base and self.base + number * 0x4000000
            path = folder / image
            path.write_bytes(fix_base(path.read_bytes(), base))
        return folder


def fixed(case, base=None):
    where = f", base 0x{base:x}" if base else ""
    made = FixedCase(f"{case.name}, fixed{where}", case.files, case.exe, case.images,
                     case.runs, case.seconds, case.attempts)
    made.base = base
    return made


def break_code(source, target, share, seed):
    """Overwrites a share of the code with int3, in pieces of 64 bytes."""
    data = bytearray(source.read_bytes())
    pieces = [at for begin, end in code_ranges(data) for at in range(begin, end - 64, 64)]
    for at in random.Random(seed).sample(pieces, int(len(pieces) * share)):
        data[at:at + 64] = b"\xcc" * 64
    target.write_bytes(data)


def main():
    global BUILD
    if len(sys.argv) != 3 or sys.argv[1] != "--environment":
        sys.exit("usage: harness.py --environment BUILD")
    BUILD = pathlib.Path(sys.argv[2]).resolve()
    prepare_wine()
    for name, value in wine_variables().items():
        print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
