import { describeValue, framesOf, nearestName, ownFrames, TroupeError } from "../../../errors/index.ts";
import { scope } from "../../tensor/index.ts";
import { Buffer } from "./buffer.ts";
import { Parameter } from "./parameter.ts";

/** The innermost module that was computing when an error was thrown: its name is looked for where somebody wants it. */
const failedIn = new WeakMap<object, Module>();

/**
 * A piece of a model: parameters, buffers and smaller modules as own enumerable properties, found in the order in which they
 * are declared and named by their property names, so a class laid out like Hugging Face's has its names.
 *
 * `forward` is declared as a method. Construction wraps it on the instance, so that every call opens a tensor scope:
 * what forward makes and does not return is released when it returns (autograd keeps what it needs). Parallelism is
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

  /** Computes the module's output. Synchronous; tensors it returns live on in the caller's scope. */
  abstract forward(...inputs: never[]): unknown;

  /** Own modules by name, in order of declaration. @throws `MODULE_LAYOUT` where a plain array, object, map or set hides modules */
  namedChildren(): Map<string, Module> {
    return new Map(
      this.members().filter((member): member is [string, Module] => member[1] instanceof Module),
    );
  }

  /** Own parameters and buffers by name, without those of the modules below, in order of declaration. */
  ownState(): Map<string, Parameter> {
    return new Map(
      this.members().filter((member): member is [string, Parameter] => member[1] instanceof Parameter),
    );
  }

  /** Own modules, in order of declaration. */
  get children(): Module[] {
    return [...this.namedChildren().values()];
  }

  /** This module (its name is `prefix`) and all below it, parents first; a module met twice keeps its first name. */
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

  /**
   * All that is saved, parameters and persistent buffers, by full name; what is tied appears once, under the name that is met
   * first.
   */
  namedState(prefix = ""): Map<string, Parameter> {
    const isSaved = (parameter: Parameter) => !(parameter instanceof Buffer) || parameter.persistent;
    return new Map([...this.#named(prefix)].filter(([, parameter]) => isSaved(parameter)));
  }

  /** All parameters by full name, tied ones once. */
  namedParameters(prefix = ""): Map<string, Parameter> {
    return new Map([...this.#named(prefix)].filter(([, parameter]) => !(parameter instanceof Buffer)));
  }

  /** All buffers by full name, shared ones once; also those that are not persistent. */
  namedBuffers(prefix = ""): Map<string, Buffer> {
    return new Map(
      [...this.#named(prefix)].filter((named): named is [string, Buffer] => named[1] instanceof Buffer),
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

  /** All parameters, tied ones once. */
  parameters(): Parameter[] {
    return [...this.namedParameters().values()];
  }

  /** Number of parameters' values, tied ones counted once. */
  get numParameters(): number {
    return this.parameters().reduce((sum, parameter) => sum + parameter.numel, 0);
  }

  /** Sets training or evaluation for this module and all below it. */
  train(mode = true): this {
    for (const module of this.namedModules().values()) module.training = mode;
    return this;
  }

  /** The same as `train(false)`. */
  eval(): this {
    return this.train(false);
  }

  /** What discovery looks at: own enumerable properties. A container whose members are elsewhere overrides it. */
  protected members(): [string, unknown][] {
    const members = Object.entries(this);
    for (const [name, value] of members) {
      const container = hidesModules(value);
      if (container === undefined) continue;
      throw new TroupeError(
        "MODULE_LAYOUT",
        {
          where: this.constructor.name,
          expected: "modules and parameters to be properties, or to stand in a ModuleList",
          got: `${container} of them as ${name}`,
          hint: `use new ModuleList(${container === "an array" ? "array" : "Object.values(…)"})`,
        },
        { fields: { module: this.constructor.name, property: name } },
      );
    }
    return members;
  }
}

/** @returns the kind of a plain container with modules or parameters in it, which discovery does not look into */
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
 * @returns the path in a model of the module whose forward threw an error, such as `layers.2.attn.q`; undefined where none of
 *   its modules did
 */
export function failedModule(error: unknown, model: Module): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const failed = failedIn.get(error);
  if (failed === undefined) return undefined;
  for (const [name, module] of model.namedModules()) if (module === failed) return name;
  return undefined;
}

/**
 * What a module of this library says that was called without an input, or with nothing in its place, where JavaScript says which
 * property of undefined it was about to read; undefined for every other error.
 */
function withoutInput(error: unknown, module: Module, inputs: readonly unknown[]): TroupeError | undefined {
  if (!(error instanceof TypeError) || !/ of (undefined|null)\b|is (undefined|null)\b/.test(error.message))
    return undefined;
  const index = inputs.length === 0 ? 0 : inputs.findIndex((input) => input === undefined || input === null);
  const [innermost] = framesOf(error.stack);
  if (index < 0 || innermost === undefined || ownFrames([innermost]).length > 0) return undefined;
  return new TroupeError(
    "MODULE_ARGUMENT",
    {
      where: module.constructor.name,
      expected: `a value as input ${index + 1} of forward`,
      got: String(inputs[index]),
      hint: error.message,
    },
    { cause: error },
  );
}

/**
 * Replaces `module.forward` on this instance by a call of `around`, which gets the forward that was there and its
 * inputs. This is how parallelism, recompute and tracing are applied to a model from outside; wrappings nest, the
 * latest outermost. What `around` itself makes lies in the caller's tensor scope, not in the module's.
 * @returns puts back the forward that was there
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

/** A full name: `prefix`, where there is one, a dot and `name`. */
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
