import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const scripts = fileURLToPath(new URL("../../scripts", import.meta.url));

it("set-up installs the packages that build and test under NODE_ENV=production too, so that the next start has nothing to do", () => {
  const clone = mkdtempSync(join(tmpdir(), "troupe-test-"));
  onTestFinished(() => rmSync(clone, { recursive: true }));
  cpSync(scripts, join(clone, "scripts"), { recursive: true });
  // A package of this folder: npm asks no registry for it.
  mkdirSync(join(clone, "tool"));
  const tool = { name: "tool", version: "1.0.0" };
  const devDependencies = { tool: "file:tool" };
  const packages = {
    "": { devDependencies },
    "node_modules/tool": { resolved: "tool", link: true },
    tool: { version: "1.0.0", dev: true },
  };
  const files = {
    "tool/package.json": tool,
    "package.json": { name: "clone", type: "module", devDependencies },
    "package-lock.json": { name: "clone", lockfileVersion: 3, requires: true, packages },
  };
  for (const [file, content] of Object.entries(files))
    writeFileSync(join(clone, file), JSON.stringify(content));
  const script = `const { ensureNpmPackages, packagesAreCurrent } = await import("./scripts/setup/npm-packages.mjs");
    await ensureNpmPackages(); console.log(packagesAreCurrent());`;
  const out = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: clone,
    encoding: "utf8",
    env: { ...process.env, NODE_ENV: "production", npm_config_offline: "true", npm_config_audit: "false" },
  });
  expect(out.trim().split("\n").at(-1)).toBe("true");
  expect(existsSync(join(clone, "node_modules", "tool", "package.json"))).toBe(true);
});
