import type { Template } from "@huggingface/jinja";

/** The name of {@link stripped} in templates. */
export const STRIPPED = "troupe_stripped";

/** A node of a parsed template. */
interface Node {
  readonly type?: string;
  callee?: {
    readonly type?: string;
    readonly object?: unknown;
    readonly property?: { readonly value?: unknown };
  };
  args?: readonly unknown[];
}

/**
 * Makes a template's `strip`, `lstrip` and `rstrip` with an argument call {@link stripped}, since the library ignores the argument: Qwen's
 * `content.lstrip('\n')` would take spaces too.
 */
export function replaceStripCalls({ parsed }: Template): void {
  replaceIn(parsed);
}

function replaceIn(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const node = value as Node;
  const { callee, args = [] } = node;
  const side = callee?.property?.value;
  if (node.type === "CallExpression" && callee?.type === "MemberExpression" && args.length > 0)
    if (side === "strip" || side === "lstrip" || side === "rstrip") {
      node.args = [callee.object, { type: "StringLiteral", value: side }, ...args];
      node.callee = { type: "Identifier", value: STRIPPED } as Node["callee"] & object;
    }
  const parts = value instanceof Map ? [...value].flat() : Object.values(value);
  for (const part of parts) replaceIn(part);
}

/** Removes characters at the begin or the end of a text, as Python's method does that is named by `side`. */
export function stripped(text: string, side: "strip" | "lstrip" | "rstrip", characters: string): string {
  const all = Array.from(text);
  const removed = new Set(characters);
  const isKept = (character: string) => !removed.has(character);
  const begin = side === "rstrip" ? 0 : all.findIndex(isKept);
  const end = side === "lstrip" ? all.length - 1 : all.findLastIndex(isKept);
  return begin < 0 ? "" : all.slice(begin, end + 1).join("");
}
