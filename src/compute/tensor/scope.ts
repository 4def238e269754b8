import { TroupeError } from "../../errors/index.ts";
import { TensorHandle } from "./handle.ts";
import { frame, native } from "./native.ts";

/** The tensors that one running scope will release. */
class Scope {
  tensors: TensorHandle[] = [];
  readonly outer: Scope | undefined;
  private sweepAt = 1 << 12;

  constructor(outer: Scope | undefined) {
    this.outer = outer;
  }

  add(tensor: TensorHandle): void {
    if (this.tensors.push(tensor) > this.sweepAt) this.sweep();
  }

  remove(tensor: TensorHandle): boolean {
    const index = this.tensors.lastIndexOf(tensor);
    if (index >= 0) this.tensors.splice(index, 1);
    return index >= 0;
  }

  /** Drops what was disposed by hand, so that a scope around a whole loop does not grow with it. */
  private sweep(): void {
    this.tensors = this.tensors.filter((tensor) => !tensor.disposed);
    this.sweepAt = Math.max(this.sweepAt, 2 * this.tensors.length);
  }
}

let current: Scope | undefined;

const nobody: ReadonlySet<TensorHandle> = new Set();

/** Makes a new tensor belong to the running scope, or to the finalizer where none runs. */
export function register<T extends TensorHandle>(tensor: T): T {
  if (current === undefined) tensor.watch();
  else current.add(tensor);
  return tensor;
}

/**
 * Runs `body` and releases every tensor made inside, save those in the value it returns: a Tensor, or arrays and plain
 * objects that hold Tensors at any depth. Those pass to the enclosing scope. When `body` throws, all are released.
 * @throws {TroupeError} `TENSOR_SCOPE_ASYNC` when `body` returns a promise: what it made would be gone before it is used
 */
export function scope<T>(body: () => T): T {
  const inner = new Scope(current);
  current = inner;
  let survivors = nobody;
  try {
    const result = body();
    refusePromise(result);
    if (typeof result === "object" && result !== null) survivors = tensorsIn(result);
    return result;
  } finally {
    current = inner.outer;
    close(inner, survivors);
  }
}

/**
 * A scope that is opened and closed by hand, for what no function encloses: the turn of a loop that a generator leads. What
 * is opened inside must be closed inside.
 */
export class OpenScope implements Disposable {
  readonly #scope = new Scope(current);

  constructor() {
    current = this.#scope;
  }

  /** Releases what was made since, and was not kept. */
  [Symbol.dispose](): void {
    current = this.#scope.outer;
    close(this.#scope, nobody);
  }
}

/**
 * {@link scope}, where `body` may be asynchronous: if it returns a promise, what it has made by then passes to the enclosing
 * scope, as does, without one, what it makes later; memory is then given back once nothing refers to it.
 */
export function scopeUnlessAsync<T>(body: () => T): T {
  let promise: { readonly result: T } | undefined;
  const result = scope(() => {
    const inner = current as Scope;
    const made = body();
    if (!isPromise(made)) return made;
    promise = { result: made };
    return [...inner.tensors] as unknown as T;
  });
  return promise === undefined ? result : promise.result;
}

/**
 * Takes a tensor out of every scope: it lives until `dispose()`, or until nothing refers to it any more.
 * @returns the same tensor
 */
export function keep<T extends TensorHandle>(tensor: T): T {
  for (let scope = current; scope !== undefined; scope = scope.outer) {
    if (scope.remove(tensor)) {
      tensor.watch();
      break;
    }
  }
  return tensor;
}

/**
 * Takes a tensor out of every scope with no net under it: whoever holds it must `dispose()` it. For engines, whose
 * tensors are many, large and short-lived: V8 hears nothing of their bytes, and collects no garbage for their sake.
 * @param tensor - or what makes it: the rest of what that makes is released
 */
export function hold<T extends TensorHandle>(tensor: T | (() => T)): T {
  if (typeof tensor === "function") return scope(() => hold(tensor()));
  for (let scope = current; scope !== undefined; scope = scope.outer) if (scope.remove(tensor)) return tensor;
  tensor.unwatch();
  return tensor;
}

/** Tensors this thread holds now, those in scopes and those kept. A training loop keeps it constant from step to step. */
export function liveTensors(): number {
  return native().liveTensors();
}

function close(ended: Scope, survivors: ReadonlySet<TensorHandle>): void {
  const someSurvive = survivors.size > 0; // else a look into the set for each tensor, for nothing
  let count = 0;
  for (const tensor of ended.tensors) {
    if (tensor.disposed) continue;
    if (someSurvive && survivors.has(tensor)) {
      register(tensor);
      continue;
    }
    frame[count++] = tensor.forget();
    if (count === frame.length) {
      native().releaseMany(count);
      count = 0;
    }
  }
  if (count > 0) native().releaseMany(count);
}

function isPromise(result: unknown): boolean {
  return (
    typeof result === "object" && result !== null && "then" in result && typeof result.then === "function"
  );
}

function refusePromise(result: unknown): void {
  if (isPromise(result)) {
    throw new TroupeError("TENSOR_SCOPE_ASYNC", {
      where: "scope",
      expected: "a function that returns its result",
      got: "one that returned a promise",
      hint: "open the scope inside, around what does not await",
    });
  }
}

function tensorsIn(
  value: unknown,
  found = new Set<TensorHandle>(),
  seen = new Set<object>(),
): Set<TensorHandle> {
  if (typeof value !== "object" || value === null) return found;
  if (value instanceof TensorHandle) return found.add(value);
  if (!isContainer(value) || seen.has(value)) return found;
  seen.add(value);
  for (const part of Object.values(value)) tensorsIn(part, found, seen);
  return found;
}

function isContainer(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
