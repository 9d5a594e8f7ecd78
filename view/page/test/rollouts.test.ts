import assert from "node:assert/strict";
import { test } from "node:test";
import { beginning, ending } from "../src/pages/rollouts";
import { jitter, jittered } from "../src/parts/scatter";

test("shortens a response from its end and a prompt from its beginning", () => {
  assert.equal(beginning("one\n two  three", 20), "one two three");
  assert.equal(beginning("abcdefgh", 5), "abcd…");
  assert.equal(ending("abcdefgh", 5), "…efgh");
});

test("moves whole numbers beside each other and always by the same", () => {
  assert.equal(jitter([1, 1, 2, 3, 3]), 2 / 3);
  assert.equal(jitter([0, 1, 1, 0]), 0.05);
  assert.equal(jitter([0.5, 0.1, 0.2]), 0, "no two are equal");
  const all = Array.from({ length: 200 }, (_, i) => jittered(3, `0-${i}/1`, 1, 2 / 3));
  assert.deepEqual(
    all,
    Array.from({ length: 200 }, (_, i) => jittered(3, `0-${i}/1`, 1, 2 / 3)),
  );
  assert.ok(all.every((v) => Math.abs(v - 3) <= 1 / 3));
  assert.ok(new Set(all).size > 190);
});
