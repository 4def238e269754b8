import { readdirSync, readFileSync } from "node:fs";
import { TroupeError } from "../../errors/index.ts";
import { native } from "./native.ts";

/**
 * How a rank's threads are bound to processors: "none" not at all, "cores" to a share of the host's processors, "numa" to
 * those of one NUMA node.
 */
export type Binding = "none" | "cores" | "numa";

const NODES = "/sys/devices/system/node";

/**
 * Binds this thread, and threads that it starts from now on, to their share of the processors that this process may use.
 * Memory that they touch first is then near these processors, by the kernel's rule.
 * @param index - index among the `count` ranks that share the host
 * @throws {TroupeError} `TENSOR_ARGUMENT` on systems other than Linux
 */
export function bindThread(binding: Binding, index: number, count: number): void {
  if (binding === "none") return;
  if (process.platform !== "linux") {
    const message = {
      where: "bind",
      expected: "none on this system",
      got: binding,
      hint: "Linux alone binds",
    };
    throw new TroupeError("TENSOR_ARGUMENT", { ...message, fields: { binding } });
  }
  native().bindThread([...shareOf(binding, index, count, nodesOf(allowedProcessors()))]);
}

/**
 * Returns the processors of one rank.
 * @param nodes - the processors to be shared, by NUMA node
 * @returns all processors of a node for "numa", an even share of neighbouring ones for "cores"; at least one
 */
export function shareOf(
  binding: "cores" | "numa",
  index: number,
  count: number,
  nodes: readonly (readonly number[])[],
): readonly number[] {
  const all = nodes.flat();
  if (binding === "numa") return nodes[Math.floor((index * nodes.length) / count)] ?? all;
  const begin = Math.floor((index * all.length) / count);
  const end = Math.floor(((index + 1) * all.length) / count);
  return all.slice(begin, Math.max(end, begin + 1));
}

/** Parses a list of numbers as Linux writes it, such as "0-3,8". */
export function parseProcessors(list: string): readonly number[] {
  return list
    .trim()
    .split(",")
    .filter((range) => range !== "")
    .flatMap((range) => {
      const [first = 0, last = first] = range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
    });
}

/** Returns the processors that the process was started with, whatever this thread is bound to. */
function allowedProcessors(): readonly number[] {
  const [, list = ""] = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return parseProcessors(list);
}

/** Groups `processors` by NUMA node, without empty nodes; one group if the system reports no nodes. */
function nodesOf(processors: readonly number[]): readonly (readonly number[])[] {
  const nodes = nodeLists().map((list) => parseProcessors(list).filter((each) => processors.includes(each)));
  const known = nodes.filter((each) => each.length > 0);
  return known.flat().length === processors.length ? known : [processors];
}

function nodeLists(): readonly string[] {
  try {
    const numbers = readdirSync(NODES).flatMap((name) => /^node(\d+)$/.exec(name)?.[1] ?? []);
    const inOrder = numbers.map(Number).sort((a, b) => a - b);
    return inOrder.map((number) => readFileSync(`${NODES}/node${number}/cpulist`, "utf8"));
  } catch {
    return []; // the kernel knows no nodes
  }
}
