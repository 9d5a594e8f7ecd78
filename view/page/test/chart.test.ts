import assert from "node:assert/strict";
import { test } from "node:test";
import { drawn, valueAt, type Line } from "../src/parts/chart";
import { overlay } from "../src/pages/runs";

const line = (label: string, value: number, rest: Partial<Line> = {}): Line => ({ label, values: [value, value], ...rest });

test("never draws two lines in one colour", () => {
  const looks = drawn([line("a", 1, { look: 9 }), line("b", 2, { look: 1 }), line("goal", 3, { style: "reference" }), line("c", 4, { look: 17 })]).map((l) => l.look);
  assert.deepEqual(looks, [1, 2, undefined, 3]);
});

test("draws the highest, the lowest and the recorded of too many lines", () => {
  const many = Array.from({ length: 24 }, (_, i) => line(i === 12 ? "recorded" : `v${i}`, (i * 7) % 24));
  assert.deepEqual(
    drawn([...many, line("goal", 3, { style: "reference" })]).map((l) => l.label),
    ["v0", "v17", "recorded", "goal"].sort((a, b) => order(many, a) - order(many, b)),
  );
  assert.equal(drawn(many.slice(0, 8)).length, 8);
});

function order(lines: Line[], label: string): number {
  const at = lines.findIndex((l) => l.label === label);
  return at < 0 ? lines.length : at;
}

test("shows each run's last value where another run is longer", () => {
  const course = (rewards: number[]) => ({ step: rewards.map((_, i) => i + 1), reward: rewards, started_at_ms: [0], finished_at_ms: rewards.map((_, i) => i * 1000), tokens: rewards });
  const { x, lines } = overlay(
    [
      { name: "short", course: course([0.1, 0.2]) },
      { name: "long", course: course([0.1, 0.2, 0.3, 0.4]) },
    ],
    "reward",
    "steps",
  );
  assert.deepEqual(x, [1, 2, 3, 4]);
  assert.deepEqual(lines[0]!.values, [0.1, 0.2, undefined, undefined]);
  assert.deepEqual(
    lines.map((l) => valueAt(l, 3)),
    [0.2, 0.4],
  );
});
