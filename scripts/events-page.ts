import { readdirSync, readFileSync } from "node:fs";

/** A field of an event, as its source declares it. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly isOptional: boolean;
  readonly meaning: string;
}

/** One event of the union, as its source declares it. */
interface Declaration {
  readonly kind: string;
  readonly meaning: string;
  readonly fields: readonly Field[];
}

const kinds = new URL("../src/job/events/kinds/", import.meta.url);

const eventPattern =
  /\/\*\*((?:(?!\*\/).)*)\*\/\s*export interface \w+(?: extends (\w+))? \{\s*readonly kind: "([^"]+)";\n(.*?)\n?\}\n/gs;
const fieldPattern = /(?:\/\*\*((?:(?!\*\/).)*)\*\/\s*)?readonly (\w+)(\??): (.*?);\n/gs;

/** The source that declares the kinds of events. */
export function declaredEvents(): string {
  const files = readdirSync(kinds).sort();
  return files.map((file) => readFileSync(new URL(file, kinds), "utf8")).join("\n");
}

/** The text of docs/reference/events.md: every kind of event and every field of it, by name. */
export function eventsPage(): string {
  const source = declaredEvents();
  const events = [...source.matchAll(eventPattern)].map((match) => declarationOf(match, source));
  return `# Events

The events that \`runtime.events$\`, \`runtime.events()\` and the sinks carry. Every event also has \`timeMs\`, when it was reported, in milliseconds since
1970, and \`schemaVersion\`, which is raised when a field changes its meaning or is removed; those of a live model with a name have its name as \`model\`. [Events](../guide/watch.md) says how to use them.
Written from \`src/job/events/kinds/\` by \`npm run docs:write\`.

${events
  .toSorted((a, b) => (a.kind < b.kind ? -1 : 1))
  .map(sectionOf)
  .join("\n")}`;
}

function declarationOf(
  [, meaning = "", base, kind = "", body = ""]: RegExpMatchArray,
  source: string,
): Declaration {
  const [, common = ""] =
    new RegExp(`^(?:export )?interface ${base} \\{\n(.*?)^\\}`, "ms").exec(source) ?? [];
  const fields = [...`${common}${body}\n`.matchAll(fieldPattern)].map(
    ([, comment = "", name = "", mark, type = ""]): Field => ({
      name,
      type: oneLine(type),
      isOptional: mark === "?",
      meaning: oneLine(comment),
    }),
  );
  return { kind, meaning: oneLine(meaning), fields };
}

function sectionOf({ kind, meaning, fields }: Declaration): string {
  const rows = fields.map(
    ({ name, type, isOptional, meaning }) =>
      `| \`${name}\`${isOptional ? ", may be left out" : ""} | ${cell(`\`${type}\``)} | ${cell(meaning)} |`,
  );
  return `## ${kind}

${meaning}

| field | type | |
| --- | --- | --- |
${rows.join("\n")}
`;
}

/** Comments lose their stars, types their line breaks. */
function oneLine(text: string): string {
  return text
    .replace(/\n\s*\*?/g, " ")
    .replace(/\s+/g, " ")
    .replace(/ \| undefined$/, "")
    .trim();
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
