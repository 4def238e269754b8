#!/usr/bin/env node
// The door of the command line. Plain JavaScript, so that an old Node can still say that it is too old.
import module from "node:module";
import v8 from "node:v8";
import { nodeFloor, productModule } from "../scripts/setup/layout.mjs";
import { compileCache } from "../scripts/setup/ownership.mjs";

if (Number.parseInt(process.versions.node, 10) < nodeFloor) {
  process.stderr.write(
    `[troupe] expected Node ${nodeFloor} or newer, got ${process.version} at ${process.execPath} ` +
      "(npm install node@24 adds one to the project, which npx troupe runs on; in a clone, npm start brings it)\n",
  );
  process.exit(1);
}
// Listened to, it opens no inspector, through which another user of the machine could run what they like.
process.on("SIGUSR1", () => {});
// Else every command strips and compiles all modules again, two thirds of the processor time that it takes to begin.
const cache = compileCache();
if (cache !== undefined) module.enableCompileCache(cache);
// Modules stay, so loading them makes V8 enlarge the young generation, which a run's garbage then fills: some 20 MiB.
v8.setFlagsFromString("--semi-space-growth-factor=1");
await import(productModule("runtime/relative-imports"));
const { main } = await import(productModule("tools/cli/main"));
v8.setFlagsFromString("--semi-space-growth-factor=2"); // V8's own
process.exitCode = await main(process.argv.slice(2));
// What a job's module has left running, a timer or a socket of its own, would keep the program alive for ever.
setTimeout(() => {
  const left = process.getActiveResourcesInfo().filter((kind) => !/^(TTY|Pipe)Wrap$/.test(kind));
  process.stderr.write(
    `troupe: ended with something still running: ${left.join(", ")} (of the job's module?)\n`,
  );
  process.exit();
}, 1000).unref();
