import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Leftovers of a program, by name. */
export interface Possessions {
  /** Processes with the mark, by number. */
  readonly processes: readonly string[];
  /** Descriptors of this process. */
  readonly descriptors: readonly string[];
  /** Files in shared memory with the number of a requested process. */
  readonly segments: readonly string[];
  /** At which this process, or one with the mark, listens. */
  readonly ports: readonly string[];
  /** Files and folders of the folder for temporary ones. */
  readonly files: readonly string[];
}

/** Where to look. */
export interface Place {
  /** A variable of the environment, `NAME=value`, that the wanted processes were started with. */
  readonly mark: string;
  /** For temporary files. */
  readonly folder: string;
  /** The processes whose shared memory it is about. */
  readonly pids: ReadonlySet<number>;
}

/** Counts what is there now. */
export function possessions({ mark, folder, pids }: Place): Possessions {
  const self = String(process.pid);
  const processes = list("/proc").filter((pid) => /^\d+$/.test(pid) && pid !== self && isMarked(pid, mark));
  return {
    processes,
    // Numbers of sockets and pipes are never the same twice.
    descriptors: descriptorsOf(self).map((link) => link.replace(/:\[\d+\]$/, "")),
    segments: list("/dev/shm").filter((name) => name.split("-").some((part) => pids.has(Number(part)))),
    ports: portsOf([self, ...processes]),
    // Node's own, of what it has compiled, is meant to stay.
    files: list(folder).filter((file) => file !== "node-compile-cache"),
  };
}

/** Where processes listen, as the kernel has it: `tcp 0100007F:1F90` is 127.0.0.1, port 8080. */
export function portsOf(pids: readonly string[]): string[] {
  const sockets = new Set(pids.flatMap(descriptorsOf));
  return ["tcp", "tcp6"]
    .flatMap(listening)
    .flatMap(({ port, inode }) => (sockets.has(`socket:[${inode}]`) ? [port] : []));
}

/** The leftovers that are new; for those without names, how many more there are. */
export function leftovers(before: Possessions, now: Possessions): string[] {
  const added = (kind: keyof Possessions): string[] => {
    const known = [...before[kind]];
    return now[kind].filter((each) => {
      const index = known.indexOf(each);
      if (index >= 0) known.splice(index, 1);
      return index < 0;
    });
  };
  return (Object.keys(before) as (keyof Possessions)[]).flatMap((kind) =>
    added(kind).map((each) => `${kind}: ${each}`),
  );
}

function isMarked(pid: string, mark: string): boolean {
  try {
    // One that has ended and was not waited for yet has no environment any more.
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(mark);
  } catch {
    return false;
  }
}

function listening(protocol: string): { port: string; inode: string }[] {
  const listen = "0A";
  const lines = readFileSync(`/proc/net/${protocol}`, "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    return state === listen ? [{ port: `${protocol} ${local}`, inode }] : [];
  });
}

function descriptorsOf(pid: string): string[] {
  const folder = `/proc/${pid}/fd`;
  return list(folder).flatMap((fd) => {
    try {
      return [readlinkSync(`${folder}/${fd}`)];
    } catch {
      return []; // that of the listing itself
    }
  });
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
