import { cpus } from "node:os";
import type { CaseName } from "./cases.ts";

/** The result of a case: both sides' scores, for each seed one of each start. */
export interface Learnt {
  /** When it was seen, YYYY-MM-DD. */
  readonly day: string;
  readonly steps: number;
  /** The largest difference between two losses of the first steps, over all seeds. */
  readonly apart: number;
  readonly score: string;
  readonly ours: readonly (readonly number[])[];
  readonly theirs: readonly (readonly number[])[];
  readonly isBetterAbove: boolean;
  /** Troupe's score with shuffled labels. */
  readonly shuffled: number;
  /** The score of a model that learns nothing, and the reason. */
  readonly chance: number;
  readonly chanceIs: string;
  /** How far from it labels without sense may end. */
  readonly slack: number;
}

/** Steps whose mean is taken: of a single one, what tells its end is as late or early as a small step is long. */
const IN_A_ROW = 10;

/** The smallest mean of some steps in a row. */
export function fastestInARow(times: readonly number[]): number {
  const count = Math.min(IN_A_ROW, times.length);
  return Math.min(...times.slice(count - 1).map((_, first) => mean(times.slice(first, first + count))));
}

/** Times over all rounds. */
export interface Times {
  /** Ten steps in a row. */
  readonly fastest: number;
  /** Median of the rounds' medians. */
  readonly median: number;
}

/** How long a step of each took, in seconds, and what memory each took at most, the median over rounds. */
export type Timed = Readonly<Record<"troupe" | "eager" | "fsdp2", Times & { readonly peakBytes: number }>> & {
  /** When it was seen, YYYY-MM-DD. */
  readonly day: string;
};

/** The measurements of a case; those that were not requested are left out. */
export interface Seen {
  readonly learnt?: Learnt;
  readonly timed?: Timed;
  /** Versions of the peers' packages. */
  readonly versions: string;
}

/** How many times as fast as each peer Troupe is: by the fastest ten steps in a row, since other work only slows a run down, and by medians. */
export function fasterThan({ troupe, eager, fsdp2 }: Timed): Readonly<Record<"eager" | "fsdp2", Times>> {
  const than = (peer: Times): Times => ({
    fastest: peer.fastest / troupe.fastest,
    median: peer.median / troupe.median,
  });
  return { eager: than(eager), fsdp2: than(fsdp2) };
}

/** The largest difference of losses, and the ratios, that the project is judged by. */
export const bars = { apart: 1e-4, eager: 1.3, fsdp2: 2.5, memory: 0.7 } as const;

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Between the best and the worst seed of transformers, which chance alone makes; where a seed has several starts, the mean over
 * every choice of one of each.
 */
export function spreadOf({ theirs }: Learnt): number {
  return mean(choices(theirs).map((chosen) => Math.max(...chosen) - Math.min(...chosen)));
}

/** Every way to choose one of each. */
function choices(from: readonly (readonly number[])[]): number[][] {
  return from.reduce<number[][]>(
    (before, each) => before.flatMap((chosen) => each.map((one) => [...chosen, one])),
    [[]],
  );
}

/** Whether the two means lie no further apart than that spread. */
export function isWithinSpread(learnt: Learnt): boolean {
  return Math.abs(mean(learnt.ours.flat()) - mean(learnt.theirs.flat())) <= Math.max(spreadOf(learnt), 1e-6);
}

/** How far the scores of one seed and side lie about their mean, for roundings alone: a standard deviation. NaN for one start */
export function roundingOf({ ours, theirs }: Learnt): number {
  const squares = [...ours, ...theirs].flatMap((scores) =>
    scores.map((score) => (score - mean(scores)) ** 2 / (scores.length - 1)),
  );
  return Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / (ours.length + theirs.length));
}

/** The standard error, for roundings alone, of the difference between the two means. NaN for one start of each seed */
export function unsurenessOf(learnt: Learnt): number {
  return roundingOf(learnt) * Math.sqrt(1 / learnt.ours.flat().length + 1 / learnt.theirs.flat().length);
}

/** Whether training on shuffled labels learnt nothing. */
export function isChance({ shuffled, chance, slack, isBetterAbove }: Learnt): boolean {
  return isBetterAbove ? shuffled <= chance + slack : shuffled >= chance - slack;
}

/** Whether something was learnt of those that belong there, by each side. */
export function isAboveChance({ ours, theirs, chance, slack, isBetterAbove }: Learnt): boolean {
  return [mean(ours.flat()), mean(theirs.flat())].every((score) =>
    isBetterAbove ? score > chance + slack : score < chance - slack,
  );
}

/** The results that miss their bars, a line each. */
export function missedBars(seen: ReadonlyMap<CaseName, Seen>): string[] {
  return [...seen].flatMap(([name, { learnt, timed }]) =>
    [...(learnt === undefined ? [] : missedOf(learnt)), ...(timed === undefined ? [] : missedIn(timed))].map(
      (missed) => `${name}: ${missed}`,
    ),
  );
}

function missedOf(learnt: Learnt): string[] {
  const { apart, score, ours, theirs, shuffled, chance } = learnt;
  return [
    ...(apart <= bars.apart ? [] : [`losses ${apart.toExponential(1)} apart, bar ${bars.apart}`]),
    ...(isWithinSpread(learnt)
      ? []
      : [
          `${score} ${short(mean(ours.flat()))} beside ${short(mean(theirs.flat()))}, further apart than transformers' seeds (${short(spreadOf(learnt))})`,
        ]),
    ...(isChance(learnt)
      ? []
      : [`${score} ${short(shuffled)} with shuffled labels, chance is ${short(chance)}`]),
  ];
}

function missedIn(timed: Timed): string[] {
  const { eager, fsdp2 } = fasterThan(timed);
  const share = shareOf(timed);
  return [
    ...(eager.fastest >= bars.eager ? [] : [`${short(eager.fastest)} × eager, bar ${bars.eager}`]),
    ...(fsdp2.fastest >= bars.fsdp2 ? [] : [`${short(fsdp2.fastest)} × FSDP2, bar ${bars.fsdp2}`]),
    ...(share <= bars.memory ? [] : [`${short(share)} of FSDP2's memory, bar ${bars.memory}`]),
  ];
}

function shareOf({ troupe, fsdp2 }: Timed): number {
  return troupe.peakBytes / fsdp2.peakBytes;
}

const LEARNT_HEAD = [
  ...["case", "steps", "apart", "score", "Troupe", "transformers"],
  ...["its spread", "by rounding", "shuffled labels", "chance", "seen on"],
];
const TIMED_HEAD = [
  ...["case", "Troupe, s a step", "eager", "FSDP2", "× eager", "× FSDP2"],
  ...["peak, MB", "FSDP2's", "share", "seen on"],
];

/** docs/reference/learning.md. */
export function learningPage(seen: ReadonlyMap<CaseName, Seen>): string {
  const all = [...seen];
  const missed = missedBars(seen);
  const learnt = all.flatMap(([name, { learnt }]) => (learnt === undefined ? [] : [learntRow(name, learnt)]));
  const timed = all.flatMap(([name, { timed }]) => (timed === undefined ? [] : [timedRow(name, timed)]));
  const started = all.flatMap(([name, { learnt }]) =>
    learnt === undefined || numStartsOf(learnt) === 1 ? [] : [startsTable(name, learnt)],
  );
  return `# Learning beside PyTorch

Written by \`npm run bench -- learning --page docs/reference/learning.md\` on ${new Date().toISOString().slice(0, 10)}: ${cpus()[0]?.model.trim()},
${cpus().length} cores, Node ${process.version}, ${all.at(-1)?.[1].versions}. Both sides begin with the same weights and read the same batches in the same
order (\`bench/learning/cases.ts\`); Troupe runs on 2 ranks with ZeRO-3. ✗ marks a figure that misses its bar${missed.length === 0 ? "; there is none" : ""}.

${missed.map((line) => `- missed: ${line}\n`).join("")}${missed.length === 0 ? "" : "\n"}## What is learnt

\`bert\` is compared for its speed alone; \`mrpc\` is a smaller BERT on the same pairs of sentences, and \`tags\` one for parts of speech.
PyTorch is eager, with as many threads as there are cores. The column "apart" has the largest difference of two losses in the first 20 steps (bar
${bars.apart}). The means of the scores must differ by no more than the spread of transformers' own seeds. Chance is the score of a
model that learns nothing; the table says so if a side is not clearly above it.

If rounding alone makes two runs of one side differ, each seed is trained from several starts. A start draws the last bit of every weight again,
and both sides have the same starts. Means of each seed are in brackets. The column "by rounding" has the standard deviation of the scores of
one seed and one side, and after ± the standard error of the difference of the two means. The spread is then the mean over every choice of one
start for each seed. The notes say [why runs part](../../bench/notes/learning-roundings.md).

${table(LEARNT_HEAD, learnt)}

${started.map((each) => `${each}\n\n`).join("")}## How fast

The bars apply to the fastest ten steps in a row, since other work on a machine only slows a run down; medians are in brackets. The two sides
run in turn, in either order. Bars: ${bars.eager} × eager on all cores, ${bars.fsdp2} × FSDP2 over Gloo on 2 ranks, ${bars.memory} of the sum of FSDP2's two processes' memory at its peak.
The [notes on step times](../../bench/notes/step-time.md) say where the time goes.

${table(TIMED_HEAD, timed)}
`;
}

function learntRow(name: string, learnt: Learnt): string[] {
  return [
    name,
    `${learnt.steps}`,
    `${learnt.apart.toExponential(1)}${mark(learnt.apart <= bars.apart)}`,
    learnt.score,
    `${short(mean(learnt.ours.flat()))}${mark(isWithinSpread(learnt))} (${bySeed(learnt.ours)})`,
    `${short(mean(learnt.theirs.flat()))} (${bySeed(learnt.theirs)})`,
    short(spreadOf(learnt)),
    numStartsOf(learnt) === 1
      ? "one start"
      : `${short(roundingOf(learnt))}, ${numStartsOf(learnt)} starts ± ${short(unsurenessOf(learnt))}`,
    `${short(learnt.shuffled)}${mark(isChance(learnt))}`,
    `${short(learnt.chance)}, ${learnt.chanceIs}${isAboveChance(learnt) ? "" : ": nothing is learnt in so few steps"}`,
    learnt.day,
  ];
}

function numStartsOf({ ours }: Learnt): number {
  return ours[0]?.length ?? 0;
}

/** Every score of a case that has several starts. */
function startsTable(name: string, { score, ours, theirs }: Learnt): string {
  const of = (side: string, scores: Learnt["ours"]) => [
    side,
    ...scores.map((ofSeed) => ofSeed.map(short).join(", ")),
  ];
  const seeds = ours.map((_, seed) => `seed ${seed + 1}`);
  return table(
    [`${name}, ${score} of each start`, ...seeds],
    [of("Troupe", ours), of("transformers", theirs)],
  );
}

function bySeed(scores: readonly (readonly number[])[]): string {
  return scores.map((ofSeed) => short(mean(ofSeed))).join(", ");
}

function timedRow(name: string, timed: Timed): string[] {
  const { troupe, eager, fsdp2 } = timed;
  const faster = fasterThan(timed);
  const share = shareOf(timed);
  const both = ({ fastest, median }: Times) => `${short(fastest)} (${short(median)})`;
  return [
    name,
    both(troupe),
    both(eager),
    both(fsdp2),
    `${both(faster.eager)}${mark(faster.eager.fastest >= bars.eager)}`,
    `${both(faster.fsdp2)}${mark(faster.fsdp2.fastest >= bars.fsdp2)}`,
    (troupe.peakBytes / 1e6).toFixed(0),
    (fsdp2.peakBytes / 1e6).toFixed(0),
    `${short(share)}${mark(share <= bars.memory)}`,
    timed.day,
  ];
}

/** In Markdown, each column as wide as the widest of it. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = rows.length === 0 ? [head, ["not run", ...head.slice(1).map(() => "")]] : [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const [first = "", ...others] = all.map(line);
  return [first, line(widths.map((width) => "-".repeat(width))), ...others].join("\n");
}

function mark(holds: boolean): string {
  return holds ? "" : " ✗";
}

function short(value: number): string {
  return value === 0 ? "0" : value.toPrecision(3);
}
