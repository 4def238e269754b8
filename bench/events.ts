/**
 * What telling costs a step: runs that tell nobody, then the same with every sink, with sampled traces, and traced whole,
 * in turn, as ratios within a round.
 * `npm run bench -- events [--rounds 5] [--steps 60] [--ranks 2]`
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { parseArgs } from "node:util";
import {
  chromeTraceSink,
  consoleSink,
  type EventSink,
  jsonLinesSink,
  prometheusSink,
  Runtime,
  type RuntimeOptions,
  tensorBoardSink,
} from "troupe";
import { median } from "./median.ts";

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    steps: { type: "string", default: "60" },
    ranks: { type: "string", default: "2" },
  },
});
const config = { layers: 4, dim: 128, heads: 4, vocab: 1024, batch: 4, seq: 128, steps: Number(flags.steps) };

/** One way to tell. */
interface Row {
  readonly name: string;
  options(folder: string): Promise<RuntimeOptions>;
}

const silent = { memory: { everySteps: Number.POSITIVE_INFINITY } };
const rows: readonly Row[] = [
  { name: "nobody is told", options: async () => silent },
  { name: "every sink", options: async (folder) => ({ sinks: await allSinks(folder) }) },
  { name: "1 step of 100 traced", options: async () => ({ ...silent, traceEvery: 100 }) },
  {
    name: "traced, to a file",
    options: async (folder) => ({
      ...silent,
      trace: true,
      sinks: [chromeTraceSink(join(folder, "trace.json"))],
    }),
  },
];

async function allSinks(folder: string): Promise<EventSink[]> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  return [
    consoleSink({ stream: { isTTY: true, columns: 120, write: () => true } }),
    jsonLinesSink(nowhere),
    tensorBoardSink(join(folder, "tensorboard")),
    await prometheusSink({ port: 0 }),
  ];
}

/** The processor time that sinks take of the main thread within the call that tells, in all. */
class Stopwatch {
  totalMs = 0;

  around(sink: EventSink): EventSink {
    return {
      write: (event) => {
        const before = process.threadCpuUsage();
        sink.write(event);
        const { user, system } = process.threadCpuUsage(before);
        this.totalMs += (user + system) / 1000;
      },
      close: () => sink.close(),
    };
  }
}

interface Measured {
  readonly stepMs: number;
  readonly sinksMs: number;
}

async function measure(row: Row): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
  try {
    const options = await row.options(folder);
    const watch = new Stopwatch();
    const sinks = (options.sinks ?? []).map((sink) => watch.around(sink));
    const times: number[] = [];
    const clock = {
      write: (event: { kind: string; durationMs?: number }) => note(event, times),
      close: async () => {},
    };
    await using runtime = await Runtime.spawn({
      ranks: Number(flags.ranks),
      ...options,
      sinks: [...sinks, clock],
    });
    await runtime.run(new URL("./gpt/job.ts", import.meta.url), config);
    return { stepMs: median(times.slice(5)), sinksMs: watch.totalMs / times.length };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function note({ kind, durationMs = 0 }: { kind: string; durationMs?: number }, times: number[]): void {
  if (kind === "step.finished") times.push(durationMs);
}

const measured = new Map(rows.map(({ name }) => [name, [] as Measured[]]));
for (let round = 0; round < Number(flags.rounds); round++) {
  // Each row goes first as often as any other, so that a machine that warms up favours none.
  const order = rows.map((_, index) => rows[(index + round) % rows.length] as Row);
  for (const row of order) measured.get(row.name)?.push(await measure(row));
}
const [first] = rows as [Row, ...Row[]];
console.log(
  `${flags.ranks} ranks, ${config.layers} layers of ${config.dim}, medians of ${flags.rounds} rounds in turn`,
);
for (const { name } of rows) {
  const own = measured.get(name) ?? [];
  const base = measured.get(first.name) ?? [];
  const ratio = median(own.map(({ stepMs }, round) => stepMs / (base[round]?.stepMs ?? Number.NaN)));
  const stepMs = median(own.map((one) => one.stepMs));
  const sinksMs = median(own.map((one) => one.sinksMs));
  console.log(
    `${name.padEnd(22)} ${stepMs.toFixed(2)} ms a step, ${ratio.toFixed(3)} x; ` +
      `in sinks ${(1000 * sinksMs).toFixed(0)} us a step, ${((100 * sinksMs) / stepMs).toFixed(2)} % of it`,
  );
}
