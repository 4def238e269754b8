import { hostname } from "node:os";
import type { Store } from "../../compute/collectives/index.ts";
import type { TroupeError } from "../../errors/index.ts";
import { type Failure, fromFailure, toFailure } from "../../runtime/index.ts";
import type { Launch } from "./launch.ts";

/** A host of the launch that could not join the run, and why. */
export interface RefusedHost {
  readonly place: number;
  readonly name: string;
  readonly error: TroupeError;
}

const countKey = ({ run }: Launch) => `troupe/${run}/refused`;
const noteKey = (launch: Launch, number: number) => `${countKey(launch)}/${number}`;

/**
 * Leaves a note for the head in the launcher's store that this host ends: it was refused, refuses the head, or cannot
 * use its own files. The head itself may have seen only a closed connection.
 */
export function noteRefused(launch: Launch, store: Store, error: TroupeError): void {
  const { code, message } = toFailure(error);
  const number = store.add(countKey(launch), 1);
  store.set(noteKey(launch, number), JSON.stringify([launch.rank, hostname(), code, message]));
}

/** Reads the notes of refused hosts, on the head. */
export class RefusedHosts {
  readonly #launch: Launch;
  readonly #store: Store;
  #numRead = 0;

  constructor(launch: Launch, store: Store) {
    this.#launch = launch;
    this.#store = store;
  }

  /** Returns hosts that have left a note since the last call. */
  readNew(): readonly RefusedHost[] {
    const count = this.#store.add(countKey(this.#launch), 0);
    const refused: RefusedHost[] = [];
    while (this.#numRead < count) {
      const note = this.#store.read(noteKey(this.#launch, this.#numRead + 1));
      // The note is counted, but not written yet.
      if (note === undefined) break;
      this.#numRead += 1;
      const host = unpack(note);
      if (host !== undefined && host.place < this.#launch.size) refused.push(host);
    }
    return refused;
  }
}

function unpack(note: string): RefusedHost | undefined {
  const [place, name, code, message] = JSON.parse(note) as unknown[];
  if (typeof place !== "number" || typeof name !== "string" || typeof message !== "string") return undefined;
  const failure: Failure = { name: "TroupeError", code: String(code), message, fields: {} };
  return { place, name, error: fromFailure(failure) };
}
