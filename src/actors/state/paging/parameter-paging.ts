import type { Access } from "../../../compute/offload/index.ts";
import type { FlatBlock } from "../../../compute/parallel/index.ts";
import type { ActorRef } from "../../../runtime/index.ts";
import type { PagingProtocol } from "../../protocols/index.ts";

/** Keeps parameters in memory while they are used. */
export interface ParameterPaging {
  /** Whether a block's parameters are ever paged out. */
  isPaged(layout: FlatBlock): boolean;
  /** Fulfilled once the block is in memory, until {@link unpin}. */
  pin(layout: FlatBlock, access: Access): Promise<void>;
  unpin(layout: FlatBlock, access: Access): void;
}

/** Runs `work` while a block is in memory: at once if it always is. */
export async function whilePinned<T>(
  paging: ParameterPaging,
  layout: FlatBlock,
  access: Access,
  work: () => T | Promise<T>,
): Promise<T> {
  if (!paging.isPaged(layout)) return work();
  await paging.pin(layout, access);
  try {
    return await work();
  } finally {
    paging.unpin(layout, access);
  }
}

/** For a run that offloads no parameters. */
export const NOTHING_PAGED: ParameterPaging = { isPaged: () => false, pin: async () => {}, unpin: () => {} };

/** The paging of blocks that another actor holds. @param paged - names of the paged ones */
export function remotePaging(
  holder: ActorRef<PagingProtocol>,
  paged: readonly string[],
  deadlineMs: number,
): ParameterPaging {
  const blocks = new Set(paged);
  return {
    isPaged: ({ name }) => blocks.has(name),
    async pin({ name }, access) {
      await holder.ask("pin", { block: name, access }, { deadlineMs });
    },
    unpin: ({ name }, access) => holder.tell("unpin", { block: name, access }),
  };
}
