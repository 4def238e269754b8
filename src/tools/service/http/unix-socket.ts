import { chmod, lstat, mkdtemp, rename, rm } from "node:fs/promises";
import type { Server } from "node:http";
import { connect } from "node:net";
import { dirname, join } from "node:path";

/** Size of `sun_path` in unix(7), without the terminating zero. */
const MAX_PATH_BYTES = 107;
/** Prefix of the temporary folder in which the socket is created. */
const HIDDEN = ".s";
/** Number of letters that mkdtemp adds to the prefix. */
const NUM_RANDOM = 6;

/**
 * Listens on a Unix socket that only this user can open. Replaces the socket of a server that was killed.
 * @param path - of the socket; the caller removes it after closing the server
 * @param refused - makes the error for what is there instead of a free place
 * @throws its error if another file is there, a server answers, or the folder is not writable
 */
export async function listenOnSocket(
  server: Server,
  path: string,
  refused: (got: string) => Error,
): Promise<void> {
  const hiddenPath = join(dirname(path), HIDDEN.padEnd(HIDDEN.length + NUM_RANDOM, "-"), "s");
  const longest = Math.max(Buffer.byteLength(path), Buffer.byteLength(hiddenPath));
  if (longest > MAX_PATH_BYTES)
    throw refused(`a path of ${longest} bytes, where the system allows ${MAX_PATH_BYTES}`);
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined && !found.isSocket()) throw refused("a file that is not a socket");
  if (found !== undefined && (await answers(path))) throw refused("the socket of a running server");
  let hidden: string | undefined;
  try {
    // The socket is created in a private folder and moved once its mode lets only this user connect.
    hidden = await mkdtemp(join(dirname(path), HIDDEN));
    const socket = join(hidden, "s");
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(socket, resolve);
    });
    await chmod(socket, 0o600);
    await rename(socket, path);
  } catch (cause) {
    server.close();
    throw refused((cause as Error).message);
  } finally {
    if (hidden !== undefined) await rm(hidden, { recursive: true, force: true });
  }
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => end(true)).once("error", () => end(false));
  });
}
