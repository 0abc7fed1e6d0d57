"""7-Zip on files that we make: what it packs and unpacks, lists, and finds wrong.

Each run is one call of 7za.exe.  What it writes is part of its outcome, byte by byte, so two
runs are alike only if all archives and all extracted files are.  expect() says what is right
without believing 7-Zip: extracted files are the input, checksums are Python's, archives that
7-Zip made are read by Python and the other way round.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import shutil
import tarfile
import zipfile
import zlib

import corpus
import harness
from harness import require

STAMP = 1600000000   # of all input files
BAD_OPTION, FATAL = 7, 2

# archive: options of "a"
MADE = {
    "lzma2.7z": ["-t7z", "-m0=LZMA2", "-mmt2"],
    "lzma.7z": ["-t7z", "-m0=LZMA", "-mmt1", "-ms=off"],
    "fast.7z": ["-t7z", "-mx=1", "-mmt4"],
    "ppmd.7z": ["-t7z", "-m0=PPMd"],
    "bzip2.7z": ["-t7z", "-m0=BZip2", "-mmt4"],
    "deflate.7z": ["-t7z", "-m0=Deflate64"],
    "filters.7z": ["-t7z", "-m0=BCJ2", "-m1=LZMA", "-m2=LZMA", "-m3=LZMA", "-mb0:1",
                   "-mb0s1:2", "-mb0s2:3"],
    "delta.7z": ["-t7z", "-m0=Delta:4", "-m1=LZMA2"],
    "deflate.zip": ["-tzip", "-mtc=off", "-mm=Deflate", "-mmt2"],
    "best.zip": ["-tzip", "-mtc=off", "-mx=9", "-mm=Deflate"],
    "bzip2.zip": ["-tzip", "-mtc=off", "-mm=BZip2"],
    "lzma.zip": ["-tzip", "-mtc=off", "-mm=LZMA"],
    "ppmd.zip": ["-tzip", "-mtc=off", "-mm=PPMd"],
    "all.tar": ["-ttar"],
}
SECRET = "secret.7z"             # salted: other bytes each time
SINGLE = {"text.gz": gzip.decompress, "text.bz2": bz2.decompress, "text.xz": lzma.decompress}
DAMAGED = {"damaged.7z": "lzma2.7z", "damaged.zip": "deflate.zip", "short.7z": "ppmd.7z"}

SUMS = ["h", "-scrc*", "-r", "input"]


def make_text():
    chooser = random.Random(7)
    words = ["".join(chooser.choices("etaoinshrdlu", k=chooser.randint(2, 9)))
             for _ in range(600)]
    lines = (" ".join(chooser.choices(words, k=12)) for _ in range(3000))
    return "\n".join(lines).encode()


def make_input(folder):
    """Text, noise, waves, code, nothing, and folders."""
    (folder / "deep" / "er").mkdir(parents=True)
    files = {
        "text.txt": make_text(),
        "noise.bin": random.Random(8).randbytes(60000),
        "waves.bin": b"".join((i * i // 7 % 65521).to_bytes(4, "little")
                              for i in range(20000)),
        "program.exe": corpus.path_of("libgcc_s_seh-1.dll").read_bytes(),
        "deep/er/empty": b"",
        "deep/\u00e4\u03c9.txt": "sm\u00e5".encode() * 1000,
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (STAMP, STAMP))


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def zip_of(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 9, 13, 12, 26, 40)), content,
                             zipfile.ZIP_DEFLATED)
    return data.getvalue()


class Archives(harness.Case):
    def __init__(self):
        self.codes = {}   # run's number: the exit code that is right
        super().__init__("7za", [(corpus.path_of("7za.exe"), "7za.exe")], "7za.exe",
                         ["7za.exe"], list(self.all_runs()), seconds=120)

    def all_runs(self):
        runs = []

        def add(*words, code=0):
            self.codes[len(runs)] = code
            runs.append(list(words))

        for archive, options in MADE.items():
            add("a", *options, f"made/{archive}", "./input/*")
        add("a", "-t7z", "-pword", "-mhe=on", f"made/{SECRET}", "./input/text.txt")
        for archive in SINGLE:
            add("a", f"made/{archive}", "./input/text.txt")
        self.first_read = len(runs)
        for archive in MADE:
            add("x", f"made/{archive}", f"-oout/{archive}")
        add("x", "-pword", f"made/{SECRET}", f"-oout/{SECRET}")
        add("x", "given.zip", "-oout/given.zip")
        add("x", "given.txz", "-so")
        add("l", "-slt", "made/filters.7z")
        add("l", "made/best.zip")
        add("t", "-mmt2", "made/lzma2.7z")
        add(*SUMS)
        add("rn", "made/lzma.zip", "text.txt", "renamed.txt")
        add("d", "made/fast.7z", "deep", "noise.bin")
        add("e", "made/fast.7z", "-oout/flat")
        for archive in DAMAGED:
            add("t", archive, code=FATAL)
        add("x", "-pwrong", f"made/{SECRET}", "-oout/wrong", code=FATAL)
        add("t", "nowhere.7z", code=FATAL)
        add("a", "-t7z", "-m0=Nothing", "made/none.7z", "input", code=FATAL)
        add("l", "--no-such-option", code=BAD_OPTION)
        return runs

    def before(self, folder, number):
        if number == 0:
            for name in ("input", "made", "out"):
                shutil.rmtree(folder / name, ignore_errors=True)
            make_input(folder / "input")
            files = tree(folder / "input")
            (folder / "given.zip").write_bytes(zip_of(files))
            (folder / "given.txz").write_bytes(lzma.compress(files["text.txt"]))
        if number == self.first_read:
            for damaged, whole in DAMAGED.items():
                data = bytearray((folder / "made" / whole).read_bytes()
                                 if (folder / "made" / whole).exists() else b"")
                if damaged.startswith("short"):
                    del data[len(data) * 2 // 3:]
                third = len(data) // 3
                data[third:third + 40] = bytes(byte ^ 0x55 for byte in data[third:third + 40])
                (folder / damaged).write_bytes(data)

    def outcome(self, folder, variables=None):
        results = super().outcome(folder, variables)
        lines = [f"{name} {hashlib.sha256(data).hexdigest()}"
                 for part in ("made", "out") for name, data in tree(folder / part).items()
                 if name != SECRET]
        return [*results, harness.Result(["files"], "\n".join(lines).encode(), b"", 0)]

    def expect(self, folder, results):
        """Of the last outcome, which is still in the folder."""
        for number, code in self.codes.items():
            require(results[number].code == code,
                    f"instead of {code}: {results[number].describe()}")
        files, made, out = (tree(folder / name) for name in ("input", "made", "out"))
        for archive in MADE:
            require(tree(folder / "out" / archive) == files, f"extracted from {archive}")
        require(tree(folder / "out" / "given.zip") == files, "extracted from Python's")
        require(out[f"{SECRET}/text.txt"] == files["text.txt"], f"extracted from {SECRET}")
        for archive, unpack in SINGLE.items():
            require(unpack(made[archive]) == files["text.txt"], f"{archive} by Python")
        self.expect_containers(made, files)
        told = results[self.runs.index(SUMS)].stdout.decode(errors="replace")
        for data in files.values():
            for sum_ in (f"{zlib.crc32(data):08X}", hashlib.sha256(data).hexdigest(),
                         hashlib.sha1(data).hexdigest()):
                require(not data or sum_ in told, f"no {sum_} in {told}")
        require(results[self.runs.index(["x", "given.txz", "-so"])].stdout
                == files["text.txt"], "to the standard output")

    @staticmethod
    def expect_containers(made, files):
        with zipfile.ZipFile(io.BytesIO(made["best.zip"])) as archive:
            require({name: archive.read(name) for name in archive.namelist()
                     if not name.endswith("/")} == files, "best.zip by Python")
        with tarfile.open(fileobj=io.BytesIO(made["all.tar"])) as archive:
            require({m.name: archive.extractfile(m).read() for m in archive
                     if m.isfile()} == files, "all.tar by Python")
