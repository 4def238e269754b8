import { isPlain } from "../../errors/index.ts";

/** The sources of a value, the weakest first. */
const origins = ["default", "job", "checkpoint", "file", "environment", "flag", "script"] as const;

/** One of {@link origins}. */
export type Origin = (typeof origins)[number];

/** One option as one source gives it. */
export interface Given {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly origin: Origin;
  /** The option as the user wrote it: `--ranks`, `TROUPE_RANKS`, `job.toml`; empty in a script. */
  readonly by: string;
}

/** Options of several sources, of which the stronger override the weaker. */
export class Layers {
  /** The merged options, nested. */
  readonly values = table();
  readonly #sources = new Map<string, Given>();

  /** @param given - the weakest first */
  constructor(given: Iterable<Given>) {
    for (const each of given) this.lay(each);
  }

  /** @returns the source of an option, of the subject that it belongs to, or of a part of it */
  sourceOf(path: readonly string[]): Given | undefined {
    for (let length = path.length; length > 0; length--) {
      const source = this.#sources.get(path.slice(0, length).join("."));
      if (source !== undefined) return source;
    }
    const part = [...this.#sources].find(([name]) => name.startsWith(`${path.join(".")}.`));
    return part?.[1];
  }

  /** Adds a value that overrides those before. */
  lay(given: Given): void {
    const { path, value } = given;
    let at = this.values;
    for (const name of path.slice(0, -1)) {
      const inside = isPlain(at[name]) ? at[name] : table();
      at[name] = inside;
      at = inside;
    }
    const last = path.at(-1) ?? "";
    this.#sources.set(path.join("."), given);
    // `true` for a subject that already has options keeps them.
    if (value === true && isPlain(at[last])) return;
    at[last] = isPlain(value) ? structuredClone(value) : value;
  }
}

/** An object in which `__proto__` is a name like any other. */
const table = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>;

/** Yields every value with its path; an empty table is a value. */
export function* leavesOf(
  values: Record<string, unknown>,
  path: readonly string[] = [],
): Generator<Pick<Given, "path" | "value">> {
  for (const [name, value] of Object.entries(values)) {
    const inner = [...path, name];
    if (isPlain(value) && Object.keys(value).length > 0) yield* leavesOf(value, inner);
    else if (value !== undefined) yield { path: inner, value };
  }
}
