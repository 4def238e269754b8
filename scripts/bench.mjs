// node scripts/bench.mjs NAME ARGS...: sets everything up, then runs bench/NAME.ts under the Node that the product needs.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { handOver } from "./setup/child.mjs";
import { productNode, root } from "./setup/layout.mjs";
import { main, SetupError } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

await main(async () => {
  const [name = "", ...args] = process.argv.slice(2);
  const folder = join(root, "bench");
  const script = join(folder, `${name}.ts`);
  if (!/^[\w-]+$/.test(name) || !existsSync(script)) {
    const names = readdirSync(folder).flatMap((file) => /^([\w-]+)\.ts$/.exec(file)?.[1] ?? []);
    throw new SetupError({
      where: "bench",
      expected: "the name of a benchmark",
      got: `"${name}"`,
      hint: `there are ${names.join(", ")}`,
    });
  }
  await setUp();
  process.exitCode = await handOver(productNode(), [script, ...args]);
});
