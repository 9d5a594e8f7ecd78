"""Versions in a folder, written here byte by byte."""

import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from millrace_rl import Malformed, MillraceError, Missing
from millrace_rl.published import PublishedVersions
from millrace_rl.tensors import safetensors

# bfloat16: 1, -2, 0.5, 4 and, after a step, 1, -3, 0.5, -0
BEFORE, AFTER = (0x3F80, 0xC000, 0x3F00, 0x4080), (0x3F80, 0xC040, 0x3F00, 0x8000)


def file(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class PublishedTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name) / "versions"
        self.folder.mkdir()
        self.version(3, None, {
            "model.safetensors": file({"__metadata__": {"format": "pt"}, "embed": dict(dtype="BF16", shape=[2, 2], data_offsets=[0, 8]),
                                       "norm": dict(dtype="BF16", shape=[1], data_offsets=[8, 10])}, struct.pack("<5H", *BEFORE, 0x3F80)),
            "config.json": b"{}", "README.md": b"of version 3"}, struct.pack("<5H", *BEFORE, 0x3F80))
        self.version(4, 3, {
            "delta.safetensors": file({"embed.indices": dict(dtype="I32", shape=[2], data_offsets=[0, 8]),
                                       "embed.values": dict(dtype="BF16", shape=[2], data_offsets=[8, 12])},
                                      struct.pack("<2i2H", 1, 3, 0xC040, 0x8000))}, struct.pack("<5H", *AFTER, 0x3F80))
        self.version(6, 4, {
            "delta.safetensors": file({"norm": dict(dtype="BF16", shape=[1], data_offsets=[0, 2])}, struct.pack("<H", 0x4000))},
            struct.pack("<5H", *AFTER, 0x4000))

    def version(self, version, base, files, tensors, **more):
        directory = self.folder / str(version)
        directory.mkdir()
        for name, content in files.items():
            (directory / name).write_bytes(content)
        (self.folder / f"{version}.json").write_text(json.dumps(dict(
            format=1, version=version, base_version=base, sha256=hashlib.sha256(tensors).hexdigest(),
            **more, files={name: dict(bytes=len(content), sha256=hashlib.sha256(content).hexdigest()) for name, content in files.items()})))
        (self.folder / "latest.json").write_text(json.dumps(dict(version=version, manifest=f"{version}.json")))

    def test_should_put_every_version_together(self):
        versions = PublishedVersions(self.folder)
        self.assertEqual(versions.latest(), 6)
        for version, embed, norm in ((6, AFTER, 0x4000), (4, AFTER, 0x3F80), (3, BEFORE, 0x3F80), (6, AFTER, 0x4000)):
            found = versions.load(version)
            self.assertEqual({name: array.tolist() for name, array in found.items()}, {"embed": [list(embed[:2]), list(embed[2:])], "norm": [norm]})
            self.assertEqual(versions.version, version)
            with self.assertRaises(ValueError):
                found["embed"][0, 0] = 0

    def test_should_read_only_what_changed_since_the_version_before(self):
        versions = PublishedVersions(self.folder)
        before = versions.load(3)
        (self.folder / "3" / "model.safetensors").unlink()
        self.assertEqual(versions.load()["norm"].tolist(), [0x4000])
        self.assertEqual(before["embed"].reshape(-1).tolist(), list(BEFORE))
        with self.assertRaisesRegex(Missing, "3/model.safetensors was removed meanwhile; load the newest version"):
            PublishedVersions(self.folder).load()

    def test_should_keep_the_version_before_where_one_is_not_what_its_manifest_says(self):
        versions = PublishedVersions(self.folder)
        versions.load(4)
        delta = self.folder / "6" / "delta.safetensors"
        whole = delta.read_bytes()
        delta.write_bytes(whole[:-2] + b"\0\0")
        with self.assertRaisesRegex(Malformed, "delta.safetensors has .* bytes of another SHA-256 than .* copy it again"):
            versions.load()
        delta.write_bytes(whole)
        manifest = self.folder / "6.json"
        manifest.write_text(manifest.read_text().replace('"base_version": 4', '"base_version": 3'))
        with self.assertRaisesRegex(Malformed, "version 6 of .* has the SHA-256 [0-9a-f]{64} once it is put together"):
            PublishedVersions(self.folder).load()
        self.assertEqual((versions.version, versions.load(4)["norm"].tolist()), (4, [0x3F80]))
        manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
        with self.assertRaisesRegex(Malformed, "6.json in .* is of format 2, and this release reads 1; update it"):
            versions.load()

    def test_should_read_a_bucket_by_a_function(self):
        bucket = {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        asked = []

        def get(name):
            asked.append(name)
            if name not in bucket:
                raise FileNotFoundError(name)
            return bucket[name]

        versions = PublishedVersions(get)
        self.assertEqual(versions.load(4)["embed"].reshape(-1).tolist(), list(AFTER))
        self.assertEqual(asked, ["4.json", "3.json", "3/model.safetensors", "4/delta.safetensors"])
        self.assertEqual(versions.load()["norm"].tolist(), [0x4000])
        self.assertEqual(asked[4:], ["latest.json", "6.json", "6/delta.safetensors"])
        del bucket["3/model.safetensors"]
        with self.assertRaisesRegex(Missing, "the store/3/model.safetensors was removed meanwhile; load the newest version"):
            PublishedVersions(get).load()
        with self.assertRaisesRegex(Missing, "the store has no 5.json"):
            versions.load(5)

    def test_should_write_an_adapter_in_the_layout_of_peft(self):
        name, values = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", np.arange(4, dtype="<f4")
        self.version(7, None, {"adapter_model.safetensors": file({name: dict(dtype="F32", shape=[2, 2], data_offsets=[0, 16])}, values.tobytes()),
                               "adapter_config.json": b'{"r": 2}', "README.md": b""}, values.tobytes(), adapter=True)
        target = self.folder.parent / "adapter"
        self.assertEqual(PublishedVersions(self.folder).save(target), 7)
        self.assertEqual(sorted(path.name for path in target.iterdir()), ["adapter_config.json", "adapter_model.safetensors"])
        self.assertEqual(safetensors(target / "adapter_model.safetensors")[name].tolist(), [[0, 1], [2, 3]])

    def test_should_say_what_is_not_there(self):
        with self.assertRaisesRegex(Missing, "has no 5.json: that version was not written, or was removed by --keep; load the newest"):
            PublishedVersions(self.folder).load(5)
        with self.assertRaisesRegex(Missing, "has no latest.json: no version is there yet"):
            PublishedVersions(self.folder / "none").load()

    def test_should_write_a_directory_that_engines_load(self):
        target = self.folder.parent / "models" / "newest"
        command = [sys.executable, "-m", "millrace_rl.published", str(self.folder), "--to", str(target)]
        environment = {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.returncode), (f"version 6 is in {target}\n", 0), done.stderr)
        self.assertEqual(sorted(path.name for path in target.iterdir()), ["config.json", "model.safetensors"])
        found = safetensors(target / "model.safetensors")
        self.assertEqual({name: array.tolist() for name, array in found.items()}, {"embed": [[1, -3], [0.5, 0]], "norm": [2]})
        self.assertTrue(np.signbit(found["embed"][1, 1]))
        again = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual((again.stderr, again.returncode),
                         (f"millrace_rl.published: {target} exists and is not overwritten; name a new directory\n", 1))
        self.assertEqual([path.name for path in target.parent.iterdir()], ["newest"])
        with self.assertRaises(MillraceError):
            PublishedVersions(self.folder).save(target)


if __name__ == "__main__":
    unittest.main()
