#!/usr/bin/env python3
"""`appulse optimize` on real programs: what it says, what it makes, what it leaves."""

import math
import os
import signal
import subprocess
import time

import harness
from harness import claim, require

FLOOR_FACTOR = 1.05
GROWTH = 1.01


def state(folder):
    return {path.name: (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns,
                        path.stat().st_mode) for path in folder.iterdir()}


def words(case, *options):
    images = [word for image in case.images for word in ("--image", image)]
    return ["optimize", *images, "-o", "../out", *options, "--", "wine", case.exe,
            *case.runs[0]]


def check_image(trip, image):
    """One image of the report against the files and the other tools."""
    folder, out = trip / "original", trip / "out"
    name = image["path"]
    require(image["size_before"] == (folder / name).stat().st_size, image)
    require(image["size_after"] == (out / name).stat().st_size, image)
    require(image["size_after"] <= GROWTH * image["size_before"] + 4096, f"grew: {image}")
    require(image["pages_floor"] == math.ceil(image["touched_bytes"] / 4096), image)
    require(0 < image["touched_functions"] <= image["functions"], image)
    require(0 < image["pages_after"] <= image["pages_before"] <= image["code_pages"], image)
    harness.tool("appulse", "reorder", "verify", folder / name, out / name)


def optimize(case, folder):
    original = case.stage(folder / "original")
    before, expected = state(original), case.outcome(original)
    report = harness.tool("appulse", *words(case, "--json", "--exit-code", expected[0].code),
                          cwd=original, seconds=300).json()
    require(state(original) == before, f"left something: {sorted(state(original))}")
    require(report["command_stdout"] == "same", report)
    require([image["path"] for image in report["images"]] == case.images, report)
    for image in report["images"]:
        check_image(folder, image)
    made = {path.name for path in (folder / "out").iterdir()}
    require(made == {"profile.db"} | {name + end for name in case.images
                                      for end in ("", ".map.json")}, made)
    relinked = case.stage(folder / "relinked")
    for name in case.images:
        harness.shutil.copy(folder / "out" / name, relinked / name)
    harness.require_same(expected, case.outcome(relinked), "relinked")
    return report


def whole(case, near_floor):
    with harness.work_folder() as folder, claim(f"{case.name}: optimize"):
        report = optimize(case, folder)
        for image in report["images"]:
            harness.note(f"{image['path']}: code pages {image['pages_before']} before, "
                         f"{image['pages_after']} after, floor {image['pages_floor']}")
            require(not near_floor or
                    image["pages_after"] <= FLOOR_FACTOR * image["pages_floor"], image)


def wait_for(condition, process):
    for _ in range(600):
        if condition() or process.poll() is not None:
            return condition()
        time.sleep(0.05)
    return False


def ended(case, signal_number):
    """By a signal while the program runs instrumented: everything is put back, by the
    driver itself or by the next command."""
    with harness.work_folder() as folder, \
            claim(f"{case.name}: optimize, ended by {signal_number.name}"):
        original = case.stage(folder / "original")
        before = state(original)
        aside = original / (case.images[0] + ".appulse-original")
        process = subprocess.Popen(
            [harness.tool_path("appulse"), *words(case, "--runs", "1000", "--no-pages")],
            cwd=original, env=harness.wine_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        require(wait_for(aside.exists, process), "images were swapped")
        process.send_signal(signal_number)
        code = process.wait(60)
        if signal_number == signal.SIGKILL:
            require(code == -signal.SIGKILL, code)
            harness.tool("appulse", "restore", original)
        else:
            require(code == 1, code)
        require(state(original) == before, f"left something: {sorted(state(original))}")


def main():
    harness.prepare_wine()
    sqlite = harness.sqlite_case("sqlite-gcc")
    whole(sqlite, True)
    whole(harness.libstdcxx_case(), False)
    for name in ("children", "reload", "cxx_exceptions"):
        whole(harness.fixture_case(name, "gcc-O2"), False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        ended(sqlite, number)
    harness.finish()


main()
