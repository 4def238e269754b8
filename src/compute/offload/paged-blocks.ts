import { itemBytes, occupy, ScratchFile, type Tensor, vacate } from "../tensor/index.ts";

/**
 * What a user does with a block: reads it, changes what is there, or writes all of it, so that what was there need not be
 * read.
 */
export type Access = "read" | "change" | "overwrite";

/** A block whose memory is paged. */
export interface PagedBlock {
  /** Of `emptyPaged`, all of it; ownership passes. Given up at once: it begins as zeros. */
  readonly memory: Tensor;
  /** Users that change their parts of it one by one; it is written into the file when all have. */
  readonly numChangers: number;
}

/** What {@link PagedBlocks} are told. */
export interface PagingPlan {
  /** On the disk that is to hold the file. */
  readonly directory: string;
  /**
   * How much may be changed at once, in bytes, the way back into the file included; but at least a block. What of it is
   * free holds the blocks that were left last.
   */
  readonly windowBytes: number;
  /** Waited for before every transfer. Default: nothing. */
  readonly delay?: () => Promise<void>;
  /** Called at the end of every transfer, with when it was asked for. */
  readonly onTransfer?: (block: number, direction: "bring" | "store", beginMs: number) => void;
  /** Milliseconds, for `onTransfer`. */
  readonly now?: () => number;
}

interface Page extends PagedBlock {
  readonly block: number;
  readonly sizeBytes: number;
  readonly offsetBytes: number;
  numUsers: number;
  /** Of the changers, those who are done since it was last in the file. */
  numChanged: number;
  /** Fulfilled once the memory is there and filled; none while it is given up. */
  present: Promise<void> | undefined;
  /** Whether it may be changed: it has its share of the window. */
  admitted: boolean;
  /** Whether it is on its way into the file. */
  storing: boolean;
  /** When it was left last: how many times any block had been. */
  left: number;
}

interface Waiting {
  readonly page: Page;
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/**
 * Blocks of memory that are there while somebody uses them and in a scratch file otherwise: the one who made the memory
 * counts the users, whichever thread or process they are in. Who reads gets the memory as soon as it is filled; of those who
 * change it, only as many blocks at once as the window holds, so that a slow disk holds updates up instead of filling memory.
 * While the window has room, blocks stay that nobody uses, the last ones to be left: a pass turns round where it ends, and an
 * update follows the backward of its block, so those are the ones that are needed next.
 *
 * Blocks are admitted one by one and then for all their changers, who ask for every block without waiting for another: in
 * whatever order they ask, nobody waits for ever.
 */
export class PagedBlocks {
  readonly #plan: PagingPlan;
  readonly #file: ScratchFile;
  readonly #pages = new Map<number, Page>();
  /** Those that wait to be admitted, the first to be admitted first. */
  #waiting: Waiting[] = [];
  #changingBytes = 0;
  /** How many times a user has left a block. */
  #numLeft = 0;
  /** Those that are in memory though nobody uses them. */
  readonly #idle = new Set<Page>();
  #idleBytes = 0;
  #failure: Error | undefined;

  /** @throws {TroupeError} `SCRATCH_FILE` where the disk has no room for all blocks */
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
   * Waits until a block's memory is there, for {@link unpin} to end.
   * @throws {TroupeError} `SCRATCH_FILE`, for what it needs or for what was written behind; the reason of {@link abort}
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

  /** Ends one use. What was changed goes into the file once all have changed it; then its memory may go. */
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

  /** Whoever waits to be admitted, and whoever pins a block from now on, gets `reason`. */
  abort(reason: Error): void {
    this.#failure ??= reason;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }

  /** Gives memory and file up; what is under way still ends. */
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

  /** It may be read meanwhile, and is changed again only when it is in the file. */
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

  /** A block that is to be changed, or that not all have changed, has its place: it is in the file only when all of it is. */
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

  /** The first to be left goes first: what was left early may have come into the file late. */
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
