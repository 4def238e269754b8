import { itemBytes, occupy, ScratchFile, type Tensor, vacate } from "../tensor/index.ts";

/** How a block is used: read, changed, or overwritten completely, so that its old contents need not be read from the file. */
export type Access = "read" | "change" | "overwrite";

/** A block whose memory is paged. */
export interface PagedBlock {
  /** A complete tensor of `emptyPaged`; ownership passes. It is vacated at once, so that it begins as zeros. */
  readonly memory: Tensor;
  /** Number of users that change their parts of it; it is written to the file when all have. */
  readonly numChangers: number;
}

/** Options of {@link PagedBlocks}. */
export interface PagingPlan {
  /** A directory on the disk to use. */
  readonly directory: string;
  /**
   * Limit of the blocks being changed at once, in bytes, until they are written back; at least one block. Free room in it
   * holds the blocks that were unpinned last.
   */
  readonly windowBytes: number;
  /** Awaited before every transfer. Default: nothing. */
  readonly delay?: () => Promise<void>;
  /** Called at the end of every transfer, with the time of its beginning. */
  readonly onTransfer?: (block: number, direction: "bring" | "store", beginMs: number) => void;
  /** Clock for `onTransfer`, in ms. */
  readonly now?: () => number;
}

interface Page extends PagedBlock {
  readonly block: number;
  readonly sizeBytes: number;
  readonly offsetBytes: number;
  numUsers: number;
  /** Number of changers that are done since it was last written. */
  numChanged: number;
  /** Resolves once the memory is there and filled; undefined while it is vacated. */
  present: Promise<void> | undefined;
  /** Whether it may be changed, because it has its share of the window. */
  admitted: boolean;
  /** Whether it is being written to the file. */
  storing: boolean;
  /** When it was last unpinned, as a count of all unpins. */
  left: number;
}

interface Waiting {
  readonly page: Page;
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/**
 * Blocks that are in memory while they are pinned and in a scratch file otherwise. The owner of the memory counts the users,
 * which may be in any thread or process. A reader gets the memory as soon as it is filled. Blocks are changed only as far as
 * the window has room, so that a slow disk delays updates instead of filling memory. While the window has room, the blocks
 * that were unpinned last stay in memory: backward begins where forward ends, and an update follows the backward of its
 * block, so those are needed next.
 *
 * A block is admitted to the window for all its changers at once. Changers request every block without waiting for another,
 * so that no order of requests deadlocks.
 */
export class PagedBlocks {
  readonly #plan: PagingPlan;
  readonly #file: ScratchFile;
  readonly #pages = new Map<number, Page>();
  /** Requests waiting for the window, in order. */
  #waiting: Waiting[] = [];
  #changingBytes = 0;
  /** Count of all unpins. */
  #numLeft = 0;
  /** Blocks that are in memory although they are not pinned. */
  readonly #idle = new Set<Page>();
  #idleBytes = 0;
  #failure: Error | undefined;

  /** @throws {TroupeError} `SCRATCH_FILE` if the disk has no room for all blocks */
  constructor(blocks: ReadonlyMap<number, PagedBlock>, plan: PagingPlan) {
    this.#plan = plan;
    let sizeBytes = 0;
    for (const [block, given] of blocks) {
      const place = { block, sizeBytes: bytesOf(given.memory), offsetBytes: sizeBytes };
      const idle = {
        numUsers: 0,
        numChanged: 0,
        present: undefined,
        admitted: false,
        storing: false,
        left: 0,
      };
      this.#pages.set(block, { ...given, ...place, ...idle });
      sizeBytes += place.sizeBytes;
      vacate(given.memory);
    }
    this.#file = new ScratchFile(plan.directory, sizeBytes);
  }

  /**
   * Pins a block and waits until its memory is there. {@link unpin} ends the use.
   * @throws {TroupeError} `SCRATCH_FILE` if this read or an earlier write failed; the reason of {@link abort}
   */
  async pin(block: number, access: Access): Promise<void> {
    this.#throwFailure();
    const page = this.#at(block);
    if (access !== "read") await this.#admit(page);
    page.numUsers += 1;
    this.#wake(page);
    page.present ??= this.#bring(page, access === "overwrite");
    try {
      await page.present;
    } catch (error) {
      page.numUsers -= 1;
      this.abort(error as Error);
      throw error;
    }
  }

  /** Ends one use. Once all changers have changed the block, it is written to the file; then its memory may be vacated. */
  unpin(block: number, access: Access): void {
    const page = this.#at(block);
    page.numUsers -= 1;
    page.left = ++this.#numLeft;
    if (access !== "read") page.numChanged += 1;
    if (page.numChanged === page.numChangers) {
      page.numChanged = 0;
      void this.#store(page);
    } else {
      this.#rest(page);
    }
  }

  /** Rejects all waiting requests and all later pins with `reason`. */
  abort(reason: Error): void {
    this.#failure ??= reason;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }

  /** Releases memory and file; transfers under way still complete. */
  dispose(): void {
    this.#file[Symbol.dispose]();
    for (const { memory } of this.#pages.values()) memory.dispose();
  }

  #admit(page: Page): Promise<void> | undefined {
    if (page.admitted && !page.storing) return undefined;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ page, resolve, reject });
      this.#admitNext();
    });
  }

  #admitNext(): void {
    for (let page = this.#waiting[0]?.page; page !== undefined; page = this.#waiting[0]?.page) {
      if (page.storing || !this.#fits(page)) return;
      page.admitted = true;
      this.#changingBytes += page.sizeBytes;
      this.#wake(page);
      this.#makeRoom();
      const admitted = this.#waiting.filter((each) => each.page === page);
      this.#waiting = this.#waiting.filter((each) => each.page !== page);
      for (const { resolve } of admitted) resolve();
    }
  }

  #fits({ sizeBytes }: Page): boolean {
    return this.#changingBytes === 0 || this.#changingBytes + sizeBytes <= this.#plan.windowBytes;
  }

  async #bring(page: Page, fresh: boolean): Promise<void> {
    occupy(page.memory);
    if (fresh) return;
    await this.#transfer(page, "bring", () => this.#file.read(page.memory, page.offsetBytes));
  }

  /** Writes a block to the file. It may be read meanwhile, and is changed again only after the write. */
  async #store(page: Page): Promise<void> {
    page.storing = true;
    try {
      await this.#transfer(page, "store", () => this.#file.write(page.memory, page.offsetBytes));
    } catch (error) {
      this.abort(error as Error);
    }
    page.storing = false;
    page.admitted = false;
    this.#changingBytes -= page.sizeBytes;
    this.#rest(page);
    this.#admitNext();
  }

  async #transfer(page: Page, direction: "bring" | "store", move: () => Promise<void>): Promise<void> {
    const { delay, onTransfer, now = Date.now } = this.#plan;
    const beginMs = now();
    await delay?.();
    await move();
    onTransfer?.(page.block, direction, beginMs);
  }

  /**
   * Lets an unpinned block rest in memory or vacates it. A block that is admitted stays: it is written to the file only when
   * all have changed it.
   */
  #rest(page: Page): void {
    if (page.numUsers > 0 || page.admitted || page.memory.disposed) return;
    this.#idle.add(page);
    this.#idleBytes += page.sizeBytes;
    if (page.sizeBytes + this.#changingBytes > this.#plan.windowBytes) this.#giveUp(page);
    else this.#makeRoom();
  }

  #wake(page: Page): void {
    if (this.#idle.delete(page)) this.#idleBytes -= page.sizeBytes;
  }

  /** Vacates blocks until the window has room, the first unpinned first: a block unpinned early may have been written late. */
  #makeRoom(): void {
    for (const page of [...this.#idle].sort((one, other) => one.left - other.left)) {
      if (this.#idleBytes + this.#changingBytes <= this.#plan.windowBytes) return;
      this.#giveUp(page);
    }
  }

  #giveUp(page: Page): void {
    this.#wake(page);
    page.present = undefined;
    vacate(page.memory);
  }

  #at(block: number): Page {
    const page = this.#pages.get(block);
    if (page === undefined) throw new RangeError(`[offload] the memory of block ${block} is not paged`);
    return page;
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

const bytesOf = ({ numel, dtype }: Tensor) => numel * itemBytes(dtype);
