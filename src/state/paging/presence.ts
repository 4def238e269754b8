import type { Access } from "../../offload/index.ts";
import type { FlatBlock } from "../../parallel/index.ts";
import type { PresenceProtocol } from "../../protocols/index.ts";
import type { ActorRef } from "../../runtime/index.ts";

/** Sees to it that parameters are in memory while something is done with them. */
export interface Presence {
  /** Whether a block's parameters are ever elsewhere. */
  comesAndGoes(layout: FlatBlock): boolean;
  /** Fulfilled once the block is in memory, until {@link leave}. */
  enter(layout: FlatBlock, access: Access): Promise<void>;
  leave(layout: FlatBlock, access: Access): void;
}

/** Runs `work` while a block is in memory: at once where it always is. */
export async function whilePresent<T>(
  presence: Presence,
  layout: FlatBlock,
  access: Access,
  work: () => T | Promise<T>,
): Promise<T> {
  if (!presence.comesAndGoes(layout)) return work();
  await presence.enter(layout, access);
  try {
    return await work();
  } finally {
    presence.leave(layout, access);
  }
}

/** Of a run that offloads no parameters. */
export const ALWAYS_PRESENT: Presence = {
  comesAndGoes: () => false,
  enter: async () => {},
  leave: () => {},
};

/** The presence of blocks that another actor sees to. */
export class AskedPresence implements Presence {
  readonly #asked: ActorRef<PresenceProtocol>;
  readonly #blocks: ReadonlySet<string>;
  readonly #deadline: { readonly deadlineMs: number };

  /** @param blocks - names of those that come and go */
  constructor(asked: ActorRef<PresenceProtocol>, blocks: readonly string[], deadlineMs: number) {
    this.#asked = asked;
    this.#blocks = new Set(blocks);
    this.#deadline = { deadlineMs };
  }

  comesAndGoes({ name }: FlatBlock): boolean {
    return this.#blocks.has(name);
  }

  async enter({ name }: FlatBlock, access: Access): Promise<void> {
    await this.#asked.ask("enter", { block: name, access }, this.#deadline);
  }

  leave({ name }: FlatBlock, access: Access): void {
    this.#asked.tell("leave", { block: name, access });
  }
}
