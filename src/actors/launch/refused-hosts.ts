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

/** Leaves a note for the head in the launcher's store why this host ends: the head may have seen only a closed connection. */
export function noteRefused(launch: Launch, store: Store, error: TroupeError): void {
  const { code, message } = toFailure(error);
  const number = store.add(countKey(launch), 1);
  store.set(noteKey(launch, number), JSON.stringify([launch.rank, hostname(), code, message]));
}

/** Reads the notes of refused hosts, on the head. @returns a function that reads those left since its last call */
export function refusedHosts(launch: Launch, store: Store): () => readonly RefusedHost[] {
  let numRead = 0;
  return () => {
    const count = store.add(countKey(launch), 0);
    const refused: RefusedHost[] = [];
    while (numRead < count) {
      const note = store.read(noteKey(launch, numRead + 1));
      // The note is counted, but not written yet.
      if (note === undefined) break;
      numRead += 1;
      const host = unpack(note);
      if (host !== undefined && host.place < launch.size) refused.push(host);
    }
    return refused;
  };
}

function unpack(note: string): RefusedHost | undefined {
  const [place, name, code, message] = JSON.parse(note) as unknown[];
  if (typeof place !== "number" || typeof name !== "string" || typeof message !== "string") return undefined;
  const failure: Failure = { name: "TroupeError", code: String(code), message, fields: {} };
  return { place, name, error: fromFailure(failure) };
}
