import { basename } from "node:path";
import { callUser, TroupeError } from "../../errors/index.ts";

/** The place where a function is defined: sent in its stead. Plain data. */
export interface DefinedIn {
  /** URL of the module that defines it: its `import.meta.url`. */
  readonly module: string;
  /** Unique in that module. */
  readonly name: string;
}

/**
 * Functions of one kind that modules define when they are imported. A function cannot be sent to another thread, but its name
 * and its module's can: the receiver imports the module and has the function too.
 */
export class Definitions<T> {
  /** Their kind, for errors. */
  readonly #what: string;
  readonly #known = new Map<string, T>();

  constructor(what: string) {
    this.#what = what;
  }

  /** @throws {TroupeError} `DEFINITION` for a module that is no URL */
  define({ module, name }: DefinedIn, value: T): void {
    if (!URL.canParse(module)) throw this.#error("the import.meta.url of its module", module, name);
    this.#known.set(keyOf({ module, name }), value);
  }

  /** Imports the module of a definition, unless this thread has it. @throws {TroupeError} `DEFINITION` */
  async load({ module, name }: DefinedIn): Promise<void> {
    if (this.#known.has(keyOf({ module, name }))) return;
    try {
      await callUser(`the import of ${basename(module)}`, () => import(module));
    } catch (cause) {
      throw this.#error("a module that can be imported", `${module}: ${(cause as Error).message}`, name);
    }
    this.get({ module, name });
  }

  /** @throws {TroupeError} `DEFINITION` if the module has not defined it, or is not loaded */
  get({ module, name }: DefinedIn): T {
    const value = this.#known.get(keyOf({ module, name }));
    if (value === undefined) throw this.#error("to be defined when its module is imported", module, name);
    return value;
  }

  #error(expected: string, got: string, name: string): TroupeError {
    return new TroupeError("DEFINITION", {
      where: `${this.#what} ${name}`,
      expected,
      got,
      fields: { name, got },
    });
  }
}

const keyOf = ({ module, name }: DefinedIn): string => `${module} ${name}`;
