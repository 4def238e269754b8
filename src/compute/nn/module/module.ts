import { describeValue, framesOf, nearestName, ownFrames, TroupeError } from "../../../errors/index.ts";
import { scope } from "../../tensor/index.ts";
import { ModuleBuffer } from "./buffer.ts";
import { Parameter } from "./parameter.ts";

/** The innermost module that was computing when an error was thrown. {@link failedModule} looks up its name. */
const failedIn = new WeakMap<object, Module>();

/**
 * A part of a model: parameters, buffers and submodules as own enumerable properties. They are found in order of declaration
 * and named by their property names, so that a class laid out like Hugging Face's has the same names.
 *
 * Declare `forward` as a method. The constructor wraps it on the instance, so that every call opens a tensor scope: tensors
 * that forward makes and does not return are released when it returns (autograd keeps those that it needs). Parallelism is
 * applied from outside by wrapping it again, see {@link wrapForward}; a module knows nothing of ranks.
 */
export abstract class Module {
  /** True while training; dropout is off otherwise. Set through {@link train} and {@link eval}. */
  training = true;

  constructor() {
    const forward: Module["forward"] = this.forward;
    if (typeof forward !== "function") throw withoutForward(this);
    setForward(this, (...inputs) => {
      try {
        return scope(() => forward.apply(this, inputs));
      } catch (thrown) {
        const error = withoutInput(thrown, this, inputs) ?? thrown;
        if (typeof error === "object" && error !== null && !failedIn.has(error)) failedIn.set(error, this);
        throw error;
      }
    });
  }

  /** Computes the module's output. Synchronous; returned tensors belong to the caller's scope. */
  abstract forward(...inputs: never[]): unknown;

  /**
   * Returns direct submodules by name, in order of declaration. @throws `MODULE_LAYOUT` if an array, plain object, map or set
   * hides modules
   */
  namedChildren(): Map<string, Module> {
    return new Map(
      this.members().filter((member): member is [string, Module] => member[1] instanceof Module),
    );
  }

  /** Returns own parameters and buffers by name, without those of submodules, in order of declaration. */
  ownState(): Map<string, Parameter> {
    return new Map(
      this.members().filter((member): member is [string, Parameter] => member[1] instanceof Parameter),
    );
  }

  /** Direct submodules, in order of declaration. */
  get children(): Module[] {
    return [...this.namedChildren().values()];
  }

  /** Returns this module (with name `prefix`) and all submodules, parents first; a module found twice keeps its first name. */
  namedModules(prefix = ""): Map<string, Module> {
    const named = new Map<string, Module>();
    const seen = new Set<Module>();
    const visit = (name: string, module: Module): void => {
      if (seen.has(module)) return;
      seen.add(module);
      named.set(name, module);
      for (const [childName, child] of module.namedChildren()) visit(joinName(name, childName), child);
    };
    visit(prefix, this);
    return named;
  }

  /** Returns the saved state, parameters and persistent buffers, by full name; a tied one appears once, under its first name. */
  namedState(prefix = ""): Map<string, Parameter> {
    const isSaved = (parameter: Parameter) => !(parameter instanceof ModuleBuffer) || parameter.persistent;
    return new Map([...this.#named(prefix)].filter(([, parameter]) => isSaved(parameter)));
  }

  /** Returns all parameters by full name, tied ones once. */
  namedParameters(prefix = ""): Map<string, Parameter> {
    return new Map([...this.#named(prefix)].filter(([, parameter]) => !(parameter instanceof ModuleBuffer)));
  }

  /** Returns all buffers by full name, shared ones once, including those that are not persistent. */
  namedBuffers(prefix = ""): Map<string, ModuleBuffer> {
    return new Map(
      [...this.#named(prefix)].filter(
        (named): named is [string, ModuleBuffer] => named[1] instanceof ModuleBuffer,
      ),
    );
  }

  #named(prefix: string): Map<string, Parameter> {
    const named = new Map<string, Parameter>();
    const seen = new Set<Parameter>();
    for (const [moduleName, module] of this.namedModules(prefix)) {
      for (const [name, parameter] of module.ownState()) {
        if (seen.has(parameter)) continue;
        seen.add(parameter);
        named.set(joinName(moduleName, name), parameter);
      }
    }
    return named;
  }

  /** Returns all parameters, tied ones once. */
  parameters(): Parameter[] {
    return [...this.namedParameters().values()];
  }

  /** Number of elements of all parameters, tied ones counted once. */
  get numParameters(): number {
    return this.parameters().reduce((sum, parameter) => sum + parameter.numel, 0);
  }

  /** Sets training or evaluation mode for this module and all submodules. */
  train(mode = true): this {
    for (const module of this.namedModules().values()) module.training = mode;
    return this;
  }

  /** Sets evaluation mode, as `train(false)`. */
  eval(): this {
    return this.train(false);
  }

  /**
   * Returns the properties in which submodules and parameters are found: own enumerable ones. A container with members
   * elsewhere overrides it.
   */
  protected members(): [string, unknown][] {
    const members = Object.entries(this);
    for (const [name, value] of members) {
      const container = hidesModules(value);
      if (container === undefined) continue;
      throw new TroupeError("MODULE_LAYOUT", {
        where: this.constructor.name,
        expected: "modules and parameters to be properties, or to stand in a ModuleList",
        got: `${container} of them as ${name}`,
        hint: `use new ModuleList(${container === "an array" ? "array" : "Object.values(…)"})`,
        fields: { module: this.constructor.name, property: name },
      });
    }
    return members;
  }
}

/**
 * Names the kind of a plain container that holds modules or parameters, which discovery would miss; undefined for other values.
 */
function hidesModules(value: unknown): string | undefined {
  const holds = (items: Iterable<unknown>) =>
    [...items].some((item) => item instanceof Module || item instanceof Parameter);
  if (Array.isArray(value)) return holds(value) ? "an array" : undefined;
  if (value instanceof Map || value instanceof Set)
    return holds(value.values()) ? describeValue(value) : undefined;
  const isPlain =
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain && holds(Object.values(value)) ? "an object" : undefined;
}

function withoutForward(module: Module): TroupeError {
  const { name, prototype } = module.constructor as { readonly name: string; readonly prototype: object };
  const near = nearestName("forward", Object.getOwnPropertyNames(prototype));
  return new TroupeError("MODULE_LAYOUT", {
    where: name,
    expected: "a method forward(…)",
    got: near === undefined ? "none" : `one named ${near}`,
    hint: near === undefined ? "it computes the module's output" : `rename ${near} to forward`,
  });
}

/**
 * Returns the full name of the module whose forward threw an error, such as `layers.2.attn.q`; undefined if it was none of
 * the model's modules.
 */
export function failedModule(error: unknown, model: Module): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const failed = failedIn.get(error);
  if (failed === undefined) return undefined;
  for (const [name, module] of model.namedModules()) if (module === failed) return name;
  return undefined;
}

/**
 * Makes the error of a module of this library that was called with a missing input, instead of JavaScript's error about a
 * property of undefined; undefined for every other error.
 */
function withoutInput(error: unknown, module: Module, inputs: readonly unknown[]): TroupeError | undefined {
  if (!(error instanceof TypeError) || !/ of (undefined|null)\b|is (undefined|null)\b/.test(error.message))
    return undefined;
  const index = inputs.length === 0 ? 0 : inputs.findIndex((input) => input === undefined || input === null);
  const [innermost] = framesOf(error.stack);
  if (index < 0 || innermost === undefined || ownFrames([innermost]).length > 0) return undefined;
  return new TroupeError("MODULE_ARGUMENT", {
    where: module.constructor.name,
    expected: `a value as input ${index + 1} of forward`,
    got: String(inputs[index]),
    hint: error.message,
    cause: error,
  });
}

/**
 * Replaces `module.forward` on this instance by a call of `around`, which gets the previous forward and its inputs.
 * Parallelism, recompute and tracing are applied to a model from outside in this way; wrappers nest, the latest outermost.
 * Tensors that `around` itself makes belong to the caller's scope, not to the module's.
 * @returns a function that restores the previous forward
 */
export function wrapForward<M extends Module>(
  module: M,
  around: (forward: M["forward"], inputs: Parameters<M["forward"]>) => ReturnType<M["forward"]>,
): () => void {
  const before = module.forward;
  const bound: M["forward"] = before.bind(module);
  setForward(module, (...inputs: Parameters<M["forward"]>) => around(bound, inputs));
  return () => setForward(module, before);
}

// Not enumerable: a module's enumerable properties are its members and its settings.
function setForward(module: Module, forward: Module["forward"]): void {
  Object.defineProperty(module, "forward", {
    value: forward,
    writable: true,
    configurable: true,
    enumerable: false,
  });
}

/** Joins a full name: `prefix`, a dot and `name`; `name` alone if the prefix is empty. */
export function joinName(prefix: string, name: string): string {
  return prefix === "" ? name : `${prefix}.${name}`;
}

/** Runs `body` with `root` and all below it in evaluation mode, and then puts back the mode each one had. */
export function evaluating<T>(root: Module, body: () => T): T {
  const modes = [...root.namedModules().values()].map((module) => ({ module, training: module.training }));
  root.eval();
  try {
    return body();
  } finally {
    for (const { module, training } of modes) module.training = training;
  }
}
