import { TroupeError } from "../../../errors/index.ts";
import { exampleError, type JsonRecord } from "../formats/index.ts";

/**
 * Names of a record's columns as a job has them, by the names that the files have: `{ image: "jpg", label: "cls" }`, or the same
 * in one text, as a command line gives it: `image=jpg,label=cls`. A file's name may be a path into records, `meta.label`, or
 * several of which the first that a record has counts, `jpg;png`. Columns that are not named are left out.
 */
export type Columns = string | Readonly<Record<string, string>>;

/** Picks and renames the columns of a record. @throws {TroupeError} `DATA_EXAMPLE` for a record without one */
export type PickColumns = (record: JsonRecord, place: string) => JsonRecord;

/** @returns undefined where all columns are to stay. @throws {TroupeError} `DATA_OPTION` for a text that is none */
export function columnPicker(columns: Columns | undefined): PickColumns | undefined {
  if (columns === undefined || columns === "") return undefined;
  const pairs = typeof columns === "string" ? columns.split(",").map(pairOf) : Object.entries(columns);
  const wanted = pairs.map(
    ([name, theirs]) => [name.trim(), theirs.split(";").map((each) => each.trim())] as const,
  );
  return (record, place) =>
    Object.fromEntries(
      wanted.map(([name, theirs]) => {
        for (const path of theirs) {
          const found = lookUp(record, path);
          if (found !== undefined) return [name, found.value];
        }
        const names = Object.keys(record).join(", ");
        throw exampleError(place, `a column ${theirs.join(" or ")}`, names === "" ? "none" : names);
      }),
    );
}

/** The value at a name, or at a path of names if there is no such name. */
function lookUp(record: JsonRecord, path: string): { readonly value: unknown } | undefined {
  if (Object.hasOwn(record, path)) return { value: record[path] };
  let value: unknown = record;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as JsonRecord)[name];
  }
  return { value };
}

function pairOf(text: string): [string, string] {
  const [name = "", theirs, ...more] = text.split("=");
  if (name.trim() !== "" && theirs !== undefined && theirs.trim() !== "" && more.length === 0)
    return [name, theirs];
  throw new TroupeError("DATA_OPTION", {
    where: "data",
    expected: "columns as NAME=COLUMN,NAME=COLUMN",
    got: JSON.stringify(text),
    hint: "image=jpg,label=cls",
    fields: { columns: text },
  });
}
