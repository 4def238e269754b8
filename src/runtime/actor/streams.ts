import { TroupeError } from "../../errors/index.ts";
import type { Address } from "../protocol/address.ts";
import { type OpenedStream, type StreamBatch, type StreamDemand, streamKind } from "../protocol/streams.ts";

/** An iterator that a handler has returned. */
type Source = AsyncIterator<unknown> | Iterator<unknown>;

interface Open {
  readonly source: Source;
  /** Uid of the actor that reads it; until it does, of the one that has asked, which may be a pool on behalf of the reader. */
  reader: number;
  /** The next item, once it is asked for, until it has been taken; stays if it is an error. */
  pending?: Promise<IteratorResult<unknown>> | undefined;
}

/** The streams that one actor answers questions with. An item is made when it is asked for. */
export class Streams {
  readonly #self: Address;
  readonly #open = new Map<number, Open>();
  #lastId = 0;

  constructor(self: Address) {
    this.#self = self;
  }

  /** Opens a stream. @param reader - uid of the actor that has asked */
  open(
    result: AsyncIterable<unknown> | Iterable<unknown>,
    reader: number,
    isConcurrent: boolean,
  ): OpenedStream {
    const source =
      Symbol.asyncIterator in result ? result[Symbol.asyncIterator]() : result[Symbol.iterator]();
    this.#lastId += 1;
    this.#open.set(this.#lastId, { source, reader });
    const next = isConcurrent ? streamKind.nextConcurrent : streamKind.next;
    return { stream: this.#lastId, producer: this.#self, next };
  }

  /** Makes items: waits for the first, and adds more as long as they are there at once. @param reader - uid of the actor that reads */
  async next({ stream: id, count }: StreamDemand, reader: number): Promise<StreamBatch> {
    const open = this.#open.get(id);
    if (open === undefined) throw ended();
    open.reader = reader;
    const items: unknown[] = [];
    while (items.length < count) {
      open.pending ??= take(open.source);
      if (items.length > 0 && !(await isThere(open.pending))) break;
      try {
        const { value, done } = await open.pending;
        open.pending = undefined;
        if (done === true) {
          this.#open.delete(id);
          return { items, isDone: true };
        }
        items.push(value);
      } catch (error) {
        // The items before it are read first.
        if (items.length > 0) break;
        this.#open.delete(id);
        throw error;
      }
    }
    return { items, isDone: false };
  }

  /** Ends a stream that is not read to its end. */
  end(id: number): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (open === undefined) return;
    open.pending?.catch(() => {}); // nobody reads it
    const closed = async () => void (await open.source.return?.());
    closed().catch((error: unknown) => process.emitWarning(error instanceof Error ? error : String(error)));
  }

  readerEnded(reader: number): void {
    for (const [id, open] of this.#open) if (open.reader === reader) this.end(id);
  }
}

/** Whether a handler's result is a stream: an async iterable, or the iterator of a generator. Arrays are answers. */
export function isStream(result: object): result is AsyncIterable<unknown> | Iterable<unknown> {
  return Symbol.asyncIterator in result || (Symbol.iterator in result && "next" in result);
}

const take = async (source: Source): Promise<IteratorResult<unknown>> => await source.next();

/** Whether a promise settles before the event loop has had a turn. */
function isThere(promise: Promise<unknown>): Promise<boolean> {
  const yes = () => true;
  const no = new Promise<boolean>((resolve) => setImmediate(resolve, false));
  return Promise.race([promise.then(yes, yes), no]);
}

function ended(): TroupeError {
  return new TroupeError("STREAM_ENDED", {
    where: "stream",
    expected: "a stream that is open",
    got: "one that has ended",
    hint: "ask for it again",
  });
}
