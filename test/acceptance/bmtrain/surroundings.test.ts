// What BMTrain does to the process around it, and what its pages promise and its code does not.
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { Runtime } from "../../../src/entries/index.ts";
import { gradEnabled, liveTensors, numThreads } from "../../../src/entries/tensor.ts";
import { addRunCommand } from "../../../src/tools/cli/run.ts";

// Appendix A 17.
describe("a run", () => {
  it("leaves the process around it as it was: threads of arithmetic, autograd, tensors", async () => {
    const present = () => [numThreads(), gradEnabled(), liveTensors()];
    const before = present();
    await using runtime = await Runtime.spawn({ ranks: 2, threadsPerRank: 1, warmStandby: false });
    await runtime.run(new URL("../../fixtures/acceptance/gpt.ts", import.meta.url));
    expect(present()).toEqual(before);
  });
});

// Appendix A 21.
describe("the README's page of options", () => {
  it("names only options that troupe run has", () => {
    const program = new Command();
    addRunCommand(program);
    const options = program.commands[0]?.options.map(({ long }) => long);
    const page = readFileSync(new URL("../../../docs/reference/options.md", import.meta.url), "utf8");
    const flagsOf = ([, flags = ""]: RegExpMatchArray) => flags.match(/--[a-z-]+/g) ?? [];
    const documented = [...page.matchAll(/^\| `[\w.]+`[^|]*\| ([^|]*) \|/gm)].flatMap(flagsOf);
    expect(documented.length).toBeGreaterThan(40);
    expect(documented.filter((flag) => !options?.includes(flag))).toEqual([]);
  });
});
