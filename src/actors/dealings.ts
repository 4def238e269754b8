import { Dealing, type DealtData } from "./dealing.ts";
import { generationEnded } from "./generation-ended.ts";

/** Deals to one generation of ranks after the other. */
export class Dealings {
  readonly #open: () => Promise<DealtData>;
  #generation = -1;
  #latest: Promise<Dealing> | undefined;

  /** @param open - opens the data, or returns it open */
  constructor(open: () => Promise<DealtData>) {
    this.#open = open;
  }

  /** Returns the dealing to a generation; the first call for a later one ends that to the one before. An earlier one has ended. */
  of(generation: number): Promise<Dealing> {
    if (generation === this.#generation && this.#latest !== undefined) return this.#latest;
    const dealing = this.#open().then((data) => new Dealing(data));
    if (generation < this.#generation) return ended(dealing, generation);
    if (this.#latest !== undefined) ended(this.#latest, this.#generation).catch(() => {}); // thrown for those that asked
    this.#generation = generation;
    this.#latest = dealing;
    return dealing;
  }
}

async function ended(dealing: Promise<Dealing>, generation: number): Promise<Dealing> {
  const past = await dealing;
  past.end(generationEnded("data", generation));
  return past;
}
