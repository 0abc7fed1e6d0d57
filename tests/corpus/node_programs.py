"""Node and its addons at work: scripts/NAME.js in node.exe.

Each script prints what it does and ends with "done"; where something else than the program
can know the right answer, expect() asks it.
"""

import base64
import hashlib
import hmac
import pathlib
import re
import zlib

import corpus
import harness
from harness import require

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
HOST = "node-18.exe"   # the smallest
UNCAUGHT, BY_ITSELF = 13, 3


def taken(prefix, to=""):
    """Files of the manifest under a folder, laid into another."""
    return [(corpus.path_of(name), to + name.removeprefix(prefix))
            for name in corpus.manifest() if name.startswith(prefix)]


class Node(harness.Case):
    """A node.exe that runs scripts, and addons beside it."""

    def __init__(self, name, scripts, images, files, codes=None, host=HOST):
        self.codes = codes or {}
        wanted = {script: SCRIPTS / f"{script}.js" for script in scripts}
        attempts = 2 if "node.exe" in images else 0   # each takes minutes
        super().__init__(
            name, [(corpus.path_of(host), "node.exe"),
                   (harness.BUILD / "fixtures" / "bcryptprimitives.dll",
                    "bcryptprimitives.dll"),
                   *((path, path.name) for path in wanted.values()), *files],
            "node.exe", images, [[path.name] for path in wanted.values()], seconds=240,
            attempts=attempts)

    def stage(self, folder):
        """A node.exe that stays as it is need not be copied: it is big."""
        super().stage(folder)
        if "node.exe" not in self.images:
            source = dict((name, path) for path, name in self.files)["node.exe"]
            (folder / "node.exe").unlink()
            (folder / "node.exe").symlink_to(source)
        return folder

    def expect(self, folder, results):
        for (script,), result in zip(self.runs, results):
            require(result.code == self.codes.get(script, 0)
                    and re.search(rb"(^|\s)done\s", result.stdout), result.describe())
            check = CHECKS.get(script)
            if check:
                check(result.stdout.decode())


# ---- what Python knows ------------------------------------------------------------------

def pattern(size):
    return bytes((i * 7 + (i >> 5)) & 255 for i in range(size))


PYTHON_NAMES = {"blake2b512": "blake2b", "blake2s256": "blake2s", "sha3-256": "sha3_256",
                "sha3-512": "sha3_512"}


def check_crypto(text):
    seen = 0
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "hash":
            right = hashlib.new(PYTHON_NAMES.get(words[0], words[0]),
                                pattern(int(words[1]))).hexdigest()
        elif kind == "hmac":
            right = hmac.new(pattern(int(words[1])), b"what do ya want for nothing?",
                             words[0]).hexdigest()
        elif kind == "pbkdf2":
            right = hashlib.pbkdf2_hmac("sha256", b"password", b"salt", int(words[0]),
                                        40).hex()
        elif kind == "scrypt":
            right = hashlib.scrypt(b"password", salt=b"NaCl", n=1024, r=8, p=16).hex()
        else:
            continue
        seen += 1
        require(words[-1] == right, f"{line}: {right} is right")
    require(seen == 99, f"{seen} known answers")


def check_compression(text):
    packed = dict(re.findall(r"^packed (\w+) (\S+)$", text, re.MULTILINE))
    plain = {name: zlib.decompress(base64.b64decode(packed[name]), bits)
             for name, bits in (("zlib", 15), ("gzip", 31), ("raw", -15))}
    state, numbers = 12345, []
    while len(numbers) < 300 + 9000 + 5000:
        state = (state * 1103515245 + 12345) & 0x7fffffff
        numbers.append(state >> 8)
    require(plain["raw"] == bytes(n & 255 for n in numbers[9300:]), "other noise")
    require(plain["zlib"] == plain["gzip"] and plain["zlib"].count(b" ") == 8999, "other text")


def check_bundle(text):
    for piece in ("class C399 extends (C398)", '"\\u{1f600}\\x41"', "sourceMappingURL",
                  '"mappings":"', "REDECLARATION_ERROR m (1:15)", "MISSING_EXPORT",
                  "PARSE_ERROR m (2:8): Expression expected"):
        require(piece in text, f"no {piece}")


def check_styles(text):
    for piece in (".card .title", "#ff000080", "Unexpected end of input",
                  ".p{composes:q from \"./q.css\";color:#639}", '"mappings":"'):
        require(piece in text, f"no {piece}")


def check_pictures(text):
    """The one that is written out, by Python's own inflate."""
    packed = base64.b64decode(re.search(r"^packed (\S+)$", text, re.MULTILINE)[1])
    at, data = 8, b""
    while at < len(packed):
        size = int.from_bytes(packed[at:at + 4], "big")
        if packed[at + 4:at + 8] == b"IDAT":
            data += packed[at + 8:at + 8 + size]
        at += size + 12
    rows, line = zlib.decompress(data), 3 * 150
    require(len(rows) == 100 * (1 + line), f"{len(rows)} bytes of rows")
    for y in range(100):
        filtered, *row = rows[y * (1 + line):(y + 1) * (1 + line)]
        require(filtered == 0 and bytes(row) == pattern(line * 100)[y * line:(y + 1) * line],
                f"row {y} differs")


CHECKS = {
    "node_crypto.js": check_crypto,
    "node_compression.js": check_compression,
    "addon_rollup.js": check_bundle,
    "addon_lightningcss.js": check_styles,
    "addon_sharp.js": check_pictures,
}

# ---- programs ---------------------------------------------------------------------------

LANGUAGE = {"node_language.js": UNCAUGHT}
ROLLUP_IMAGE = "dist/rollup.win32-x64-msvc.node"
LIGHTNINGCSS_IMAGE = "lightningcss.win32-x64-msvc.node"


def rollup_files():
    return [*taken("rollup/"), (corpus.path_of("rollup.node"), ROLLUP_IMAGE)]


def lightningcss_files():
    return [*taken("lightningcss/"), (corpus.path_of("lightningcss.node"), LIGHTNINGCSS_IMAGE)]


def node(host=HOST):
    """node.exe itself, with addons as they came."""
    return Node(host.removesuffix(".exe"), ["node_crypto", "node_compression", "node_language",
                "node_threads", "addon_rollup", "addon_lightningcss"], ["node.exe"],
                rollup_files() + lightningcss_files(), LANGUAGE, host)


def rollup():
    return Node("rollup", ["addon_rollup"], [ROLLUP_IMAGE], rollup_files())


def lightningcss():
    return Node("lightningcss", ["addon_lightningcss"], [LIGHTNINGCSS_IMAGE],
                lightningcss_files())


def together():
    """node.exe and two addons, all of them transformed."""
    return Node("node-and-addons", ["addon_rollup", "addon_lightningcss"],
                ["node.exe", ROLLUP_IMAGE, LIGHTNINGCSS_IMAGE],
                rollup_files() + lightningcss_files())


def swc():
    return Node("swc", ["addon_swc"], ["swc.node"], [(corpus.path_of("swc.node"), "swc.node")])


def sharp():
    folder = "node_modules/@img/sharp-win32-x64/lib"
    return Node("sharp", ["addon_sharp"],
                [f"{folder}/{name}" for name in ("libvips-42.dll", "libvips-cpp-8.18.7.dll",
                                                 "sharp-win32-x64-0.35.5.node")],
                taken("sharp/", "node_modules/"))


def duckdb_addon():
    return Node("duckdb-addon", ["addon_duckdb"], ["duckdb.node"],
                [(corpus.path_of(name), name) for name in ("duckdb.node", "duckdb.dll")])


def node_pty():
    folder = "prebuilds/win32-x64"
    return Node("node-pty", ["addon_pty"],
                [f"{folder}/{name}" for name in ("conpty.node", "conpty_console_list.node",
                                                 "pty.node", "winpty.dll")],
                [(path, name) for path, name in taken("node-pty/")
                 if not name.endswith(".pdb")], {"addon_pty.js": BY_ITSELF})


class WinptyAgent(harness.Case):
    """Under Wine it ends as soon as winpty.dll starts it, so it is asked for less."""

    def __init__(self):
        super().__init__("winpty-agent", [
            (corpus.path_of("node-pty/prebuilds/win32-x64/winpty-agent.exe"),
             "winpty-agent.exe")], "winpty-agent.exe", ["winpty-agent.exe"],
            [["--version"], [], ["--no-such-option"], ["pipe", "0", "0", "80", "25"]])

    def outcome(self, folder, variables=None):
        """Without the path of the program, which its usage tells."""
        results = super().outcome(folder, variables)
        for result in results:
            result.stdout = re.sub(rb"Z:\\\S*\\", b"", result.stdout)
            result.stderr = re.sub(rb"Z:\\\S*\\", b"", result.stderr)
        return results

    def expect(self, folder, results):
        require(results[0].stdout.startswith(b"winpty version 0.4.4"), results[0].describe())
        require([result.code for result in results] == [0, 1, 1, 1],
                [result.describe() for result in results])


# ---- DuckDB, by a program in C ----------------------------------------------------------

class DuckDB(harness.Case):
    def __init__(self):
        super().__init__("duckdb", [
            (harness.BUILD / "fixtures" / "duckdb" / "gcc-O2" / "duckdb.exe", "duckdb.exe"),
            (corpus.path_of("duckdb.dll"), "duckdb.dll")], "duckdb.exe", ["duckdb.dll"],
            [["start"], ["broad"]], seconds=240)

    def before(self, folder, number):
        (folder / "duckdb_out.csv").unlink(missing_ok=True)

    def expect(self, folder, results):
        said = results[1].stdout.decode()
        rows = [(i, i * 7919 % 10007) for i in range(60000)]
        chosen = [k for _, k in rows if k % 3 == 1]
        fibonacci = [0, 1]
        while fibonacci[-1] < 10 ** 20:
            fibonacci.append(sum(fibonacci[-2:]))
        require(results[0].stdout.endswith(b"\n    6 | one+two\r\ndone\r\n"),
                results[0].describe())
        for piece in (f"    {len(chosen)} | {sum(chosen)} | name0 | ",
                      f"    {fibonacci[-2]}\r\n", hashlib.sha256(b"x").hexdigest(),
                      *(f"    {sum(k < n and i % 97 != 96 for i, k in rows)} | name95\r\n"
                        for n in (1000, 2000, 3000)),
                      "error: Parser Error: syntax error at or near \"SELEC\"",
                      "error: Invalid Input Error: by ourselves", "15 of 15", "done"):
            require(piece in said, f"no {piece}: {results[1].describe()}")

