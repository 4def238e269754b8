import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const source = fileURLToPath(new URL("../src/", import.meta.url));

/** An interface with fewer fields may look like another by chance. */
const FEWEST_FIELDS = 4;
/** Fields in common, as a share of those of the larger interface. */
const SHARE = 0.8;

/** Pairs that say different things, or that must not know each other; each with its reason. */
const exceptions: Readonly<Record<string, string>> = {
  "CollectiveStatus, ReachedCollective":
    "an event stands for itself: the runtime's status has a time, the event an age",
  "Initializer, WeightBytes": "a tensor that waits for its bytes, and one that has them",
  "MessageHandled, Span": "an event stands for itself, and the runtime knows no events",
  "DeadLetter, MessageUndelivered": "an event stands for itself, and the runtime knows no events",
  "InitialRange, TensorEntry": "a range of a parameter to be filled, and the bytes of a tensor in a file",
  "CollectivePart, CollectiveStatus": "the page's frame is a format of its own",
  "CollectivePart, ReachedCollective": "the page's frame is a format of its own",
  "CheckpointProgressed, WriteProgress": "the checkpoint service's writer knows no events",
  "SaveRequest, WriteOrder": "what a caller gives by name, and the same as the writer's thread takes it",
};

// Two interfaces with the same fields must be kept in step by hand, and fields are renamed on the way from one to the other.
it("no two exported interfaces of src have four fifths of their fields in common", () => {
  const interfaces = readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /(?<!\.d)\.ts$/.test(file))
    .flatMap((file) => interfacesOf(readFileSync(source + file, "utf8")))
    .filter(({ fields }) => fields.size >= FEWEST_FIELDS);
  const twins = interfaces.flatMap((one, index) =>
    interfaces
      .slice(index + 1)
      .filter((other) => shareOf(one.fields, other.fields) >= SHARE)
      .map((other) => [one.name, other.name].toSorted().join(", ")),
  );
  expect(twins.toSorted()).toEqual(Object.keys(exceptions).toSorted());
});

interface Interface {
  readonly name: string;
  /** Its own, without those that it extends another by. */
  readonly fields: ReadonlySet<string>;
}

function interfacesOf(text: string): Interface[] {
  const declarations = text.matchAll(/^export interface (\w+)[^{]*\{\n(.*?)^\}/gms);
  return [...declarations].map(([, name = "", body = ""]) => {
    const fields = body.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(<]/gm);
    return { name, fields: new Set([...fields].map(([, field = ""]) => field)) };
  });
}

function shareOf(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const common = [...one].filter((field) => other.has(field));
  return common.length / Math.max(one.size, other.size);
}
