import { once } from "node:events";
import { readdirSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";

const entries = new URL("../src/entries/", import.meta.url);
const program = `
  import { registerHooks } from "node:module";
  import { parentPort, workerData } from "node:worker_threads";
  const loaded = [];
  Intl.Segmenter = class { constructor() { loaded.push("Intl.Segmenter"); } };
  registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
  for (const url of workerData) await import(url);
  parentPort.postMessage([...process.moduleLoadList, ...loaded]);
`;

/** The modules, by URL, that a thread loads which imports some entries, and Node's own. */
async function loadedWith(names: readonly string[], env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const workerData = names.map((name) => new URL(name, entries).href);
  // As a module, which what is loaded first applies to.
  const script = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  const worker = new Worker(script, { env: { ...process.env, ...env }, workerData });
  const [loaded] = (await once(worker, "message")) as [string[]];
  await worker.terminate();
  return loaded;
}

// Every actor's thread imports the package with its job: what is loaded in vain is paid for by each of them.
it("a thread that imports the package loads no run, no dashboard, no server, no TLS, no thread pool, no reader of options, no rules of graphemes, and of rxjs what is used", async () => {
  // As they are written, not joined.
  const loaded = await loadedWith(["index.ts"], { JOINED_SOURCES: "" });
  const ofOptions = [/\/zod\//, /\/smol-toml\//, /\/commander\//, /\/src\/job\/options\//];
  const ofRuns = [/\/src\/actors\/trainer\/run\.ts/, /\/src\/actors\/engine\//, /\/src\/job\/dashboard\//];
  const ofNode = [/^NativeModule _?(http|tls)/, /undici/, /^Intl\.Segmenter$/];
  for (const dear of [...ofNode, /\/piscina\//, ...ofOptions, ...ofRuns]) {
    expect(loaded.filter((module) => dear.test(module))).toEqual([]);
  }
  const numOfRxjs = loaded.filter((module) => module.includes("/rxjs/")).length;
  expect(numOfRxjs).toBeGreaterThan(0);
  expect(numOfRxjs).toBeLessThan(50); // of 223
});

it("nor does one that imports all entries but those of sinks and exports, where the modules are joined as in the package", async () => {
  const names = readdirSync(entries).filter((name) => /(?<!^events|^export)\.ts$/.test(name));
  expect(names).toContain("optim.ts");
  const loaded = await loadedWith(names, {});
  expect(
    loaded.filter((url) => /\/joined-(product|options)\.js|\/(zod|smol-toml|commander)\//.test(url)),
  ).toEqual([]);
  const jobs = process.env.JOINED_SOURCES === "" ? /\/src\/entries\/optim\.ts$/ : /\/joined-jobs\.js$/;
  expect(loaded.some((url) => jobs.test(url))).toBe(true);
});
