#!/usr/bin/env python3
"""Kills `appulse optimize` at random moments: no original is ever lost.

    optimize_kills.py APPULSE PLAYED_TOOLS [COUNT]

The tools are played, so that the driver spends its time with files.  After each kill the
original must stand in the folder, whole and as the same file; then `appulse restore`, or
simply another run, must make the folder what it was.  The moments are those of seed 1, or
of $APPULSE_SEED.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

COMMAND = ["sh", "-c", "cat app/app.dll app/more.dll > seen; sleep 0.02"]
ORIGINALS = {"app.dll": b"an image\n" * 1000, "more.dll": b"one more\n", "notes.txt": b"notes\n"}
OUTPUTS = {"app.dll", "app.dll.map.json", "more.dll", "more.dll.map.json", "profile.db"}


def state(folder):
    """Everything of a folder that must not change."""
    return {path.name: (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns,
                        path.stat().st_mode) for path in folder.iterdir()}


def start(appulse, tools, folder):
    environment = os.environ | {name: str(tools) for name in (
        "APPULSE_INSTRUMENT", "APPULSE_PROFILE", "APPULSE_REORDER")}
    return subprocess.Popen(
        [appulse, "optimize", "--image", "app/app.dll", "--image", "app/more.dll", "-o", "out",
         "--force", "--quiet", "--runs", "2", "--", *COMMAND],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)


def require(good, what):
    if not good:
        sys.exit(f"not so: {what}")


def check_killed(app, before, when):
    now = state(app)
    for name in ORIGINALS:
        require(before[name] in (now.get(name), now.get(name + ".appulse-original")),
                f"{when}: '{name}' is there still: {sorted(now)}")
    return now != before


def put_right(number, appulse, tools, folder):
    if number % 2:
        done = subprocess.run([appulse, "restore", "app"], cwd=folder, capture_output=True)
        require(done.returncode == 0, done.stderr)
        return
    process = start(appulse, tools, folder)
    _, errors = process.communicate()
    require(process.returncode == 0, errors)


def main():
    appulse, tools = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    seed = int(os.environ.get("APPULSE_SEED", "1"))
    moments = random.Random(seed)
    swapped = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        app = folder / "app"
        app.mkdir()
        for file, data in ORIGINALS.items():
            (app / file).write_bytes(data)
        before = state(app)
        began = time.monotonic()
        put_right(0, appulse, tools, folder)
        length = time.monotonic() - began
        require(state(app) == before, "a whole run changes nothing")
        for number in range(count):
            process = start(appulse, tools, folder)
            delay = moments.uniform(0, 1.1 * length)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            when = f"seed {seed}, kill {number} after {delay:.3f} s"
            swapped += check_killed(app, before, when)
            put_right(number, appulse, tools, folder)
            require(state(app) == before, f"{when}: all as before: {sorted(state(app))}")
        put_right(0, appulse, tools, folder)
        left = {path.name for path in (folder / "out").iterdir()}
        require(left == OUTPUTS, f"only outputs are left: {left}")
    print(f"{count} kills, {swapped} of them while images were swapped")
    require(swapped, "a kill met swapped images")


main()
