import { execFileSync, spawnSync } from "node:child_process";

/** Why no hosts can be made on this machine; undefined where they can. */
export function whyNoNamespaces(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  const name = `troupe-try-${process.pid}`;
  const made = spawnSync("ip", ["netns", "add", name], { encoding: "utf8" });
  if (made.status !== 0) return made.error?.message ?? made.stderr.trim();
  const inside = ["netns", "exec", name, "unshare", "--mount", "--uts", "true"];
  const tried = spawnSync("ip", inside, { encoding: "utf8" });
  ip("netns", "del", name);
  return tried.status === 0 ? undefined : tried.stderr.trim();
}

/** Two hosts on this machine: each has a network, a name and a /dev/shm of its own, and a cable leads from one to the other. */
export class TwoHosts implements Disposable {
  readonly addresses: readonly string[];
  readonly #names: readonly string[];
  readonly #cables: readonly string[];

  constructor() {
    const mark = `${process.pid}`;
    this.#names = ["a", "b"].map((host) => `troupe-${mark}${host}`);
    this.#cables = ["a", "b"].map((host) => `tr${mark}${host}`);
    const net = `10.${64 + (process.pid % 64)}.${(process.pid >> 6) % 256}`;
    this.addresses = [`${net}.1`, `${net}.2`];
    for (const name of this.#names) ip("netns", "add", name);
    const [near = "", far = ""] = this.#cables;
    ip("link", "add", near, "type", "veth", "peer", "name", far);
    for (const host of [0, 1]) {
      ip("link", "set", this.#cable(host), "netns", this.#name(host));
      this.#within(host, "addr", "add", `${this.addresses[host]}/24`, "dev", this.#cable(host));
      this.#within(host, "link", "set", this.#cable(host), "up");
      this.#within(host, "link", "set", "lo", "up");
    }
  }

  /**
   * What runs a program on a host: put before it.
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

  /** Nothing gets from one to the other any more, and nobody is told. */
  cut(): void {
    this.#within(1, "link", "set", this.#cable(1), "down");
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
    for (const name of this.#names) ip("netns", "del", name);
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

function ip(...args: readonly string[]): void {
  execFileSync("ip", [...args]);
}
