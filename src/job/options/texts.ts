import * as z from "zod";
import { bare, type Option } from "./option.ts";

/** Converts a text of a command line or the environment by its option's type; the schema refuses one that does not fit. */
export function readText({ schema, unit }: Option, text: string): unknown {
  const kinds = kindsOf(schema);
  if (unit === "bytes") return bytesOf(text) ?? text;
  if (kinds.has("number") && text.trim() !== "" && !Number.isNaN(Number(text))) return Number(text);
  if (kinds.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if (kinds.has("list")) return text.split(",").map((part) => part.trim());
  return text;
}

/** @returns `80GB`, `512 MiB` or a plain number in bytes; undefined if `text` is not a size */
export function bytesOf(text: string): number | undefined {
  if (text.trim() === "Infinity") return Number.POSITIVE_INFINITY;
  const [, digits, unit = "", binary] = /^\s*(-?[\d.]+)\s*(?:([kmgt])(i)?b|b)?\s*$/i.exec(text) ?? [];
  const size = Number(digits) * (binary ? 1024 : 1000) ** " kmgt".indexOf(unit.toLowerCase() || " ");
  return Number.isFinite(size) ? size : undefined;
}

type Kind = "number" | "boolean" | "text" | "list" | "other";

/** Kinds of value of a type that a text can be converted to. */
function kindsOf(schema: z.core.$ZodType): ReadonlySet<Kind> {
  const type = bare(schema);
  if (type instanceof z.ZodUnion) return new Set(type.options.flatMap((each) => [...kindsOf(each)]));
  if (type instanceof z.ZodLiteral) return new Set([...type.values].map(kindOfValue));
  if (type instanceof z.ZodNumber) return new Set(["number"]);
  if (type instanceof z.ZodBoolean) return new Set(["boolean"]);
  if (type instanceof z.ZodString || type instanceof z.ZodEnum) return new Set(["text"]);
  if (type instanceof z.ZodArray && kindsOf(type.element).has("text")) return new Set(["list"]);
  return new Set(["other"]);
}

function kindOfValue(value: unknown): Kind {
  if (typeof value === "number" || typeof value === "boolean") return typeof value as Kind;
  return typeof value === "string" ? "text" : "other";
}

/** @returns whether a text can be converted to a value of this option */
export function isWritable({ schema }: Option): boolean {
  const kinds = kindsOf(schema);
  return kinds.size > 1 || !kinds.has("other");
}
