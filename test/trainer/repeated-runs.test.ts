import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const bench = fileURLToPath(new URL("../../bench/repeated.ts", import.meta.url));

it("a program that makes several runs keeps no memory of the ended ones", () => {
  // Five more runs added 35 MB when a run did not give back what its threads had freed.
  const { status, stdout, stderr } = spawnSync(process.execPath, [bench, "--runs", "15", "--limit", "30"], {
    encoding: "utf8",
  });
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: "" });
  expect(stdout.match(/^run \d+: \d+ MB resident$/gm)).toHaveLength(15);
});
