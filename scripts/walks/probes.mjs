// node --import scripts/walks/probes.mjs ...: in every thread, prints the call stacks at the fixed places of a batch, a gradient and an event
// that no job can see.
import { registerHooks } from "node:module";

/**
 * By file of src: what passes there, and the beginning of the first line before which it is noted.
 * @type {Record<string, readonly [what: string, line: string]>}
 */
const places = {
  "actors/engine/rank/batch-source.ts": ["batch", "return { batch: attachBatch("],
  "compute/parallel/rank/gradient-buckets.ts": ["gradient", "ops.troupe.collectGradients_("],
  "actors/shard/group/shard-group.ts": ["gradient", "ops.troupe.reduceRanks_("],
  "compute/optim/adam.ts": ["gradient", "kernels[kind]("],
};

/** @param {string} what */
function noteWalk(what) {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = Number.POSITIVE_INFINITY;
  const { stack = "" } = new Error(`walk of ${what}`);
  Error.stackTraceLimit = stackTraceLimit;
  const files = [...stack.matchAll(/\/src\/([\w/.-]+\.ts):/g)].map(([, file]) => file);
  process.stdout.write(`${JSON.stringify({ what, files })}\n`);
}
Object.assign(globalThis, { noteWalk });

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    const found = Object.entries(places).find(([name]) => url.endsWith(`/src/${name}`));
    if (found === undefined) return loaded;
    const [file, [what, beginning]] = found;
    const lines = String(loaded.source).split("\n");
    const at = lines.findIndex((line) => line.trim().startsWith(beginning));
    if (at < 0)
      throw new Error(`[walks] expected a line that begins with ${beginning} in src/${file}, got none`);
    return { ...loaded, source: lines.toSpliced(at, 0, `noteWalk("${what}");`).join("\n") };
  },
});
