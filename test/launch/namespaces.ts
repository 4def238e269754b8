import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const delayedLink = fileURLToPath(new URL("./delayed-link.py", import.meta.url));
const NAMESPACES = "/run/netns";

/** Why no hosts can be made on this machine; undefined where they can. */
export function whyNoNamespaces(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  sweepNamespaces();
  const name = `${mark()}t`;
  const made = spawnSync("ip", ["netns", "add", name], { encoding: "utf8" });
  if (made.status !== 0) return made.error?.message ?? made.stderr.trim();
  const inside = ["netns", "exec", name, "unshare", "--mount", "--uts", "true"];
  const tried = spawnSync("ip", inside, { encoding: "utf8" });
  remove(name);
  return tried.status === 0 ? undefined : tried.stderr.trim();
}

/** Two hosts on this machine: each has a network, a name and a /dev/shm of its own, and a cable leads from one to the other. */
export class TwoHosts implements Disposable {
  readonly addresses: readonly string[];
  readonly #names: readonly string[];
  #cables: readonly string[];
  #relay: ChildProcess | undefined;

  constructor() {
    sweepNamespaces();
    this.#names = ["a", "b"].map((host) => `${mark()}${host}`);
    this.#cables = ["a", "b"].map((host) => `tr${process.pid}${host}`);
    const net = `10.${64 + (process.pid % 64)}.${(process.pid >> 6) % 256}`;
    this.addresses = [`${net}.1`, `${net}.2`];
    for (const name of this.#names) ip("netns", "add", name);
    const [near = "", far = ""] = this.#cables;
    this.#within(0, "link", "add", near, "type", "veth", "peer", "name", far, "netns", this.#name(1));
    for (const host of [0, 1]) {
      this.#within(host, "addr", "add", `${this.addresses[host]}/24`, "dev", this.#cable(host));
      this.#within(host, "link", "set", this.#cable(host), "up");
      this.#within(host, "link", "set", "lo", "up");
    }
  }

  /**
   * The command that runs a program on a host, as a prefix.
   * @param own - a folder that lies elsewhere on host 1: in `<own>-b`
   */
  command(host: 0 | 1, program: string, own?: string): readonly string[] {
    const hide = own === undefined || host === 0 ? "" : `mount --bind '${own}-b' '${own}' && `;
    const script = `${hide}mount -t tmpfs tmpfs /dev/shm && hostname host-${"ab"[host]} && exec "$0" "$@"`;
    return [
      "ip",
      "netns",
      "exec",
      this.#name(host),
      "unshare",
      "--mount",
      "--uts",
      "sh",
      "-c",
      script,
      program,
    ];
  }

  /** Drops everything between the two hosts, without notice to either. */
  cut(): void {
    this.#within(1, "link", "set", this.#cable(1), "down");
  }

  /**
   * Lays a cable in place of the first on which everything is under way for so long, at such a rate: a program takes packets from
   * one end and gives them to the other, as netem would where the kernel has it. To be called before anybody talks.
   */
  async delay(ms: number, megabits: number): Promise<void> {
    const laid = this.#cables;
    this.#cables = ["a", "b"].map((host) => `td${process.pid}${host}`);
    for (const host of [0, 1]) {
      const [own = "", other = ""] = host === 0 ? this.addresses : this.addresses.toReversed();
      this.#within(host, "addr", "flush", "dev", laid[host] as string);
      this.#within(host, "tuntap", "add", "dev", this.#cable(host), "mode", "tun");
      this.#within(host, "addr", "add", `${own}/32`, "peer", other, "dev", this.#cable(host));
      this.#within(host, "link", "set", this.#cable(host), "mtu", "9000", "up");
    }
    const ends = [0, 1].flatMap((host) => [this.#name(host), this.#cable(host)]);
    this.#relay = spawn("python3", [delayedLink, ...ends, `${ms}`, `${megabits}`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(this.#relay.stdout as NodeJS.EventEmitter, "data");
  }

  /** Limits what each of them sends: what does not fit into the queue is dropped. tc: rate, burst and latency as its tbf takes them. */
  limit(rate: string, burst: string, latency: string): void {
    const qdisc = ["qdisc", "add", "dev"];
    for (const host of [0, 1])
      this.#tc(
        host,
        ...qdisc,
        this.#cable(host),
        "root",
        "tbf",
        "rate",
        rate,
        "burst",
        burst,
        "latency",
        latency,
      );
  }

  /** Bytes that a host has sent, and packets that {@link limit} has dropped of them. */
  sent(host: 0 | 1): { readonly bytes: number; readonly dropped: number } {
    const json = execFileSync("ip", [
      "-n",
      this.#name(host),
      "-s",
      "-j",
      "link",
      "show",
      "dev",
      this.#cable(host),
    ]);
    const [link] = JSON.parse(json.toString()) as [{ stats64: { tx: { bytes: number } } }];
    const [, dropped = "0"] =
      /dropped (\d+)/.exec(this.#tc(host, "-s", "qdisc", "show", "dev", this.#cable(host))) ?? [];
    return { bytes: link.stats64.tx.bytes, dropped: Number(dropped) };
  }

  /** The other way about. */
  mend(): void {
    this.#within(1, "link", "set", this.#cable(1), "up");
  }

  [Symbol.dispose](): void {
    this.#relay?.kill("SIGKILL");
    for (const name of this.#names) remove(name);
  }

  #within(host: number, ...args: readonly string[]): void {
    ip("-n", this.#name(host), ...args);
  }

  #tc(host: number, ...args: readonly string[]): string {
    return execFileSync("ip", ["netns", "exec", this.#name(host), "tc", ...args]).toString();
  }

  #name(host: number): string {
    return this.#names[host] as string;
  }

  #cable(host: number): string {
    return this.#cables[host] as string;
  }
}

/** The prefix of the names of a process's namespaces: no other process, now or later, has its number and its start. */
function mark(pid: number | string = "self"): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [number = ""] = stat.split(" ");
  // The 22nd of its fields, of which the second, the name, may have spaces.
  const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return `troupe-${number}-${start}`;
}

/** Removes namespaces of processes that have ended without doing so, and what still runs there. */
function sweepNamespaces(): void {
  for (const name of namespaces()) {
    const [whole, pid = ""] = /^troupe-(\d+)-\d+(?=[abt]$)/.exec(name) ?? [];
    if (whole !== undefined && markOf(pid) !== whole) remove(name);
  }
}

function namespaces(): readonly string[] {
  try {
    return readdirSync(NAMESPACES);
  } catch {
    return []; // none was ever made here
  }
}

function markOf(pid: string): string | undefined {
  try {
    return mark(pid);
  } catch {
    return undefined; // it has ended
  }
}

/** Others may sweep at the same time: the second finds nothing. */
function remove(name: string): void {
  const inside = spawnSync("ip", ["netns", "pids", name], { encoding: "utf8" });
  for (const pid of inside.stdout.split(/\s+/).filter(Boolean)) spawnSync("kill", ["-9", pid]);
  spawnSync("ip", ["netns", "del", name]);
}

function ip(...args: readonly string[]): void {
  execFileSync("ip", [...args]);
}
