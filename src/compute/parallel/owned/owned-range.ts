import type { StateLayout, Stretch, UpdateRule } from "../../optim/index.ts";
import {
  type FlatBlock,
  type FlatParameter,
  memberOf,
  type Piece,
  piecesIn,
  type Range,
  sliceOf,
} from "../blocks/flat-block.ts";
import { splittingOf } from "../layout/zero.ts";

/** The elements of a block whose optimizer state `rank` keeps: its slice, or all at level 0. */
export function ownedRange(layout: FlatBlock, rank: number): Range {
  if (!splittingOf(layout.zero).optimizer) return { begin: 0, end: layout.numel };
  return sliceOf(layout, memberOf(layout, rank));
}

/** Whether a rank represents its part of a block: among equal copies, one does. @param rank - of the world */
export function sendsPart(layout: FlatBlock, rank: number): boolean {
  return layout.counted && (layout.zero > 0 || layout.group[0] === rank);
}

/** Whether a rank's shard sends its part of a block when the state is saved: a base is never sent. */
export function savesPart(layout: FlatBlock, rank: number): boolean {
  return !layout.base && sendsPart(layout, rank);
}

/** The stretches of one block that one optimizer updates. */
export interface RuleShare {
  readonly rule: UpdateRule;
  /** The index of the rule's first group among those of all rules. */
  readonly firstGroup: number;
  /** Every parameter of the block that the rule names. */
  readonly parameters: readonly FlatParameter[];
  readonly stretches: readonly OwnedPart[];
}

/** A stretch with its state. */
export interface OwnedPart extends Stretch<Piece> {
  /** The group index of each piece. */
  readonly pieceGroups: readonly number[];
  readonly state: readonly StateLayout<Piece>[];
}

/** Deals the parameters in a range to the rules that name them, stretch by stretch; the first rule takes the rest. */
export function dealRange(layout: FlatBlock, range: Range, rules: readonly UpdateRule[]): RuleShare[] {
  const places = new Map<string, { readonly rule: number; readonly group: number }>();
  rules.forEach(({ groups }, rule) => {
    groups.forEach(({ names }, group) => {
      for (const name of names) places.set(name, { rule, group });
    });
  });
  const runs: { rule: number; begin: number; end: number; pieces: Piece[]; groups: number[] }[] = [];
  for (const piece of piecesIn(layout, range)) {
    const { rule, group } = places.get(piece.parameter.name) ?? { rule: 0, group: 0 };
    const last = runs.at(-1);
    const run = last?.rule === rule ? last : { rule, begin: 0, end: 0, pieces: [], groups: [] };
    if (run !== last) {
      // Padding goes with the parameters before it: zeros stay zeros under every rule.
      run.begin = last === undefined ? 0 : piece.rangeBegin;
      if (last !== undefined) last.end = run.begin;
      runs.push(run);
    }
    run.end = range.end - range.begin;
    run.pieces.push(piece);
    run.groups.push(group);
  }
  let firstGroup = 0;
  return rules.map((rule, index) => {
    const share = {
      rule,
      firstGroup,
      parameters: layout.parameters.filter(({ name }) => (places.get(name)?.rule ?? 0) === index),
      stretches: runs.filter((run) => run.rule === index).map((run) => stretchOf(range, run, rule)),
    };
    firstGroup += rule.groups.length;
    return share;
  });
}

function stretchOf(
  range: Range,
  run: { begin: number; end: number; pieces: Piece[]; groups: number[] },
  rule: UpdateRule,
): OwnedPart {
  const pieces = run.pieces.map((piece) => ({ ...piece, rangeBegin: piece.rangeBegin - run.begin }));
  const stretch = { begin: range.begin + run.begin, numel: run.end - run.begin, pieces };
  return { ...stretch, pieceGroups: run.groups, state: rule.stateOf(stretch) };
}
