import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

/** All findings of one doctor, whatever else is lacking here. */
function examine(env: Readonly<Record<string, string>>) {
  const { stdout } = spawnSync(process.execPath, [doctor, "--json"], {
    encoding: "utf8",
    env: { ...process.env, ...env, PATH: `${folder}:${process.env.PATH}` },
  });
  const findings = JSON.parse(stdout) as Finding[];
  return (name: string) => findings.find((finding) => finding.name === name);
}

it("says how to set the language where it is not UTF-8, and what NCCL needs with GPUs but no InfiniBand, until it is so", () => {
  const plain = examine({ LC_ALL: "C" });
  expect(plain("language")).toMatchObject({ state: "advice", mend: "export LC_ALL=C.UTF-8" });
  expect(plain("NCCL")).toBeUndefined();
  const fake = join(folder, "nvidia-smi");
  writeFileSync(fake, "#!/bin/sh\nexit 0\n");
  chmodSync(fake, 0o755);
  const withGpu = examine({ LC_ALL: "C.UTF-8" });
  expect(withGpu("language")).toMatchObject({ state: "ok" });
  expect(withGpu("NCCL")).toMatchObject({ state: "advice", mend: "export NCCL_IB_DISABLE=1" });
  expect(examine({ NCCL_IB_DISABLE: "1" })("NCCL")).toMatchObject({ state: "ok" });
});

it("says that npm packages are to be installed in a clone that has none", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const clone = join(folder, "clone");
  for (const part of ["scripts", "package.json"])
    cpSync(join(root, part), join(clone, part), { recursive: true });
  const { stdout, stderr, status } = spawnSync(process.execPath, ["scripts/doctor.mjs"], {
    encoding: "utf8",
    cwd: clone,
  });
  expect({ stderr, status }).toEqual({ stderr: "", status: 1 });
  expect(stdout).toMatch(/^lack {4}npm packages {2}none\n +mend it: npm /);
});
