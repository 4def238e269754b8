import { move } from "piscina";
import { type Relayed, relayed } from "./beside.ts";
import { type HttpPlace, readHttp } from "./http-range.ts";

/** A part of a file that another thread receives. Plain data. */
export interface HttpRequest {
  readonly at: HttpPlace;
  readonly begin: number;
  readonly end: number;
}

/** Reads a part of a file, in a thread of the pool of `HttpFile`. */
export default function read({ at, begin, end }: HttpRequest): Promise<Uint8Array | Relayed> {
  return relayed(async () => move(await readHttp(at, begin, end)) as unknown as Uint8Array);
}
