import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";

const index = new URL("../src/entries/index.ts", import.meta.url).href;
const program = `
  const { registerHooks } = require("node:module");
  const { parentPort } = require("node:worker_threads");
  const loaded = [];
  registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
  import(${JSON.stringify(index)}).then(() => parentPort.postMessage([...process.moduleLoadList, ...loaded]));
`;

// Every actor's thread imports the package with its job: what is loaded in vain is paid for by each of them.
it("a thread that imports the package loads no run, no dashboard, no server, no thread pool, no reader of options, and of rxjs what is used", async () => {
  // As they are written, not joined.
  const worker = new Worker(program, { eval: true, env: { ...process.env, JOINED_SOURCES: "" } });
  const [loaded] = (await once(worker, "message")) as [string[]];
  await worker.terminate();
  const ofOptions = [/\/zod\//, /\/smol-toml\//, /\/commander\//, /\/src\/job\/options\//];
  const ofRuns = [/\/src\/actors\/trainer\/run\.ts/, /\/src\/actors\/engine\//, /\/src\/job\/dashboard\//];
  for (const dear of [/^NativeModule _?http/, /undici/, /\/piscina\//, ...ofOptions, ...ofRuns]) {
    expect(loaded.filter((module) => dear.test(module))).toEqual([]);
  }
  const numOfRxjs = loaded.filter((module) => module.includes("/rxjs/")).length;
  expect(numOfRxjs).toBeGreaterThan(0);
  expect(numOfRxjs).toBeLessThan(50); // of 223
});
