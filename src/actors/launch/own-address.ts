import { once } from "node:events";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { TroupeError } from "../../errors/index.ts";
import { isLoopback } from "../../runtime/access/index.ts";
import type { MasterAddress } from "./launch.ts";

const AGAIN_MS = 100;
const ATTEMPT_MS = 5_000;

/**
 * Finds the address at which other hosts reach this one: that of Gloo's interface (GLOO_SOCKET_IFNAME), else of the interface
 * that leads to the store. Waits until the store listens.
 * @throws {TroupeError} `HOST_MISSING` where nothing listens within the deadline; `LAUNCH_VARIABLES` for an unknown interface
 */
export async function ownAddress(master: MasterAddress, deadlineMs: number): Promise<string> {
  const used = await addressTowards(master, deadlineMs);
  const { GLOO_SOCKET_IFNAME: name } = process.env;
  if (name !== undefined && name !== "") return addressOf(name);
  if (!isLoopback(used) || isLoopback(master.host)) return used;
  // Many hosts resolve their own name to loopback, which other hosts cannot reach.
  return outerAddress() ?? used;
}

async function addressTowards({ host, port }: MasterAddress, deadlineMs: number): Promise<string> {
  const begin = performance.now();
  for (;;) {
    const socket = connect({ host, port, timeout: ATTEMPT_MS });
    socket.on("timeout", () => socket.destroy(new Error("no answer")));
    try {
      await once(socket, "connect");
      return (socket.localAddress ?? "127.0.0.1").replace(/^::ffff:/, "");
    } catch (error) {
      const { message } = error as Error;
      if (performance.now() - begin > deadlineMs) throw noAnswer(`${host}:${port}`, deadlineMs, message);
      await pause(AGAIN_MS);
    } finally {
      socket.destroy();
    }
  }
}

function addressOf(name: string): string {
  const known = networkInterfaces();
  const [address] = (known[name] ?? []).filter(({ family }) => family === "IPv4");
  if (address !== undefined) return address.address;
  throw new TroupeError("LAUNCH_VARIABLES", {
    where: "launch",
    expected: `GLOO_SOCKET_IFNAME to be one of ${Object.keys(known).join(", ")}`,
    got: name,
    hint: "the interface by which the hosts of the run reach each other",
  });
}

function outerAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}

function noAnswer(place: string, deadlineMs: number, why: string): TroupeError {
  return new TroupeError("HOST_MISSING", {
    where: "launch",
    expected: `host 0 at ${place} within ${deadlineMs / 1000} s`,
    got: `no answer: ${why}`,
    hint: "see whether it runs, and whether MASTER_ADDR leads there from here",
  });
}
