import type { Module } from "../../nn/index.ts";

/** Functions by number: two of one source may close over other values. */
const numberOf = new WeakMap<object, number>();
let numFunctions = 0;

function textOf(value: unknown): string {
  if (typeof value !== "function") return typeof value === "string" ? JSON.stringify(value) : String(value);
  const number = numberOf.get(value) ?? numFunctions++;
  numberOf.set(value, number);
  return `function ${number}`;
}

/** The settings of modules, such as whether they train: a forward may depend on them. */
export class ModuleSettings {
  readonly #modules: readonly Module[];
  /** As they were when they were written down. */
  #values: unknown[] = [];
  #text = "";

  /** @param modules - whose fields that are no objects are settings */
  constructor(modules: readonly Module[]) {
    this.#modules = modules;
  }

  /** All of them; written again only if one has changed since. */
  get text(): string {
    if (this.#haveChanged()) {
      const fields = this.#modules.flatMap((module) => Object.values(module) as unknown[]);
      this.#values = fields.filter((value) => typeof value !== "object");
      this.#text = this.#values.map((value) => `${textOf(value)} `).join("");
    }
    return this.#text;
  }

  #haveChanged(): boolean {
    let place = 0;
    for (const module of this.#modules) {
      for (const name in module) {
        const value: unknown = module[name as keyof Module];
        if (typeof value !== "object" && value !== this.#values[place++]) return true;
      }
    }
    return place !== this.#values.length;
  }
}
