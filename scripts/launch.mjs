// node scripts/launch.mjs PROGRAM ARGS...: sets everything up, then runs PROGRAM under the Node that the product needs.
// Plain JavaScript without dependencies: it is what a fresh clone runs first, under whatever Node is there.
import { handOver } from "./setup/child.mjs";
import { productNode } from "./setup/layout.mjs";
import { main } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

await main(async () => {
  await setUp();
  process.exitCode = await handOver(productNode(), process.argv.slice(2));
});
