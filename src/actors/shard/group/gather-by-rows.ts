import type { ProcessGroup } from "../../../compute/collectives/index.ts";
import { hold, ops, type Tensor } from "../../../compute/tensor/index.ts";

/** Up to this many members exchange directly: a second hop would take longer than the messages that it saves. */
const MOST_AT_ONCE = 8;

/**
 * The length of the rows in which a group stands for {@link gatherByRows}: equal rows, as nearly square as its size allows; one
 * row if the group is small or its size is prime.
 */
export function rowLength(size: number): number {
  if (size <= MOST_AT_ONCE) return size;
  for (let length = Math.floor(Math.sqrt(size)); length > 1; length--) if (size % length === 0) return length;
  return size;
}

/** @returns the groups in which a member of `ranks` exchanges values by {@link gatherByRows}: its row and its column */
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
 * Gathers all members' values, in the order of the members, in two hops: within rows, then within columns. Each of n members
 * sends to some 2 √n others, where `allGather` sends to n - 1. Neighbours in a group are neighbours on a host, so the first hop
 * crosses none.
 * @param groups - where a member finds the group of some ranks of the world
 * @param ranks - the members, ranks of the world in order, `rank` among them
 * @param value - a vector, of one length on all members; ownership passes
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
