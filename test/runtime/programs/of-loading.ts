import { ActorSystem } from "../../../src/runtime/index.ts";

// Starts a process that never receives messages, and waits for it.
const system = new ActorSystem({
  name: "program",
  preload: new URL("../actors/never-loaded.ts", import.meta.url),
});
const module = new URL("../actors/mortal.ts", import.meta.url);
await system.spawn({ name: "first", module, placement: "process" });
