import type { ProcessGroup } from "../../../compute/collectives/index.ts";
import { hold, ops, type Tensor } from "../../../compute/tensor/index.ts";

/** So many members tell each other at once: below it a second hop takes longer than the messages that it saves. */
const MOST_AT_ONCE = 8;

/**
 * How the members of a group stand for {@link gatherByRows}: in rows of so many, each with as many, and as nearly square as its size
 * allows; in one row where they are few, or a prime number.
 */
export function rowLength(size: number): number {
  if (size <= MOST_AT_ONCE) return size;
  for (let length = Math.floor(Math.sqrt(size)); length > 1; length--) if (size % length === 0) return length;
  return size;
}

/** @returns the groups in which {@link gatherByRows} has a member of `ranks` exchange values, ranks of the world in order: its row and its column */
export function rowAndColumn(
  ranks: readonly number[],
  rank: number,
): { readonly row: readonly number[]; readonly column: readonly number[] } {
  const length = rowLength(ranks.length);
  const place = ranks.indexOf(rank);
  const begin = place - (place % length);
  return {
    row: ranks.slice(begin, begin + length),
    column: ranks.filter((_, member) => member % length === place % length),
  };
}

/**
 * All members' values, one after the other in the order of the members: of n members each tells some 2 √n others, where `allGather` has it
 * tell n - 1. Members tell their row, and with what that has told their column. Neighbours in a group are neighbours on a host, so
 * that the first hop crosses none.
 * @param groups - where a member finds the group of some ranks of the world
 * @param ranks - the members, ranks of the world in order, `rank` among them
 * @param value - a vector, of one length on all members; passes
 * @returns a vector, on the device of `value`; the caller's
 * @throws {TroupeError} `COLLECTIVE_ABORTED`
 */
export async function gatherByRows(
  groups: { of(ranks: readonly number[]): ProcessGroup },
  ranks: readonly number[],
  rank: number,
  key: string,
  value: Tensor,
): Promise<Tensor> {
  const { row, column } = rowAndColumn(ranks, rank);
  const ofRow = await gathered(groups.of(row), key, value);
  if (column.length === 1) return ofRow;
  return await gathered(groups.of(column), `${key} rows`, ofRow);
}

async function gathered(group: ProcessGroup, key: string, value: Tensor): Promise<Tensor> {
  const all = await group.allGather(key, value);
  if (all.length === 1) return value;
  const joined = hold(() => ops.cat(all));
  for (const each of all) each.dispose();
  return joined;
}
