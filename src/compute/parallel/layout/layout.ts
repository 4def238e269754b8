import { TroupeError } from "../../../errors/index.ts";
import type { ScheduleName } from "./pipeline-schedule.ts";

/** How a run is spread over its ranks. */
export interface Layout {
  readonly ranks: number;
  /** Ranks that split one layer. */
  readonly tp: number;
  /** Pipeline stages. */
  readonly pp: number;
  /** Ranks among which experts are dealt; divides the data-parallel ranks. */
  readonly ep: number;
  readonly zero: number;
  readonly schedule: ScheduleName;
  /** Chunks of the model on each stage; 1 unless interleaved. */
  readonly chunks: number;
  /** Samples in one step, over all ranks and micro-batches. */
  readonly batchSize: number;
  /** Micro-batches of one replica in one step. */
  readonly accumulation: number;
}

/** The properties of a model that decide which layouts work. */
export interface LayoutFacts {
  /** Calls of blocks that can be dealt to pipeline stages: as many as blocks, if each is called once. */
  readonly numBlocks: number;
  /** Sizes that tensor parallelism divides, with readable names: `{ heads: 12, "inner width": 3072 }`. */
  readonly dividedByTp: Readonly<Record<string, number>>;
  /** 0 without experts. */
  readonly numExperts: number;
}

/** Number of nearest layouts in an error. */
const NUM_SUGGESTED = 4;

/**
 * Checks a layout before anything is spawned for it.
 * @throws {TroupeError} `LAYOUT` with everything that is wrong and the nearest layouts that work, if any; also in its fields,
 * as `problems` and `nearest`
 */
export function checkLayout(facts: LayoutFacts, layout: Layout): void {
  const problems = layoutProblems(facts, layout);
  const [first, ...others] = problems;
  if (first === undefined) return;
  const nearest = nearestLayouts(facts, layout).slice(0, NUM_SUGGESTED);
  const names = nearest.map((other) => describeChanges(layout, other)).join("; or ");
  const more = others.map(({ expected, got }) => `expected ${expected}, got ${got}`);
  throw new TroupeError("LAYOUT", {
    where: "layout",
    expected: first.expected,
    got: [first.got, ...more].join("; "),
    hint: names === "" ? undefined : `nearest that work: ${names}`,
    fields: { problems, nearest },
  });
}

/** One thing that is wrong with a layout, in the words of an error. */
export interface LayoutProblem {
  readonly expected: string;
  readonly got: string;
}

/** @returns the problems of a layout; empty if it works */
export function layoutProblems(facts: LayoutFacts, layout: Layout): LayoutProblem[] {
  const unsound = countProblems(layout);
  return unsound.length > 0
    ? unsound
    : [...meshProblems(facts, layout), ...pipelineProblems(facts, layout), ...batchProblems(layout)];
}

const COUNTS = ["ranks", "tp", "pp", "ep", "chunks", "batchSize", "accumulation"] as const;

function countProblems(layout: Layout): LayoutProblem[] {
  const counts = COUNTS.filter((name) => !Number.isSafeInteger(layout[name]) || layout[name] < 1);
  const problems = counts.map((name) => ({
    expected: `${name} to be a whole number ≥ 1`,
    got: `${layout[name]}`,
  }));
  if (![0, 1, 2, 3].includes(layout.zero))
    problems.push({ expected: `a ZeRO level from 0 to 3`, got: `${layout.zero}` });
  return problems;
}

function meshProblems(facts: LayoutFacts, { ranks, tp, pp, ep }: Layout): LayoutProblem[] {
  const problems: LayoutProblem[] = [];
  if (ranks % (tp * pp) !== 0) {
    problems.push({ expected: `ranks in multiples of tp ${tp} × pp ${pp} = ${tp * pp}`, got: `${ranks}` });
  } else if ((ranks / (tp * pp)) % ep !== 0) {
    problems.push({ expected: `ep to divide the ${ranks / (tp * pp)} data-parallel ranks`, got: `${ep}` });
  }
  for (const [name, size] of Object.entries(facts.dividedByTp)) {
    if (size % tp !== 0) problems.push({ expected: `tp to divide ${size} ${name}`, got: `${tp}` });
  }
  if (ep > 1 && facts.numExperts % ep !== 0)
    problems.push({ expected: `ep to divide ${facts.numExperts} experts`, got: `${ep}` });
  if (ep > 1 && facts.numExperts === 0)
    problems.push({ expected: `ep 1 for a model without experts`, got: `${ep}` });
  return problems;
}

function pipelineProblems(facts: LayoutFacts, layout: Layout): LayoutProblem[] {
  const { pp, schedule, chunks, accumulation } = layout;
  const problems: LayoutProblem[] = [];
  if (pp * chunks > mostStages(facts)) {
    const each = chunks === 1 ? "" : ` × ${chunks} chunks`;
    problems.push({
      expected: `a layer or more for each of pp ${pp}${each} but the last`,
      got: facts.numBlocks === 1 ? "1 layer" : `${facts.numBlocks} layers`,
    });
  }
  if (schedule === "interleaved") {
    if (chunks === 1) problems.push({ expected: "two chunks a stage or more for interleaved", got: "1" });
    if (accumulation % pp !== 0)
      problems.push({
        expected: `micro-batches in multiples of pp ${pp} for interleaved`,
        got: `${accumulation}`,
      });
  } else if (chunks > 1) {
    problems.push({ expected: `one chunk a stage for ${schedule}`, got: `${chunks}` });
  }
  return problems;
}

/** The model's end after all layers may be a stage of its own. */
const mostStages = ({ numBlocks }: LayoutFacts): number => (numBlocks === 0 ? 1 : numBlocks + 1);

function batchProblems({ ranks, tp, pp, batchSize, accumulation }: Layout): LayoutProblem[] {
  const dp = ranks / (tp * pp);
  if (!Number.isSafeInteger(dp) || batchSize % (dp * accumulation) === 0) return [];
  return [
    {
      expected: `a batch in multiples of ${dp} data-parallel ranks × ${accumulation} micro-batches = ${dp * accumulation}`,
      got: `${batchSize}`,
    },
  ];
}

/** The cost of a change: once for each field, and for each doubling or halving; ranks are machines, and cost the most. */
const COST_OF_FIELD = 0.5;
const COST_OF_CHANGE = { ranks: 1.5, tp: 1, pp: 1, ep: 1, chunks: 1, batchSize: 1.1, accumulation: 1 };

/** @returns layouts that work, nearest first, none of which changes more than another listed one has to */
export function nearestLayouts(facts: LayoutFacts, layout: Layout): Layout[] {
  const found: { readonly layout: Layout; readonly distance: number }[] = [];
  for (const candidate of candidates(facts, layout)) {
    if (layoutProblems(facts, candidate).length === 0)
      found.push({ layout: candidate, distance: distanceOf(layout, candidate) });
  }
  found.sort((a, b) => a.distance - b.distance);
  const minimal: Layout[] = [];
  for (const { layout: candidate } of found) {
    const needless = minimal.some((other) => changesWithin(layout, other, candidate));
    if (!needless) minimal.push(candidate);
  }
  return minimal;
}

/** Whether `wide` has all the changes of `narrow`, and others besides. */
function changesWithin(asked: Layout, narrow: Layout, wide: Layout): boolean {
  return FIELDS.every((name) => narrow[name] === asked[name] || narrow[name] === wide[name]);
}

const FIELDS = [...COUNTS, "zero"] as const;

function distanceOf(from: Layout, to: Layout): number {
  const changed = COUNTS.filter((name) => to[name] !== from[name]);
  const cost = (name: (typeof COUNTS)[number]) =>
    COST_OF_FIELD + COST_OF_CHANGE[name] * Math.abs(Math.log2(to[name] / sound(from[name])));
  return changed.reduce((sum, name) => sum + cost(name), 0);
}

/** Every combination of values near the asked ones, with nearness defined by field. */
function* candidates(facts: LayoutFacts, asked: Layout): Generator<Layout> {
  const zero = Number.isFinite(asked.zero) ? Math.min(3, Math.max(0, Math.round(asked.zero))) : 3;
  const interleaved = asked.schedule === "interleaved";
  const limit = (size: number) => Math.max(1, size);
  for (const tp of near(asked.tp, Math.max(8, 2 * sound(asked.tp)))) {
    for (const pp of near(asked.pp, mostStages(facts))) {
      for (const chunks of interleaved ? near(asked.chunks, mostStages(facts)) : [1]) {
        for (const ranks of multiplesNear(asked.ranks, tp * pp)) {
          const dp = ranks / (tp * pp);
          for (const ep of near(asked.ep, limit(facts.numExperts))) {
            for (const accumulation of interleaved
              ? multiplesNear(asked.accumulation, pp)
              : near(asked.accumulation, 2 * sound(asked.accumulation))) {
              for (const batchSize of multiplesNear(asked.batchSize, dp * accumulation))
                yield { ...asked, zero, tp, pp, ep, chunks, ranks, accumulation, batchSize };
            }
          }
        }
      }
    }
  }
}

/** A count to measure from, even if the asked value is none. */
const sound = (value: number) => (Number.isSafeInteger(value) && value >= 1 ? value : 1);

/** The asked value, its neighbours, and its halves and doubles, up to `highest`. */
function near(value: number, highest: number): number[] {
  const asked = sound(value);
  const values = [asked, asked - 1, asked + 1, 1];
  for (let factor = 2; factor <= asked; factor *= 2) values.push(Math.floor(asked / factor));
  values.push(2 * asked);
  return [...new Set(values)].filter((candidate) => candidate >= 1 && candidate <= highest);
}

function multiplesNear(value: number, factor: number): number[] {
  const below = Math.floor(sound(value) / factor) * factor;
  const values = below === sound(value) ? [below] : [below, below + factor];
  return values.filter((candidate) => candidate >= factor);
}

const NAMES = {
  ranks: "ranks",
  tp: "tp",
  pp: "pp",
  ep: "ep",
  zero: "zero",
  chunks: "chunks",
  accumulation: "accumulation",
  batchSize: "batch",
} as const;

/** The differences in readable form: `tp 2, pp 2`. */
function describeChanges(asked: Layout, other: Layout): string {
  const names = Object.keys(NAMES) as (keyof typeof NAMES)[];
  return names
    .filter((name) => other[name] !== asked[name])
    .map((name) => `${NAMES[name]} ${other[name]}`)
    .join(", ");
}
