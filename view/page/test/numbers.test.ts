import assert from "node:assert/strict";
import { test } from "node:test";
import { percent, tenths } from "../src/numbers";
import { ledgerShares } from "../src/pages/ledger";

test("makes parts of a whole that sum to 100 %", () => {
  for (const parts of [[1, 1, 1], [986, 14], [99.94, 0.03, 0.03], [158, 34, 84, 96], [7]]) {
    assert.equal(
      tenths(parts).reduce((a, b) => a + b),
      1000,
      String(parts),
    );
  }
  assert.deepEqual(tenths([1, 1, 1]), [334, 333, 333]);
  assert.deepEqual(tenths([]), []);
  assert.deepEqual(tenths([0, 0]), [0, 0]);
  assert.equal(percent(0, 1), "<0.1 %");
  assert.equal(percent(0, 0), "0.0 %");
});

test("gives a state the sum of its reasons", () => {
  const shares = ledgerShares([
    { state: "trained", reason: null, rollouts: 1 },
    { state: "dropped", reason: "stale", rollouts: 1 },
    { state: "dropped", reason: "zero-variance", rollouts: 1 },
  ]);
  assert.deepEqual(Object.fromEntries(shares), { trained: "33.4 %", dropped: "66.6 %", "dropped:stale": "33.3 %", "dropped:zero-variance": "33.3 %", generated: "100.0 %" });
});
