// node scripts/check.mjs: everything that must hold before a commit, in order of what it takes; stops at the first failure.
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";
import { handOver } from "./setup/child.mjs";
import { layout, productNode } from "./setup/layout.mjs";
import { main } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

const checks = [
  {
    title: "format and the order of imports",
    program: ["@biomejs/biome/bin/biome", "check", "--linter-enabled=false", "--enforce-assist=true", "."],
  },
  { title: "lint", program: ["@biomejs/biome/bin/biome", "lint", "--error-on-warnings", "."] },
  { title: "floating promises", program: ["oxlint/bin/oxlint", "--deny-warnings"] },
  { title: "types", program: ["typescript/bin/tsc", "-p", "."] },
  { title: "types of the dashboard's page", program: ["typescript/bin/tsc", "-p", "src/job/dashboard/page"] },
  { title: "import arrows and tests", program: ["vitest/vitest.mjs", "run"] },
];

readArguments("usage: npm run check\n\nEverything that must hold before a commit", {});
await main(async () => {
  await setUp();
  for (const { title, program } of checks) {
    const [script = "", ...args] = program;
    process.stderr.write(`check: ${title}\n`);
    process.exitCode = await handOver(productNode(), [join(layout.packages, script), ...args]);
    if (process.exitCode !== 0) return;
  }
});
