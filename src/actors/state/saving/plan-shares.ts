import type { PartPlan, SavedShare, SavePlan, SentEntry } from "../../protocols/index.ts";

/**
 * Deals a save to one writer a rank, by what its rank sends; the first of equal copies is written.
 * @param ranks - the parts of each rank, in rank order
 */
export function planShares(ranks: readonly (readonly PartPlan[])[], { entries }: SavePlan): SavedShare[] {
  const order = new Map(entries.map((entry, place) => [nameOf(entry), place]));
  const placeOf = (entry: SentEntry) => order.get(nameOf(entry)) ?? 0;
  const taken = new Map<string, Run[]>();
  return ranks.map((parts) => ({
    numParts: parts.length,
    entries: parts
      .flatMap((part) => part.entries.flatMap((entry) => untaken(entry, taken)))
      .toSorted((a, b) => placeOf(a) - placeOf(b) || a.held.begin - b.held.begin),
  }));
}

/** Elements `begin` to `end`. */
interface Run {
  readonly begin: number;
  readonly end: number;
}

/** Takes the runs of an entry that are not taken yet. */
function untaken(entry: SentEntry, taken: Map<string, Run[]>): SentEntry[] {
  const { held } = entry;
  const key = `${nameOf(entry)} ${held.split?.index ?? 0}`;
  const before = taken.get(key) ?? [];
  let rest: Run[] = [{ begin: held.begin, end: held.begin + held.numel }];
  for (const run of before) rest = rest.flatMap((each) => without(each, run));
  taken.set(key, [...before, ...rest]);
  return rest.map(({ begin, end }) => ({ ...entry, held: { ...held, begin, numel: end - begin } }));
}

function without({ begin, end }: Run, other: Run): Run[] {
  const left = { begin, end: Math.min(end, other.begin) };
  const right = { begin: Math.max(begin, other.end), end };
  return [left, right].filter((run) => run.begin < run.end);
}

const nameOf = ({ kind, parameter }: Pick<SentEntry, "kind" | "parameter">) => `${kind} ${parameter}`;
