import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Operation } from "./operation.ts";

/** A file or folder itself, whatever names lead to it. */
interface Node {
  readonly entries: Map<string, Node> | undefined;
  /** The content that is durable. */
  durable: Uint8Array;
  /** Written and not synchronised: the disk may have any of it. */
  pending: { readonly offset: number; readonly bytes: Uint8Array }[];
}

/** A change of names in one folder, which takes effect as one. */
interface Change {
  readonly apply: (entries: Map<string, Node>) => void;
}

/** A possible content of a disk after a power cut: every file by its path, folders with a "/" at the end. */
export type DiskState = ReadonlyMap<string, Uint8Array>;

/**
 * A disk that promises no more than POSIX does: bytes are there once their file was synchronised, names once their folder
 * was; until then any of it may be lost, bytes also in part. Names in one folder change in the order in which they were
 * changed, as journals have it.
 */
export class Disk {
  /** As programs see it. */
  readonly #root = folder();
  /** Changes of names that the disk may not have yet, by folder. */
  readonly #changes = new Map<Node, Change[]>();
  /** Names that are on the disk, by folder. */
  readonly #names = new Map<Node, Map<string, Node>>([[this.#root, new Map()]]);

  do(operation: Operation): void {
    if (operation.kind === "acknowledge") return;
    if (operation.kind === "rename") this.#rename(operation.from, operation.to);
    else if (operation.kind === "remove")
      this.#change(dirname(operation.path), [[nameOf(operation.path), undefined]]);
    else if (operation.kind === "mkdir") this.#add(operation.path, folder());
    else if (operation.kind === "sync") this.#sync(this.#at(operation.path));
    else if (operation.kind === "write") this.#at(operation.path).pending.push(operation);
    else if (this.#find(operation.path) === undefined) this.#add(operation.path, file());
  }

  /** Every state that is tried: each choice of how far the names of each folder came, with each fate of the bytes. */
  *states(): Generator<DiskState> {
    const folders = [...this.#changes].filter(([, changes]) => changes.length > 0);
    for (const counts of choices(folders.map(([, changes]) => changes.length))) {
      const came = new Map(folders.map(([node], index) => [node, counts[index] as number]));
      for (const fate of fates) yield this.#stateAfter(came, fate);
    }
  }

  #stateAfter(came: ReadonlyMap<Node, number>, fate: Fate): DiskState {
    const state = new Map<string, Uint8Array>();
    const visit = (node: Node, path: string): void => {
      const entries = new Map(this.#names.get(node));
      for (const { apply } of (this.#changes.get(node) ?? []).slice(0, came.get(node) ?? 0)) apply(entries);
      for (const [name, child] of entries) {
        const place = path === "" ? name : `${path}/${name}`;
        if (child.entries === undefined) state.set(place, withPending(child, fate));
        else {
          state.set(`${place}/`, new Uint8Array());
          visit(child, place);
        }
      }
    };
    visit(this.#root, "");
    return state;
  }

  #sync(node: Node): void {
    if (node.entries === undefined) {
      node.durable = withPending(node, (pending) => pending);
      node.pending = [];
      return;
    }
    const names = this.#names.get(node) as Map<string, Node>;
    for (const { apply } of this.#changes.get(node) ?? []) apply(names);
    this.#changes.set(node, []);
  }

  #rename(from: string, to: string): void {
    const node = this.#at(from);
    if (dirname(from) !== dirname(to)) throw new Error("a rename from one folder to another");
    this.#change(dirname(from), [
      [nameOf(from), undefined],
      [nameOf(to), node],
    ]);
  }

  #add(path: string, node: Node): void {
    if (node.entries !== undefined) this.#names.set(node, new Map());
    this.#change(dirname(path), [[nameOf(path), node]]);
  }

  #change(parent: string, names: readonly (readonly [string, Node | undefined])[]): void {
    const node = this.#at(parent === "." ? "" : parent);
    const apply = (entries: Map<string, Node>): void => {
      for (const [name, child] of names) {
        if (child === undefined) entries.delete(name);
        else entries.set(name, child);
      }
    };
    apply(node.entries as Map<string, Node>);
    this.#changes.set(node, [...(this.#changes.get(node) ?? []), { apply }]);
  }

  #at(path: string): Node {
    const node = this.#find(path);
    if (node === undefined) throw new Error(`no ${path} on the recorded disk`);
    return node;
  }

  #find(path: string): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const name of path === "" ? [] : path.split("/")) node = node?.entries?.get(name);
    return node;
  }
}

/** Puts a state on a real disk. */
export function materialize(state: DiskState, root: string): void {
  mkdirSync(root, { recursive: true });
  for (const [path, bytes] of state) {
    if (path.endsWith("/")) mkdirSync(join(root, path), { recursive: true });
    else writeFileSync(join(root, path), bytes);
  }
}

type Writes = Node["pending"];
type Fate = (pending: Writes) => Writes;

/** The possible fates of bytes that were not synchronized. */
const fates: readonly Fate[] = [
  (pending) => pending,
  () => [],
  // The last write torn in the middle.
  (pending) => pending.map((write, index) => (index < pending.length - 1 ? write : half(write))),
  // A later write came and an earlier one did not: its place reads as zeros.
  (pending) => pending.slice(1),
];

function half({ offset, bytes }: Writes[number]): Writes[number] {
  return { offset, bytes: bytes.subarray(0, bytes.length >> 1) };
}

function withPending({ durable, pending }: Node, fate: Fate): Uint8Array {
  const writes = fate(pending);
  const size = Math.max(durable.length, ...writes.map(({ offset, bytes }) => offset + bytes.length));
  const content = new Uint8Array(size);
  content.set(durable);
  for (const { offset, bytes } of writes) content.set(bytes, offset);
  return content;
}

/** Every way to choose a number from 0 to each bound. */
function* choices(bounds: readonly number[]): Generator<number[]> {
  const [first, ...rest] = bounds;
  if (first === undefined) {
    yield [];
    return;
  }
  for (let chosen = 0; chosen <= first; chosen++)
    for (const others of choices(rest)) yield [chosen, ...others];
}

function folder(): Node {
  return { entries: new Map(), durable: new Uint8Array(), pending: [] };
}

function file(): Node {
  return { entries: undefined, durable: new Uint8Array(), pending: [] };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
