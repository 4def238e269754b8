import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

it("every export has a page of its doc comment, whose links and parameters there are", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "scripts", "docs-api.mjs")], {
    encoding: "utf8",
  });
  const wrong = `${stdout}${stderr}`.split("\n").filter((line) => /warning|error/i.test(line));
  expect({ wrong, status }).toEqual({ wrong: [], status: 0 });
  const pages = join(root, "build", "api");
  expect(existsSync(join(pages, "classes", "index.Runtime.html"))).toBe(true);
  expect(readFileSync(join(root, "README.md"), "utf8")).toContain("npm run docs:api");
});
