import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeCheckpoint } from "../../src/library/checkpoint/saving/save-checkpoint.ts";
import { LocalFolder } from "../../src/library/checkpoint/storage/local-folder.ts";
import { canInject } from "../fixtures/can-inject.ts";
import { contentOf } from "./content.ts";
import { outcomeOf, saveStep, saveUnder, stepIn } from "./injection.ts";

const changingCalls = ["mkdir", "fallocate", "pwrite64", "fsync", "rename"] as const;
const maxCalls = 40;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-faults-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Folders for one count after another, two at a time, until the fault no longer hits the save. */
async function forEveryCall(
  body: (count: number, directory: string) => Promise<"hit" | "passed">,
): Promise<number> {
  let numHit = 0;
  for (let count = 1; count < maxCalls; count += 2) {
    const results = await Promise.all([
      body(count, join(folder, `${count}`)),
      body(count + 1, join(folder, `${count + 1}`)),
    ]);
    numHit += results.filter((result) => result === "hit").length;
    if (results.includes("passed")) return numHit;
  }
  throw new Error(`expected fewer than ${maxCalls} calls`);
}

describe.skipIf(!canInject)(
  "with faults injected by strace (skipped where it is not there or not allowed)",
  () => {
    test.each(changingCalls)(
      "a save killed at any %s leaves the old checkpoint or the new one, complete",
      async (call) => {
        const numHit = await forEveryCall(async (count, directory) => {
          await writeCheckpoint(directory, contentOf(1));
          const { saved } = await saveUnder("signal=KILL", call, count, directory, 2);
          const found = await stepIn(directory);
          expect([1, 2]).toContain(found);
          if (saved !== undefined) expect(found).toBe(2);
          await new LocalFolder(directory).sweep();
          await writeCheckpoint(directory, contentOf(3));
          expect(await stepIn(directory)).toBe(3);
          expect((await readdir(directory)).filter((entry) => entry.startsWith("."))).toEqual([]);
          return saved === undefined ? "hit" : "passed";
        });
        expect(numHit).toBeGreaterThan(0);
      },
    );

    test("a save killed while it replaces a step leaves the one or the other", async () => {
      const numHit = await forEveryCall(async (count, directory) => {
        await writeCheckpoint(directory, contentOf(2));
        const { saved } = await saveUnder("signal=KILL", "rename", count, directory, 2);
        expect(await stepIn(directory)).toBe(2);
        await new LocalFolder(directory).sweep();
        expect((await readdir(directory)).toSorted()).toEqual(["latest", "step-000002"]);
        expect(await stepIn(directory)).toBe(2);
        return saved === undefined ? "hit" : "passed";
      });
      expect(numHit).toBe(3);
    });

    test.each([
      ["ENOSPC", "mkdir"],
      ["ENOSPC", "fallocate"],
      ["ENOSPC", "pwrite64"],
      ["EIO", "fsync"],
      ["ENOSPC", "rename"],
    ])(
      "%s at any %s is one typed error, nothing half-written, the old checkpoint kept",
      async (errno, call) => {
        const numHit = await forEveryCall(async (count, directory) => {
          await writeCheckpoint(directory, contentOf(1));
          const { saved, failed } = await saveUnder(`error=${errno}`, call, count, directory, 2);
          if (saved !== undefined) {
            expect(await stepIn(directory)).toBe(2);
            return "passed";
          }
          expect(failed).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", fields: { step: 2, errno } });
          expect(failed?.message).toContain("earlier checkpoints are kept");
          expect((await readdir(directory)).filter((entry) => entry.startsWith("."))).toEqual([]);
          expect(await stepIn(join(directory, "step-000001"))).toBe(1);
          expect([1, 2]).toContain(await stepIn(directory));
          return "hit";
        });
        expect(numHit).toBeGreaterThan(0);
      },
    );
  },
);

describe("with the disk taken away", () => {
  test("a file size limit is one typed error, the old checkpoint kept", async () => {
    await writeCheckpoint(folder, contentOf(1));
    const limited = `ulimit -f 64; exec "$0" "$@"`;
    const args = ["-c", limited, process.execPath, saveStep, folder, "2", "100000"];
    const { failed } = await outcomeOf("bash", args);
    expect(failed).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", fields: { errno: "EFBIG" } });
    expect((await readdir(folder)).toSorted()).toEqual(["latest", "step-000001"]);
    expect(await stepIn(folder)).toBe(1);
  });

  const canMount =
    spawnSync("unshare", ["-r", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]).status ===
    0;

  test.skipIf(!canMount)(
    "a full disk (skipped where no private mount is allowed): one typed error",
    async () => {
      const script = `
      mount -t tmpfs -o size=256k tmpfs "$2"
      "$0" "$1" "$2" 1 > /dev/null
      "$0" "$1" "$2" 2 20000
      test "$(ls -A "$2" | tr '\\n' ' ')" = "latest step-000001 " || echo '{}'`;
      const { failed } = await outcomeOf("unshare", [
        "-r",
        "-m",
        "sh",
        "-c",
        script,
        process.execPath,
        saveStep,
        folder,
      ]);
      expect(failed).toMatchObject({ code: "CHECKPOINT_SAVE_FAILED", fields: { errno: "ENOSPC" } });
    },
  );
});
