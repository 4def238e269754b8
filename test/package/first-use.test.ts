import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InstalledPackage } from "./installed.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a command line where no network is, but the machine's own; in words of `sh`. */
const APART = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];
const canLeaveNetwork = spawnSync(APART[0] as string, [...APART.slice(1), "true"]).status === 0;

describe("the first use of an installed package", () => {
  const installed = new InstalledPackage();
  beforeAll(async () => {
    await installed.install();
    installed.write("job.ts", readFileSync(join(root, "examples/hello/job.ts"), "utf8"));
    installed.write("README.md", readFileSync(join(root, "README.md"), "utf8"));
  });
  afterAll(() => installed.remove());

  it("builds the addon against TROUPE_LIBTORCH, once for two terminals, without a network where there is none, tells it in one line, and trains", async () => {
    const env = { TROUPE_LIBTORCH: process.env.TROUPE_LIBTORCH ?? libtorchOfThisTree() };
    const train = ["npx", "troupe", "run", "job.ts", "--ranks", "2", "--set", "steps=3", "--json"];
    const [program = "", ...args] = canLeaveNetwork ? [...APART, ...train] : train;
    const both = await Promise.all([
      installed.run(program, args, { env }),
      installed.run(program, args, { env }),
    ]);
    const setUp = /^troupe set-up: addon \(\d+ C\+\+ files, .*, about \d+ min\) \.\.\. [\d.]+ s$/;
    const waiting = /^troupe set-up: another process is setting up \(.*\), waiting for it$/;
    expect(both.map(({ err }) => linesOf(err)).toSorted()).toEqual([
      [expect.stringMatching(setUp)],
      [expect.stringMatching(waiting)],
    ]);
    const later = await installed.run(program, args, { env });
    expect(linesOf(later.err)).toEqual([]);
    for (const { code, out } of [...both, later]) {
      expect(code).toBe(0);
      expect(lossesIn(out)).toHaveLength(3);
      expect(lossesIn(out)).toEqual(lossesIn(later.out));
    }
  }, 2_400_000);
});

/** Without what npm says of the machine's own settings. */
const linesOf = (err: string) =>
  err.split("\n").filter((line) => line !== "" && !line.startsWith("npm warn"));

const lossesIn = (out: string) =>
  [...out.matchAll(/"kind":"step.finished".*"lossNats":([\d.]+)/g)].map(([, loss]) => loss);

function libtorchOfThisTree(): string {
  const info = JSON.parse(readFileSync(join(root, "build", "build-info.json"), "utf8")) as {
    readonly torch: { readonly configFolder: string };
  };
  return info.torch.configFolder;
}
