"""Tensors, deltas and what may become a version."""

import json
import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np

from millrace_rl.errors import Malformed, Refused
from millrace_rl.tensors import apply_delta, fitted, joined, make_delta, safetensors, to_bfloat16, to_float32

ENTRIES = [dict(name="model.embed_tokens.weight", dtype="F32", dims=[3, 2]), dict(name="model.norm.weight", dtype="F32", dims=[2])]


def weights():
    return {"model.embed_tokens.weight": np.arange(6, dtype=np.float32).reshape(3, 2), "model.norm.weight": np.ones(2, np.float32)}


class DeltaTest(unittest.TestCase):
    def test_should_give_the_tensor_back_bit_for_bit(self):
        random = np.random.default_rng(3)
        for dtype, size in (("<f4", 5), ("<f4", (1 << 18) + 17), ("<u2", 9)):
            base = random.normal(size=size).astype("<f4")
            after = base + random.normal(size=size).astype("<f4") * np.float32(1e-4)
            after[0], after[1], base[2] = np.nan, -0.0, np.inf
            if dtype == "<u2":
                base, after = to_bfloat16(base), to_bfloat16(after)
            delta = make_delta(base, after)
            self.assertEqual(bytes(apply_delta(base, memoryview(delta))), after.tobytes())

    def test_should_refuse_what_is_no_delta_of_the_base(self):
        base = np.zeros(4, "<f4")
        delta = make_delta(base, base + 1)
        for spoilt, why in ((delta[:-1], "claims"), (delta + b"\0", "1 bytes are left"), (b"", "claims")):
            with self.assertRaisesRegex(Malformed, why):
                apply_delta(base, memoryview(spoilt))
        with self.assertRaises(Exception):
            apply_delta(np.zeros(8, "<f4"), memoryview(delta))


class BfloatTest(unittest.TestCase):
    def test_should_round_to_the_nearest_and_ties_to_even(self):
        values = np.array([1.0, 1.00390625, 1.01171875, -2.5, 0.1], np.float32)  # the second and third lie half-way
        self.assertEqual(to_float32(to_bfloat16(values), "BF16").tolist(), [1.0, 1.0, 1.015625, -2.5, 0.10009765625])


class FittedTest(unittest.TestCase):
    def refused(self, sentence, given):
        with self.assertRaisesRegex(Refused, sentence):
            fitted(given, ENTRIES, "version 7")

    def test_should_take_the_order_of_the_version_before_it(self):
        given = dict(reversed(list(weights().items())))
        self.assertEqual([a.shape for a in fitted(given, ENTRIES, "version 7")], [(3, 2), (2,)])

    def test_should_name_what_does_not_fit(self):
        self.refused(r"^version 7 needs the tensors of the version before it, and these are missing: model\.norm\.weight$",
                     {"model.embed_tokens.weight": weights()["model.embed_tokens.weight"]})
        self.refused("these are too many: adapter", {**weights(), "adapter": np.zeros(1, np.float32)})
        self.refused(r"model\.norm\.weight has the shape \[3\], and in the version before it \[2\]",
                     {**weights(), "model.norm.weight": np.ones(3, np.float32)})
        self.refused(r"model\.norm\.weight is of int64, and weights are floats", {**weights(), "model.norm.weight": np.ones(2, np.int64)})

    def test_should_name_the_place_of_what_is_not_finite(self):
        given = weights()
        given["model.embed_tokens.weight"][1, 0] = np.nan
        given["model.embed_tokens.weight"][2, 1] = np.inf
        self.refused(r"^model\.embed_tokens\.weight\[1, 0\] is nan, and 2 of its 6 values are not finite; nothing was published", given)

    def test_should_take_a_tied_head_under_both_its_names_and_no_other_one(self):
        given = weights()
        head = given["model.embed_tokens.weight"]
        self.assertEqual(len(fitted({**given, "lm_head.weight": head.copy()}, ENTRIES, "version 7")), 2)
        self.refused("these are too many: lm_head.weight", {**given, "lm_head.weight": head + 1})

    def test_should_cut_a_whole_matrix_as_the_version_before_it_and_join_it_again(self):
        cut = [dict(name="model.embed_tokens.weight[0]", dtype="F32", dims=[1, 2]),
               dict(name="model.embed_tokens.weight[1]", dtype="F32", dims=[2, 2]), ENTRIES[1]]
        found = dict(zip([entry["name"] for entry in cut], fitted(weights(), cut, "version 7")))
        self.assertEqual([array.tolist() for array in found.values()], [[[0, 1]], [[2, 3], [4, 5]], [1, 1]])
        for name, array in joined(found).items():
            np.testing.assert_array_equal(array, weights()[name])
        self.assertEqual([a.tolist() for a in fitted(found, cut, "version 7")], [a.tolist() for a in found.values()])
        embedding = weights()["model.embed_tokens.weight"]
        self.assertEqual(len(fitted({**weights(), "lm_head.weight": embedding}, cut, "version 7")), 3)
        for rows in (2, 4):
            with self.assertRaisesRegex(Refused, f"embed_tokens.weight has {rows} rows, and in the version before it 3"):
                fitted({**weights(), "model.embed_tokens.weight": np.zeros((rows, 2), np.float32)}, cut, "version 7")

    def test_should_round_for_a_run_of_bfloat16(self):
        entries = [dict(entry, dtype="BF16") for entry in ENTRIES]
        self.assertEqual(fitted(weights(), entries, "version 7")[1].tolist(), [0x3F80, 0x3F80])


class SafetensorsTest(unittest.TestCase):
    def written(self, header, data):
        path = Path(self.directory.name) / "model.safetensors"
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return path

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def test_should_read_every_float_type_as_float32(self):
        path = self.written(
            {"__metadata__": {"format": "pt"}, "a": dict(dtype="F32", shape=[2, 1], data_offsets=[0, 8]),
             "b": dict(dtype="BF16", shape=[2], data_offsets=[8, 12]), "c": dict(dtype="F16", shape=[1], data_offsets=[12, 14])},
            struct.pack("<2f2He", 1.5, -2, 0x3F80, 0xC000, 0.25))
        found = safetensors(path)
        self.assertEqual({name: array.tolist() for name, array in found.items()}, {"a": [[1.5], [-2.0]], "b": [1.0, -2.0], "c": [0.25]})

    def test_should_say_what_is_wrong_with_a_file(self):
        with self.assertRaisesRegex(Malformed, "no safetensors file: its header is no JSON"):
            safetensors(self.written(b"no json", b""))
        with self.assertRaisesRegex(Malformed, "a in .* claims the bytes 0 to 8, which are not those of F32"):
            safetensors(self.written({"a": dict(dtype="F32", shape=[3], data_offsets=[0, 8])}, bytes(8)))
        with self.assertRaisesRegex(Malformed, "claims the bytes"):
            safetensors(self.written({"a": dict(dtype="F32", shape=[2], data_offsets=[0, 8])}, bytes(4)))
        with self.assertRaisesRegex(Refused, "a in .* is of I64"):
            safetensors(self.written({"a": dict(dtype="I64", shape=[1], data_offsets=[0, 8])}, bytes(8)))


if __name__ == "__main__":
    unittest.main()
