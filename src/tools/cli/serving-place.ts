import type { Command } from "commander";
import { number, usage } from "./flags.ts";

/** Where a server for other programs of this user listens. */
export interface PlaceFlags {
  readonly socket?: string;
  readonly port?: number;
  readonly tokenFile?: string;
}

/** Adds the flags of the place. @param token - of the default token file, for the help */
export function addPlaceFlags(command: Command, token: string): Command {
  return command
    .option("--socket <path>", "listen on a Unix socket that only this user can open")
    .option("--port <n>", "listen on a port of 127.0.0.1, 0 for any free one; callers need the token", number)
    .option("--token-file <path>", `file of the token, created if missing (default: ${token})`);
}

/** @throws {TroupeError} `USAGE` unless there is one place, which can be one, and a token for a port alone */
export function checkPlace({ socket, port, tokenFile }: PlaceFlags): void {
  if ((socket === undefined) === (port === undefined))
    throw usage("--socket PATH or --port N", socket === undefined ? "neither" : "both", "choose one");
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535))
    throw usage("--port to be a whole number from 0 to 65535", String(port), "0 chooses any free one");
  if (socket !== undefined && tokenFile !== undefined)
    throw usage("--token-file with --port", "--socket", "a socket asks for no token");
}
