// npm run bench -- first-use: seconds and bytes of each phase from an empty folder to a trained examples/hello, as a user who is not
// root and has no compiler: by the packages that `npm run release` has made, or else by this tree's addon, from a registry on this
// machine. Exits with 1 where installing and the first step take longer than the limit. With --tree, what installing and
// starting cost in both trees, by turns.
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { countOf, numberOf, readArguments } from "../scripts/arguments.mjs";
import { wheelOfThisMachine } from "../scripts/setup/wheels.mjs";
import {
  BareMachine,
  bytesOf,
  firstStepSeconds,
  keptWheel,
  type Timed,
} from "../test/package/bare-machine.ts";
import { InstalledPackage, productionPackages } from "../test/package/installed.ts";
import { LocalProxy } from "../test/package/proxy.ts";
import { median } from "./measure/median.ts";

const usage = `
usage: npm run bench -- first-use [OPTIONS]

  --tree FOLDER  another checkout with its packages and addon, to install and start beside this one
  --rounds N     starts of each tree (7)
  --limit N      seconds that installing and a first run to its first step may take, libtorch at hand (20)`;
const text = { type: "string" } as const;
const { values } = readArguments(usage, {
  tree: text,
  rounds: { ...text, default: "7" },
  limit: { ...text, default: "20" },
});
const numRounds = countOf(usage, "rounds", values.rounds);
const limitSeconds = numberOf(usage, "limit", values.limit);
const steps = ["job.ts", "--ranks", "2", "--set", "steps=3", "--json"];

/** Letters that a phase's name has room for. */
const WIDTH = 46;
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const say = (phase: string, seconds: number, sizes = "") =>
  process.stdout.write(`${phase.padEnd(WIDTH)} ${seconds.toFixed(1).padStart(6)} s  ${sizes}\n`);

await measureFirstUse();
if (values.tree !== undefined) await compareTrees(resolve(values.tree));
process.stdout.write(
  `load ${loadavg()
    .map((load) => load.toFixed(1))
    .join(", ")}\n`,
);

async function measureFirstUse(): Promise<void> {
  const machine = new BareMachine();
  try {
    await machine.prepare();
    process.stdout.write(`addons: ${machine.addons.join(", ")}\n`);
    const train = ["npx", "troupe", "run", ...steps];
    machine.newUser();
    const python = { VIRTUAL_ENV: machine.placePython() };
    const installSeconds = await install(machine);
    const firstSeconds = firstStep(await machine.run(train, python));
    say("first run to its first step, Python's libtorch", firstSeconds);
    if (installSeconds + firstSeconds > limitSeconds) process.exitCode = 1;
    say("a later run to its first step", firstStep(await machine.run(train, python)));
    machine.removeUser();
    if (keptWheel === undefined) {
      process.stdout.write("nothing was fetched: PIP_FIND_LINKS has no wheel\n");
      return;
    }
    machine.newUser();
    machine.registry.file(`/whl/${wheelOfThisMachine()?.file}`, readFileSync(keptWheel));
    const proxy = new LocalProxy(machine.registry.port);
    await proxy.listen();
    const network = {
      HTTP_PROXY: proxy.url,
      TROUPE_WHEELS: "http://wheels.test/whl",
      npm_config_registry: "http://registry.test",
      NO_PROXY: "",
    };
    await install(machine, network, ", by a proxy");
    const before = machine.registry.sentBytes;
    const run = await machine.run(train, network);
    const fetched = megabytes(machine.registry.sentBytes - before);
    const unpacked = megabytes(bytesOf(join(machine.home, ".cache", "troupe", "libtorch")));
    say(
      "first run to its first step, libtorch fetched",
      firstStep(run),
      `${fetched} fetched, ${unpacked} on disk`,
    );
    proxy.close();
  } finally {
    machine.remove();
  }
}

async function install(machine: BareMachine, env: NodeJS.ProcessEnv = {}, how = ""): Promise<number> {
  const before = machine.registry.sentBytes;
  const command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "troupe"];
  const { seconds } = succeeded(await machine.run(command, env));
  const fetched = megabytes(machine.registry.sentBytes - before);
  const installed = megabytes(bytesOf(join(machine.project, "node_modules")));
  say(`npm install --ignore-scripts${how}`, seconds, `${fetched} fetched, ${installed} on disk`);
  return seconds;
}

function firstStep(run: Timed): number {
  return succeeded(run).firstStepSeconds;
}

function succeeded(run: Timed): Timed {
  if (run.code !== 0) throw new Error(run.err);
  return run;
}

/** Installs both trees' packages, and starts the job in each by turns. */
async function compareTrees(tree: string): Promise<void> {
  const here = fileURLToPath(new URL("..", import.meta.url));
  const sides = [here, tree].map((root) => ({
    root,
    installed: new InstalledPackage(root),
    seconds: [] as number[],
    processorSeconds: [] as number[],
  }));
  try {
    for (const { root, installed } of sides) {
      await installed.install();
      for (const file of ["examples/hello/job.ts", "README.md"])
        installed.write(basename(file), readFileSync(join(root, file), "utf8"));
    }
    // The first start compiles what the later ones find.
    for (let round = 0; round <= numRounds; round++)
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const started = await start(side.installed, side.root);
        if (round === 0) continue;
        side.seconds.push(started.seconds);
        side.processorSeconds.push(started.processorSeconds);
      }
    for (const { root, installed, seconds, processorSeconds } of sides) {
      const dependencies = join(installed.project, "node_modules");
      const own = bytesOf(installed.home);
      const all = bytesOf(dependencies);
      process.stdout.write(
        `${root}\n` +
          `  troupe ${megabytes(installed.sizeBytes)} fetched, ${megabytes(own)} on disk; ` +
          `${productionPackages(root).length} packages beside it, ${megabytes(all - own)} on disk\n` +
          `  to the first step ${median(seconds).toFixed(2)} s, ` +
          `processor time of the run ${median(processorSeconds).toFixed(2)} s (medians of ${numRounds}; ` +
          `least ${Math.min(...seconds).toFixed(2)} and ${Math.min(...processorSeconds).toFixed(2)} s)\n`,
      );
    }
  } finally {
    for (const { installed } of sides) installed.remove();
  }
}

async function start(installed: InstalledPackage, root: string) {
  const startMs = Date.now();
  const before = childrenSeconds();
  const program = join(installed.home, "bin", "troupe.mjs");
  const ended = await installed.run(process.execPath, [program, "run", ...steps], {
    env: { TROUPE_ADDON: join(root, "build", "troupe.node") },
  });
  const processorSeconds = childrenSeconds() - before;
  if (ended.code !== 0) throw new Error(ended.err);
  return { seconds: firstStepSeconds(ended.out, startMs), processorSeconds };
}

/** Processor time of this process's children that have ended, and of theirs. */
function childrenSeconds(): number {
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[13]) + Number(fields[14])) / 100;
}
