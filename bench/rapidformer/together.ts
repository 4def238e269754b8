import type { Layout, PipelineAction } from "../../src/compute/parallel/index.ts";
import type { PassMemory } from "../../src/tools/planner/cost/pass-memory.ts";
import type { RankMemory } from "../../src/tools/planner/cost/plan-memory.ts";

/** Relative times of passes. */
const duration = { forward: 1, backward: 2 } as const;

/**
 * Peak of one rank of each stage together, besides their states, at any moment of a step. Stages reach their own peaks
 * one after the other, so the sum of those peaks is never reached. Passes are assumed to take equally long on all
 * stages.
 * @param memories - of all stages, in order
 */
export function passingTogether(memories: readonly RankMemory[], layout: Layout): number {
  const stages = memories.map((memory, stage) => {
    const { parameters, master, optimizer, host, peakBytes, passes } = memory;
    const most = Math.max(...passes.map((pass) => pass.peakBytes));
    // Batches and gathered parameters are always there.
    return { stage, passes, always: peakBytes - most - (parameters + master + optimizer - host) };
  });
  const begins = beginsOf(memories, layout);
  const at = (time: number) =>
    stages.reduce((total, { stage, passes, always }) => {
      const own = begins[stage] ?? [];
      const last = own.findLastIndex((begin) => begin <= time);
      const pass = passes[last];
      return total + always + (pass === undefined ? 0 : bytesAt(pass, time - (own[last] ?? 0)));
    }, 0);
  const times = stages.flatMap(({ stage, passes }) =>
    passes.flatMap(({ action, momentBytes }, place) =>
      momentBytes.map((_, moment) => {
        const passed = (moment + 0.5) / momentBytes.length;
        return (begins[stage]?.[place] ?? 0) + duration[action.kind] * passed;
      }),
    ),
  );
  return Math.max(...times.map(at));
}

/** A pass goes through its moments evenly. */
function bytesAt({ action, momentBytes, restBytes }: PassMemory, passed: number): number {
  return momentBytes[Math.floor((passed / duration[action.kind]) * momentBytes.length)] ?? restBytes;
}

/** Start of each stage's passes: as soon as their inputs exist and the pass before has ended. */
function beginsOf(memories: readonly RankMemory[], { pp, chunks }: Layout): number[][] {
  const ends = new Map<string, number>();
  const key = (kind: string, microBatch: number, along: number) => `${kind} ${microBatch} ${along}`;
  const lastPlace = pp * chunks - 1;
  const need = ({ kind, microBatch, chunk }: PipelineAction, stage: number): number | undefined => {
    const place = chunk * pp + stage;
    if (kind === "forward") return place === 0 ? 0 : ends.get(key(kind, microBatch, place - 1));
    return place === lastPlace ? 0 : ends.get(key(kind, microBatch, place + 1));
  };
  const begins = memories.map((): number[] => []);
  const free = memories.map(() => 0);
  const numPasses = memories.reduce((total, { passes }) => total + passes.length, 0);
  for (let placed = 0; placed < numPasses; ) {
    for (const [stage, { passes }] of memories.entries()) {
      const own = begins[stage] as number[];
      const action = passes[own.length]?.action;
      const ready = action === undefined ? undefined : need(action, stage);
      if (action === undefined || ready === undefined) continue;
      const begin = Math.max(ready, free[stage] as number);
      own.push(begin);
      free[stage] = begin + duration[action.kind];
      ends.set(key(action.kind, action.microBatch, action.chunk * pp + stage), free[stage] as number);
      placed++;
    }
  }
  return begins;
}
