#!/usr/bin/env python3
"""Nothing gets out of the cache, or into it, whose hash is not the manifest's.

usage: corpus_fetches.py FOLDER-OF-CORPUS
"""

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import corpus  # noqa: E402

GOOD, BAD = b"good", b"bad"


class Fetches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)
        # `member` of a Debian package would be taken from the root folder if it were there.
        self.member = str(self.cache / "installed").lstrip("/")
        self.entries = {"a.dll": ["deb", "package", "1.0", self.member,
                                  corpus.sha256(GOOD)]}
        for patch in (mock.patch.dict(os.environ, APPULSE_CACHE=str(self.cache / "cache")),
                      mock.patch.object(corpus, "manifest", lambda: self.entries)):
            patch.start()
            self.addCleanup(patch.stop)

    def fetch(self, downloaded):
        """The bytes fetched, and how often something was downloaded for it."""
        with mock.patch.object(corpus, "download",
                               return_value={self.member: downloaded}) as download:
            return corpus.fetch("a.dll").read_bytes(), download.call_count

    def test_once(self):
        self.assertEqual(self.fetch(GOOD), (GOOD, 1))
        self.assertEqual(self.fetch(BAD), (GOOD, 0))

    def test_wrong_download(self):
        with self.assertRaisesRegex(corpus.CorpusError, corpus.sha256(BAD)):
            self.fetch(BAD)
        self.assertEqual([p for p in self.cache.rglob("*") if p.name == "a.dll"], [])

    def test_one_download_of_a_package(self):
        self.entries["folder/b.dll"] = ["deb", "package", "1.0", "b", corpus.sha256(BAD)]
        with mock.patch.object(corpus, "download", return_value={
                self.member: GOOD, "b": BAD}) as download:
            self.assertEqual(corpus.fetch("a.dll").read_bytes(), GOOD)
            self.assertEqual(corpus.fetch("folder/b.dll").read_bytes(), BAD)
            self.assertEqual([call.args[3] for call in download.call_args_list],
                             [{self.member, "b"}])

    def test_missing_in_the_package(self):
        with mock.patch.object(corpus, "download", return_value={}):
            with self.assertRaisesRegex(corpus.CorpusError, "no \""):
                corpus.fetch("a.dll")

    def test_damaged_cache(self):
        self.fetch(GOOD)
        corpus.fetch("a.dll").write_bytes(BAD)
        self.assertEqual(self.fetch(GOOD), (GOOD, 1))

    def test_installed(self):
        (self.cache / "installed").write_bytes(GOOD)
        self.assertEqual(self.fetch(BAD), (GOOD, 0))

    def test_other_version_installed(self):
        (self.cache / "installed").write_bytes(BAD)
        self.assertEqual(self.fetch(GOOD), (GOOD, 1))

    def test_says_what_it_builds(self):
        for said in (["== building kind, kept for the next time\n"], []):
            with mock.patch.object(sys, "stderr") as stderr:
                corpus.cached_folder("kind", [["bash", "-c", "touch made"]], [])
            texts = "".join(call.args[0] for call in stderr.write.call_args_list)
            self.assertEqual(texts, "".join(said))

    def test_a_failed_build_leaves_nothing(self):
        commands = [["bash", "-c", "touch half; exit 1"]]
        with self.assertRaises(corpus.CorpusError):
            corpus.cached_folder("kind", commands, [])
        self.assertEqual(list((self.cache / "cache" / "kind").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
