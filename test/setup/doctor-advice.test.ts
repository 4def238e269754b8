import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";

const doctor = fileURLToPath(new URL("../../scripts/doctor.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Finding {
  readonly name: string;
  readonly state: string;
  readonly mend?: string;
}

function find(name: string, env: Readonly<Record<string, string>>): Finding | undefined {
  // Whatever else is lacking here.
  const { stdout } = spawnSync(process.execPath, [doctor, "--json"], {
    encoding: "utf8",
    env: { ...process.env, ...env, PATH: `${folder}:${process.env.PATH}` },
  });
  return (JSON.parse(stdout) as Finding[]).find((finding) => finding.name === name);
}

it("says how to set the language where it is not UTF-8, and nothing where it is", () => {
  expect(find("language", { LC_ALL: "C" })).toMatchObject({ state: "advice", mend: "export LC_ALL=C.UTF-8" });
  expect(find("language", { LC_ALL: "C.UTF-8" })).toMatchObject({ state: "ok" });
});

it("says what NCCL needs on a machine with GPUs and without InfiniBand, until it is so", () => {
  expect(find("NCCL", {})).toBeUndefined();
  const fake = join(folder, "nvidia-smi");
  writeFileSync(fake, "#!/bin/sh\nexit 0\n");
  chmodSync(fake, 0o755);
  expect(find("NCCL", {})).toMatchObject({ state: "advice", mend: "export NCCL_IB_DISABLE=1" });
  expect(find("NCCL", { NCCL_IB_DISABLE: "1" })).toMatchObject({ state: "ok" });
});
