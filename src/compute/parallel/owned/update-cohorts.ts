import { TroupeError } from "../../../errors/index.ts";
import type { UpdateStep } from "../../optim/index.ts";
import type { FlatParameter, Piece } from "../blocks/flat-block.ts";
import type { OwnedPart, RuleShare } from "./owned-range.ts";

/** One optimizer step on a block, with the parameters that it leaves out and the counts of earlier omissions. Plain data. */
export interface BlockStep extends Omit<UpdateStep, "scale"> {
  /** Names of the parameters that stay as they are, with all their state. Default: none. */
  readonly frozen?: readonly string[];
  /** By name, the number of earlier updates that left a parameter out; 0 without an entry. */
  readonly frozenUpdates?: Readonly<Record<string, number>>;
}

/** Parameters of a share that make the same update, counted from 1 for each of them. */
export interface Cohort {
  readonly updateIndex: number;
  /** Parameters of the cohort, the same on all ranks, owned here or not. */
  readonly parameters: readonly FlatParameter[];
  readonly runs: readonly Run[];
}

/** Consecutive pieces of a stretch, and where in the stretch and its state they lie. */
export interface Run {
  /** Its index among the stretches of its share. */
  readonly stretch: number;
  /** First element, within the stretch. */
  readonly begin: number;
  readonly numel: number;
  /** Their offsets count from the run's first element. */
  readonly pieces: readonly Piece[];
  readonly pieceGroups: readonly number[];
  /** For each kind of state of the run, the kind's index in the stretch's state and the run's range in it. */
  readonly state: readonly { readonly kind: number; readonly begin: number; readonly numel: number }[];
}

/** @returns the number of updates of a parameter after a step that trains it */
export function updateIndexOf({ updateIndex, frozenUpdates }: BlockStep, name: string): number {
  return updateIndex - (frozenUpdates?.[name] ?? 0);
}

/**
 * Sorts the parameters that an optimizer updates in a block by the number of their update. Mostly that is one cohort of
 * full stretches: parameters that were never frozen make every update together.
 * @throws {TroupeError} `OPTIMIZER_OPTION` for an optimizer whose state cannot be cut between parameters
 */
export function cohortsOf(share: RuleShare, step: BlockStep): Cohort[] {
  const frozen = new Set(step.frozen);
  const trained = share.parameters.filter(({ name }) => !frozen.has(name));
  const byUpdate = Map.groupBy(trained, ({ name }) => updateIndexOf(step, name));
  return [...byUpdate].map(([updateIndex, parameters]) => {
    const names = new Set(parameters.map(({ name }) => name));
    const runs = share.stretches.flatMap((part, stretch) => runsIn(share, part, stretch, names));
    return { updateIndex, parameters, runs };
  });
}

function runsIn(share: RuleShare, part: OwnedPart, stretch: number, names: ReadonlySet<string>): Run[] {
  const runs: Run[] = [];
  let first: number | undefined;
  for (let index = 0; index <= part.pieces.length; index++) {
    const piece = part.pieces[index];
    const isIn = piece !== undefined && names.has(piece.parameter.name);
    if (isIn) first ??= index;
    else if (first !== undefined) {
      runs.push(cutRun(share, part, stretch, first, index));
      first = undefined;
    }
  }
  return runs;
}

/** The pieces from `first` until before `end`; padding goes with the piece before it, and with the stretch's first. */
function cutRun({ rule }: RuleShare, part: OwnedPart, stretch: number, first: number, end: number): Run {
  const { pieces, pieceGroups, numel, state } = part;
  const begin = first === 0 ? 0 : (pieces[first]?.rangeBegin ?? 0);
  const behind = pieces[end]?.rangeBegin ?? numel;
  const own = pieces.slice(first, end).map((piece) => ({ ...piece, rangeBegin: piece.rangeBegin - begin }));
  const run = { begin: part.begin + begin, numel: behind - begin, pieces: own };
  return {
    stretch,
    begin,
    numel: run.numel,
    pieces: own,
    pieceGroups: pieceGroups.slice(first, end),
    state: rule.stateOf(run).map((layout) => {
      const kind = state.findIndex((each) => each.kind === layout.kind);
      return { kind, begin: placeOf(layout, state[kind], layout.kind), numel: layout.numel };
    }),
  };
}

type StateOfKind = OwnedPart["state"][number];

/** @returns the offset of a run's state in that of its full stretch: its pieces lie there as in the run's own */
function placeOf(run: StateOfKind, full: StateOfKind | undefined, kind: string): number {
  const places = run.pieces.map((piece) => {
    const same = full?.pieces.find(
      ({ parameter, parameterBegin }) =>
        parameter.name === piece.parameter.name && parameterBegin === piece.parameterBegin,
    );
    return (same?.rangeBegin ?? Number.NaN) - piece.rangeBegin;
  });
  const [begin = 0] = places;
  if (full !== undefined && places.every((place) => place === begin) && begin + run.numel <= full.numel)
    return begin;
  throw new TroupeError("OPTIMIZER_OPTION", {
    where: "optim",
    expected: "state of consecutive parameters side by side, where some of them are frozen in mid-run",
    got: `${kind} in another order`,
    hint: "see stateOf of the rule",
    fields: { kind },
  });
}
