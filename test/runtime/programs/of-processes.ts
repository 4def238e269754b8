import { ActorSystem } from "../../../src/runtime/index.ts";
import type { MortalProtocol } from "../actors/mortal.ts";

// Starts two processes, says which they are, and goes on until it is killed.
const system = new ActorSystem({
  name: "program",
  preload: new URL("../actors/preload.ts", import.meta.url),
});
const module = new URL("../actors/mortal.ts", import.meta.url);
const pids: number[] = [];
for (const name of ["first", "second"]) {
  const mortal = await system.spawn<MortalProtocol>({ name, module, placement: "process" });
  pids.push(await mortal.ask("pid", null, { deadlineMs: 20_000 }));
  await mortal.ask("prints", `hello from ${name}`, { deadlineMs: 20_000 });
}
process.stdout.write(`pids ${pids.join(" ")}\n`);
setInterval(() => {}, 1_000);
