import { chmod, lstat, mkdtemp, rename, rm } from "node:fs/promises";
import type { Server } from "node:http";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { TroupeError } from "../../../errors/index.ts";

/** `sun_path` of unix(7), without the zero at its end. */
const MAX_PATH_BYTES = 107;
/** What the name of the folder begins with in which a socket is made. */
const HIDDEN = ".s";

/**
 * Listens on a Unix socket that only this user can open. One that a server which was killed left behind is replaced.
 * @param path - the socket's; removing it is the caller's, once the server is closed
 * @throws {TroupeError} `CHECKPOINT_SERVE` where something else lies there, a server answers, or the place is forbidden
 */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  const hiddenPath = join(dirname(path), `${HIDDEN}XXXXXX`, "s");
  const longest = Math.max(Buffer.byteLength(path), Buffer.byteLength(hiddenPath));
  if (longest > MAX_PATH_BYTES)
    throw taken(path, `${longest} bytes of path, where the system connects to ${MAX_PATH_BYTES} at most`);
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined && !found.isSocket()) throw taken(path, "a file that is no socket");
  if (found !== undefined && (await answers(path))) throw taken(path, "a server that answers");
  let hidden: string | undefined;
  try {
    // It comes into the world where nobody else can go, and moves once nobody else may connect.
    hidden = await mkdtemp(join(dirname(path), HIDDEN));
    const socket = join(hidden, "s");
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(socket, resolve);
    });
    await chmod(socket, 0o600);
    await rename(socket, path);
  } catch (cause) {
    server.close();
    throw taken(path, (cause as Error).message);
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

function taken(path: string, got: string): TroupeError {
  return new TroupeError(
    "CHECKPOINT_SERVE",
    {
      where: "checkpoint serve",
      expected: `a free place for a socket at ${path}`,
      got,
      hint: "choose another path",
    },
    { fields: { path } },
  );
}
