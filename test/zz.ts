import { expertsJob, lossesOf, tinyJob, Workspace } from "./fixtures/run-tiny.ts";

using ws = new Workspace();
const steps = 8;
const run = async (o: any, c: any = {}, job = tinyJob) => {
  try {
    return await lossesOf(ws, { zero: 0, steps, ...o }, { heads: 4, layers: 4, batch: 4, ...c }, job);
  } catch (e: any) {
    return String(e.message).slice(0, 400);
  }
};
const diff = (a: any, b: any) =>
  typeof a === "string" ? a : Math.max(...a.map((x: number, i: number) => Math.abs(x - b[i])));
const base: Record<string, any> = {};
for (const [name, o, c] of [
  ["tp2 untied", { ranks: 2, tp: 2 }, { tied: false }],
  ["tp2 pp2 sp", { ranks: 4, tp: 2, pp: 2, sequenceParallel: true }, { accumulation: 2 }],
  ["tp2 pp2 untied", { ranks: 4, tp: 2, pp: 2 }, { accumulation: 2, tied: false }],
  ["tp2 bf16", { ranks: 2, tp: 2, precision: "bf16" }, {}],
  ["tp2 sp amp", { ranks: 2, tp: 2, sequenceParallel: true, precision: "amp-bf16" }, {}],
  ["tp2 fp16", { ranks: 2, tp: 2, precision: "fp16" }, {}],
  ["tp2 offload", { ranks: 2, tp: 2, zero: 2, offload: { optimizer: "host" } }, {}],
  ["tp2 clip inf", { ranks: 2, tp: 2 }, { clipBy: "inf", clipNorm: 0.01 }],
  ["tp2 clip l2 small", { ranks: 2, tp: 2, sequenceParallel: true }, { clipNorm: 0.01 }],
  ["tp4 evaluate", { ranks: 4, tp: 4, sequenceParallel: true }, { evaluateEvery: 4 }],
  ["tp2 process", { ranks: 2, tp: 2, placement: "process" }, {}],
] as [string, any, any][]) {
  const key = JSON.stringify([c, o.precision]);
  const { accumulation, ...rest } = c;
  base[key] ??= await run({ ranks: 1, ...(o.precision && { precision: o.precision }) }, c);
  console.log(name, diff(await run(o, c), base[key]), typeof base[key] === "string" ? base[key] : "");
}
