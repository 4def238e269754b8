import { TroupeError } from "../../errors/index.ts";
import { TensorHandle } from "./handle.ts";
import { frame, native } from "./native.ts";

/** The tensors that one scope will release. */
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

  /** Drops tensors that were disposed by hand, so that a scope around a loop does not grow with it. */
  private sweep(): void {
    this.tensors = this.tensors.filter((tensor) => !tensor.disposed);
    this.sweepAt = Math.max(this.sweepAt, 2 * this.tensors.length);
  }
}

let current: Scope | undefined;

const nobody: ReadonlySet<TensorHandle> = new Set();

/** Adds a new tensor to the running scope, or to the finalizer if no scope runs. */
export function register<T extends TensorHandle>(tensor: T): T {
  if (current === undefined) tensor.watch();
  else current.add(tensor);
  return tensor;
}

/**
 * Runs `body` and releases every tensor made inside, except those in its result: a Tensor, or arrays and plain objects that
 * hold Tensors at any depth. Those pass to the enclosing scope. If `body` throws, all are released.
 * @throws {TroupeError} `TENSOR_SCOPE_ASYNC` if `body` returns a promise, whose tensors would be released before they are
 *   used
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
 * A scope that is opened and closed by hand, for code that no function encloses, such as the body of a loop over a generator.
 * Scopes opened inside must be closed inside.
 */
export class OpenScope implements Disposable {
  readonly #scope = new Scope(current);

  constructor() {
    current = this.#scope;
  }

  /** Releases the tensors that were made since and not kept. */
  [Symbol.dispose](): void {
    current = this.#scope.outer;
    close(this.#scope, nobody);
  }
}

/**
 * Runs `body` in a {@link scope} unless it is asynchronous. If it returns a promise, the tensors that it has made so far pass
 * to the enclosing scope; without one, and for later tensors, the finalizer releases them.
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
 * Takes a tensor out of every scope: it lives until `dispose()`, or until it is no longer reachable.
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
 * Takes a tensor out of every scope without a finalizer: the caller must `dispose()` it. For engines, whose tensors are many,
 * large and short-lived: V8 does not count their bytes and collects no garbage because of them.
 * @param tensor - the tensor, or a function that makes it, whose other tensors are released
 */
export function hold<T extends TensorHandle>(tensor: T | (() => T)): T {
  if (typeof tensor === "function") return scope(() => hold(tensor()));
  for (let scope = current; scope !== undefined; scope = scope.outer) if (scope.remove(tensor)) return tensor;
  tensor.unwatch();
  return tensor;
}

/**
 * Returns the number of tensors that this thread holds, in scopes and kept. A training loop keeps it constant from step to
 * step.
 */
export function liveTensors(): number {
  return native().liveTensors();
}

let retained: TensorHandle[] | undefined;

/** Runs `body`; until it ends, no scope releases a tensor, so that no handle names two of them. */
export function retaining<T>(body: () => T): T {
  const own: TensorHandle[] = [];
  const before = retained;
  retained = own;
  try {
    return body();
  } finally {
    retained = before;
    for (const tensor of own) tensor.dispose();
  }
}

function close(ended: Scope, survivors: ReadonlySet<TensorHandle>): void {
  if (retained !== undefined) {
    for (const tensor of ended.tensors) {
      if (survivors.has(tensor)) register(tensor);
      else retained.push(tensor);
    }
    return;
  }
  const someSurvive = survivors.size > 0; // saves a look into the set for each tensor
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
  if (isPromise(result))
    throw new TroupeError("TENSOR_SCOPE_ASYNC", {
      where: "scope",
      expected: "a function that returns its result",
      got: "one that returned a promise",
      hint: "open the scope inside, around what does not await",
    });
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
