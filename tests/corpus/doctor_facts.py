#!/usr/bin/env python3
"""What `appulse doctor` says of real images, against what llvm-readobj reads in them.

usage: doctor_facts.py APPULSE

The toolchains are facts that the packages' makers tell: which compiler and linker they use.
"""

import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import corpus  # noqa: E402

PTY = "node-pty/prebuilds/win32-x64"
MICROSOFT, LLD, GNU = "Microsoft link", "LLVM lld", "GNU ld"

# Name in the manifest, linker, kind, whether an addon of Node.js, some of the signs.
IMAGES = [
    ("7za.exe", MICROSOFT, "EXE", False, set()),
    ("rollup.node", MICROSOFT, "DLL", True, {"Rust"}),
    ("lightningcss.node", MICROSOFT, "DLL", True, {"Rust"}),
    ("swc.node", LLD, "DLL", True, {"Rust"}),
    (f"{PTY}/conpty.node", MICROSOFT, "DLL", True, set()),
    (f"{PTY}/winpty.dll", MICROSOFT, "DLL", False, set()),
    (f"{PTY}/winpty-agent.exe", MICROSOFT, "EXE", False, set()),
    ("sqlite-gcc", GNU, "DLL", False, {"GCC", "mingw-w64"}),
    ("sqlite-clang", LLD, "DLL", False, {"mingw-w64"}),
]

# A loader that unpacks the real DLL into memory: most of the file is neither code nor tables.
OPAQUE = {"swc.node": ".swcn"}


def readobj(path, *options):
    return subprocess.run(["llvm-readobj", *options, path], check=True,
                          capture_output=True, text=True).stdout


def number(text, name):
    """The last value of a field, 0 when it is not there."""
    found = re.findall(rf"^\s*{name}: (0x[0-9A-Fa-f]+|\d+)$", text, re.M)
    return int(found[-1], 0) if found else 0


def guid_text(text):
    """"(D5 B7 ...)" as {8-4-4-4-12}: the first three groups are little-endian."""
    found = re.search(r"PDBGUID: \(([0-9A-F ]+)\)", text)
    if not found:
        return None
    b = found.group(1).split()
    groups = [b[3::-1], b[5:3:-1], b[7:5:-1], b[8:10], b[10:16]]
    return "{" + "-".join("".join(group) for group in groups) + "}"


def facts_of(path):
    headers = readobj(path, "--file-headers")
    config = readobj(path, "--coff-load-config")
    debug = readobj(path, "--coff-debug-directory")
    imports = readobj(path, "--coff-imports")
    ordinary = imports.split("\nDelayImport {")[0]
    exports = readobj(path, "--coff-exports")
    pdb = re.search(r"PDBFileName: ?(.*)$", debug, re.M)
    return {
        "linker_version": "%d.%02d" % (number(headers, "MajorLinkerVersion"),
                                       number(headers, "MinorLinkerVersion")),
        "sections": number(headers, "SectionCount"),
        "section_alignment": number(headers, "SectionAlignment"),
        "file_alignment": number(headers, "FileAlignment"),
        # The first slot of lld's tables is empty.
        "exports": len(re.findall(r"^  (?:RVA: 0x(?!0$)|ForwardedTo:)", exports, re.M)),
        "forwarders": len(re.findall(r"ForwardedTo:", exports)),
        "imports": len(re.findall(r"^  Symbol:", ordinary, re.M)),
        "delay_loaded_dlls": len(re.findall(r"^DelayImport \{", imports, re.M)),
        "relocations": len(re.findall(r"Type: DIR64",
                                      readobj(path, "--coff-basereloc"))),
        "unwind_rows": number(headers, "ExceptionTableSize") // 12,
        "load_config_bytes": number(config, "Size"),
        "guard_flags": number(config, "GuardFlags"),
        "guard_functions": number(config, "GuardCFFunctionCount"),
        "guard_long_jumps": number(config, "GuardLongJumpTargetCount"),
        "guard_eh_continuations": number(config, "GuardEHContinuationCount"),
        "pdb": pdb and pdb.group(1),
        "guid": guid_text(debug),
        "pogo": "Type: POGO" in debug,
        "reproducible": "Type: Repro" in debug,
    }


def facts_told(told):
    contents, guard = told["contents"], told["contents"]["guard"]
    pdb = contents["pdb"] or {"path": None, "guid": None}
    return {
        "linker_version": told["toolchain"]["linker_version"],
        **{name: told["image"][name]
           for name in ("sections", "section_alignment", "file_alignment")},
        **{name: contents[name]
           for name in ("exports", "forwarders", "imports", "delay_loaded_dlls",
                        "relocations", "unwind_rows", "load_config_bytes", "pogo",
                        "reproducible")},
        "guard_flags": guard["flags"],
        "guard_functions": guard["functions"],
        "guard_long_jumps": guard["long_jumps"],
        "guard_eh_continuations": guard["eh_continuations"],
        "pdb": pdb["path"],
        "guid": pdb["guid"],
    }


def faults_in(tool, name, linker, kind, is_addon, languages):
    path = corpus.path_of(name)
    told = json.loads(subprocess.run([tool, "doctor", "--json", path], check=True,
                                     capture_output=True, text=True).stdout)
    was, told_facts = facts_of(path), facts_told(told)
    faults = [f"{fact}: {told_facts[fact]}, llvm-readobj has {was[fact]}"
              for fact in was if was[fact] != told_facts[fact]]
    signs = {sign["name"] for sign in told["toolchain"]["signs"]}
    if told["toolchain"]["linker"] != linker:
        faults.append(f"linker: {told['toolchain']['linker']}")
    rich = told["toolchain"]["rich_header"]
    if (rich is not None) != (linker == MICROSOFT) or (rich and not rich["intact"]):
        faults.append("Rich header")
    if (told["image"]["kind"], told["image"]["node_addon"]) != (kind, is_addon):
        faults.append(f"kind: {told['image']['kind']}, addon {told['image']['node_addon']}")
    if told["toolchain"]["opaque_section"] != OPAQUE.get(name):
        faults.append(f"compressed section: {told['toolchain']['opaque_section']}")
    if not languages <= signs:
        faults.append(f"signs: {sorted(signs)}")
    if not (told["instrument"]["possible"] and told["reorder"]["possible"]):
        faults.append("refused")
    return faults


def main(tool):
    failed = 0
    for number_, image in enumerate(IMAGES, 1):
        faults = faults_in(tool, *image)
        failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {number_} - {image[0]}")
        for fault in faults:
            print(f"# {fault}")
    print(f"1..{len(IMAGES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: doctor_facts.py APPULSE")
    sys.exit(main(sys.argv[1]))
