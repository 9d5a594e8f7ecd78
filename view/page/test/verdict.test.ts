import assert from "node:assert/strict";
import { test } from "node:test";
import { goalText, intervalText, lastHeard, pace } from "../src/parts/verdict";

const steps = (n: number, every = 1) => Array.from({ length: n }, (_, i) => ({ batch: i * every }));
const rising = (n: number, a: number) => Array.from({ length: n }, (_, i) => i * a);

test("says how far the goal is and how fast it comes", () => {
  const running = rising(25, 0.005);
  assert.equal(goalText(0.117, 0.9, pace(steps(25), running)), "So far 0.12 of the goal 0.9, +0.005 a step, about 160 steps to go at this pace");
});

test("counts the pace by steps of the run where only some are shown", () => {
  assert.equal(pace(steps(25, 10), rising(25, 0.05))?.toFixed(6), "0.005000");
});

test("says no pace where the reward is flat, falls or has too few steps", () => {
  assert.equal(pace(steps(25), rising(25, 0.0001)), null);
  assert.equal(pace(steps(25), rising(25, -0.01)), null);
  assert.equal(pace(steps(8), rising(8, 0.1)), null);
  assert.equal(pace([], []), null);
  assert.equal(goalText(0.117, 0.9, null), "So far 0.12 of the goal 0.9");
});

test("draws no interval over a few prompts", () => {
  assert.equal(intervalText(2), "2 prompts: too few for an interval");
  assert.match(intervalText(50), /^50 prompts; the band is the interval of 95 %/);
});

test("marks what was heard long before the newest step as old", () => {
  const server = { left: false, heartbeat_ms: 20_000 };
  assert.deepEqual(lastHeard(server, 100_000, 99_000, false), { text: "80 s ago; newer records are not read yet", isOld: true });
  assert.deepEqual(lastHeard(server, 100_000, 99_000, true), { text: "80 s ago, silent since", isOld: true });
  assert.deepEqual(lastHeard(server, 22_000, 21_000, false), { text: "2.0 s ago", isOld: false });
  assert.deepEqual(lastHeard(server, 22_000, null, false), { text: "2.0 s ago", isOld: false });
});
