// node scripts/docs-api.mjs: the pages of every export, made of the doc comments. A link that leads nowhere fails it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";
import { capture, handOver } from "./setup/child.mjs";
import { productNode, root } from "./setup/layout.mjs";
import { main, SetupError, step } from "./setup/say.mjs";

const tool = join(root, "scripts", "api-pages");

readArguments("usage: npm run docs:api\n\nMakes build/api/index.html of the doc comments", {});
await main(async () => {
  if (!existsSync(join(tool, "node_modules"))) {
    await step("typedoc", "npm ci, 46 MB and 10 s", async () => {
      const { ok, tail } = await capture("npm", ["ci", "--loglevel=error"], { cwd: tool });
      if (!ok)
        throw new SetupError(
          { where: "npm ci", expected: "typedoc and its compiler", got: "a failure of npm" },
          tail,
        );
    });
  }
  process.chdir(tool); // where typedoc looks for its options
  process.exitCode = await handOver(productNode(), [join("node_modules", "typedoc", "bin", "typedoc")]);
});
