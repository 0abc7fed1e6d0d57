#!/usr/bin/env python3
"""How much of each real image may move, and why the rest may not.

    movable_share.py [NAME...] [--pairs N]

For each image: its functions and code bytes, the shares that may move, and pinned functions
and bytes by reason.  For the largest one (DuckDB's DLL, 25 MB of code) also what discovery
and the relink cost, as transform_cost.py measures it.  Names are those of corpus.py.
"""

import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "corpus"))

import corpus  # noqa: E402
import paired  # noqa: E402
import transform_cost  # noqa: E402

PTY = "node-pty/prebuilds/win32-x64"
IMAGES = ["7za.exe", "rollup.node", "lightningcss.node", "swc.node", "duckdb.dll", "duckdb.node",
          f"{PTY}/conpty.node", f"{PTY}/conpty_console_list.node", f"{PTY}/pty.node",
          f"{PTY}/winpty.dll", f"{PTY}/winpty-agent.exe", f"{PTY}/conpty/conpty.dll",
          f"{PTY}/conpty/OpenConsole.exe", "node-18.exe", "node-20.exe", "node-22.exe",
          "wine/kernelbase.dll", "wine/user32.dll", "wine/ole32.dll", "wine/msvcrt.dll",
          "sqlite-gcc", "sqlite-clang", "libstdc++-6.dll", "libgfortran-5.dll", "zlib1.dll"]
LARGEST = "duckdb.dll"
COLUMNS = [paired.Column("functions", "functions", 9, "count"),
           paired.Column("functions_share", "", 8, "share"),
           paired.Column("bytes", "bytes", 10, "bytes"),
           paired.Column("bytes_share", "", 8, "share"),
           paired.Column("pins", "  pinned: functions/bytes", 0, "")]


def row(name):
    done = subprocess.run([transform_cost.REORDER, corpus.path_of(name), "--dry-run", "--json",
                           "--order", "original", "--quiet"], capture_output=True)
    if done.returncode:
        raise paired.Failure(f"{name}: {done.stderr.decode()}")
    image = json.loads(done.stdout)["image"]
    pins = ", ".join(f"{pin['reason']} {pin['functions']}/{pin['bytes']}"
                     for pin in image["pins"])
    return {"functions": image["functions"],
            "functions_share": image["movable_functions"] / image["functions"],
            "bytes": image["bytes"],
            "bytes_share": image["movable_bytes"] / image["bytes"],
            "pins": f"  {pins}"}


def benchmark(arguments):
    report = paired.Report("movable_share", 24, COLUMNS)
    for name in arguments.images:
        report.add(name.rsplit("/", 1)[-1], None, **row(name))
    if LARGEST in arguments.images:
        arguments.images = [LARGEST]
        report.figures.figures += transform_cost.benchmark(arguments).figures.figures
    return report


if __name__ == "__main__":
    sys.exit(transform_cost.main(benchmark, IMAGES, __doc__))
