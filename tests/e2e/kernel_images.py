#!/usr/bin/env python3
"""Drivers and boot images, linked by lld as Microsoft's kit does: they are never
instrumented, they can be relinked, and a driver's pageable code stays in its section.
Nothing runs them here: there is no kernel to load them."""

import json
import subprocess

import harness
from harness import claim, require

EXPORTS = "LIBRARY ntoskrnl.exe\nEXPORTS\nDbgPrint\n"
SEEDS = range(1, 9)
KINDS = {"native": "driver", "boot_application": "boot application",
         "efi_application": "EFI image", "efi_runtime_driver": "EFI image"}


def call(*words, cwd):
    subprocess.run([str(w) for w in words], cwd=cwd, check=True,
                   stdout=subprocess.DEVNULL)


def build(folder):
    (folder / "kernel.def").write_text(EXPORTS)
    call("x86_64-w64-mingw32-dlltool", "-d", "kernel.def", "-l", "kernel.lib", cwd=folder)
    call("clang", "--target=x86_64-pc-windows-msvc", "-O2", "-fno-builtin", "-c",
         harness.SOURCE / "fixtures" / "kernel_driver.c", "-o", "driver.obj", cwd=folder)
    for subsystem in KINDS:
        call("lld-link", "/driver", f"/subsystem:{subsystem}", "/entry:DriverEntry",
             "/nodefaultlib", "/section:INIT,ERD", f"/out:{subsystem}.sys", "driver.obj",
             "kernel.lib", cwd=folder)


def examine(image, kind):
    told = harness.tool("appulse", "doctor", image, "--json").json()
    require(told["image"]["kind"] == kind, f"kind {told['image']['kind']}")
    require(told["reorder"]["possible"], "cannot be reordered")
    require(told["instrument"]["reason"] == "unsupported", "can be instrumented")
    require(told["image"]["movable_functions"] == told["image"]["functions"],
            "something is pinned")


def refuse(image, folder):
    harness.tool("appulse-instrument", image, "-o", folder / "out.sys", "--db",
                 folder / "t.db", expect=3)
    require(not (folder / "out.sys").exists(), "there is an output")


def sections(image):
    """Name, begin and end of each section, by LLVM."""
    text = subprocess.run(["llvm-readobj", "--sections", image],
                          check=True, capture_output=True, text=True).stdout
    found = []
    for line in text.splitlines():
        word, _, value = line.strip().partition(": ")
        if word == "Name":
            found.append([value.split(" ")[0], 0, 0])
        elif word == "VirtualSize":
            found[-1][2] = int(value, 16)
        elif word == "VirtualAddress":
            found[-1][1] = int(value, 16)
            found[-1][2] += found[-1][1]
    return found


def section_at(table, rva):
    return next((name for name, begin, end in table if begin <= rva < end), None)


def relink(image, folder, placement):
    moved = 0
    table = sections(image)
    for seed in SEEDS:
        out = folder / f"{image.stem}-{placement}-{seed}.sys"
        harness.tool("appulse-reorder", image, "-o", out, "--order", "random", "--seed",
                     seed, "--placement", placement)
        harness.tool("appulse-reorder", "verify", image, out)
        moves = json.loads((folder / f"{out.name}.map.json").read_text())["moves"]
        for begin, to, _ in moves:
            moved += 1
            if image.stem == "native" and section_at(table, begin) == "PAGE":
                require(section_at(table, to) == "PAGE", f"seed {seed}: 0x{begin:x} left")
    require(moved, "nothing moved")


def main():
    with harness.work_folder() as folder:
        build(folder)
        for subsystem, kind in KINDS.items():
            image = folder / f"{subsystem}.sys"
            with claim(f"{subsystem}: told by the doctor"):
                examine(image, kind)
            with claim(f"{subsystem}: not instrumented"):
                refuse(image, folder)
            for placement in ("exchange", "append"):
                with claim(f"{subsystem}: relinked, {placement}"):
                    relink(image, folder, placement)
    harness.finish()


if __name__ == "__main__":
    main()
