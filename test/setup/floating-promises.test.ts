import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

it("refuses a promise that nobody waits for", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-lint-"));
  try {
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: { strict: true } }));
    writeFileSync(join(folder, "lost.ts"), "async function save() {}\nexport function stop() { save(); }\n");
    const lint = [
      join(root, "node_modules/oxlint/bin/oxlint"),
      "--config",
      join(root, ".oxlintrc.json"),
      folder,
    ];
    // Where the linter looks for the one that knows types; npm has it there, who runs this file alone may not.
    const path = `${join(root, "node_modules/.bin")}${delimiter}${process.env.PATH}`;
    const { status, stdout } = spawnSync(process.execPath, lint, {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, PATH: path },
    });
    expect(stdout).toContain("no-floating-promises");
    expect(status).toBe(1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
