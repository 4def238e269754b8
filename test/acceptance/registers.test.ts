import { describe, expect, it } from "vitest";
import { mutations, unmutated } from "../mutations/list.ts";
import type { Catcher } from "../mutations/mutation.ts";
import { isThere, Register, read } from "./register.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe("the register of BMTrain's tests, defects and golden values", () => {
  const register = new Register("docs/reference/bmtrain.md");

  it("names tests that are there", () => {
    expect(register.tests.length).toBeGreaterThan(60);
    expect(register.missing).toEqual([]);
  });

  it("names tests that a mutation makes fail, or says why none does", () => {
    const keyOf = (file: string, title: string) => `${file}: ${title}`;
    const keysOf = (catchers: readonly Catcher[]) =>
      catchers.flatMap(({ file, titles }) => titles.map((title) => keyOf(file, title)));
    const caught = new Set(keysOf(mutations.flatMap(({ caughtBy }) => caughtBy)));
    const excused = keysOf(unmutated);
    const named = [...new Set(register.tests.map(({ file, title }) => keyOf(file, title)))];
    // A test that has a mutation, or that no register names, must have no reason.
    expect(named.filter((key) => !caught.has(key)).toSorted()).toEqual(excused.toSorted());
  });

  it("has a row for each of the 21 defects, in order", () => {
    expect(register.numbersUnder("Its defects")).toEqual(upTo(21));
  });
});

describe("the register of what is promised of failures and of untrusted peers", () => {
  const register = new Register("docs/reference/reliability.md");

  it("names tests that are there", () => {
    expect(register.tests.length).toBeGreaterThan(60);
    expect(register.missing).toEqual([]);
  });

  it("has a bar and a test for each of the 17 promises, in order", () => {
    expect(register.numbersUnder("The promises, and their bars")).toEqual(upTo(17));
    expect(register.numbersUnder("The tests that hold them")).toEqual(upTo(17));
  });

  it("names commands that there are", () => {
    const benches = register.namesAfter("run bench");
    const parts = register.namesAfter("run chaos");
    const tests = register.namesAfter("test");
    expect(Math.min(benches.length, parts.length, tests.length)).toBeGreaterThan(0);
    expect(benches.filter((name) => !isThere(`bench/${name}.ts`))).toEqual([]);
    const known = /const parts\b[^{]*\{([^}]*)\}/.exec(read("test/chaos/run.ts"))?.[1] ?? "";
    expect(parts.filter((name) => !new RegExp(`\\b${name}\\b`).test(known))).toEqual([]);
    expect(tests.filter((path) => !isThere(path))).toEqual([]);
  });
});
