import { describeStandard, groups, type Option, optionsOf } from "../src/config/option.ts";
import { relations } from "../src/config/relations.ts";
import { commandSchema } from "../src/config/schema.ts";

/** The text of docs/reference/options.md: every option of the schema, by subject. */
export function optionsPage(): string {
  const options = optionsOf(commandSchema);
  const sections = Object.entries(groups).map(([group, heading]) => {
    const rows = options.filter((option) => option.group === group).map(rowOf);
    return `## ${heading}

| option | command line | default | meaning |
| --- | --- | --- | --- |
${rows.join("\n")}
`;
  });
  return `# Options

One schema, \`src/config/schema.ts\`, says what a run can be told, whoever says it. This page is made of it by
\`npm run docs:options\`, as are \`troupe run --help\` and the types that editors show.

| who says it | how |
| --- | --- |
| a script | \`Runtime.spawn({ ranks: 2, checkpoint: { dir: "runs/gpt", everySteps: 200 } })\` |
| a command line | \`troupe run JOB --ranks 2 --checkpoint runs/gpt --checkpoint-every 200\` |
| the environment | \`TROUPE_RANKS=2 TROUPE_CHECKPOINT_EVERY_STEPS=200 troupe run JOB\`: an option's name in capitals, its parts joined by \`_\` |
| a file | \`troupe run JOB --config run.toml\`, or \`TROUPE_CONFIG=run.toml\`; JSON where its name ends in \`.json\` |

\`\`\`toml
ranks = 2
precision = "bf16"
prefetchBytes = "64MB"      # sizes may have a unit

[checkpoint]
dir = "runs/gpt"
everySteps = 200

[set]                       # settings of the job
layers = 12
\`\`\`

A flag goes before the environment, that before the file, that before the job and its checkpoint, these before the default.
\`--print-config\` prints every option with its value and which of these gave it, as such a file, and trains nothing;
a script has the same text in \`runtime.options\`. What none is called is refused with the name that is nearest; an option is obeyed or refused, never ignored. The options of \`output\` and
\`set\` are the command line's: a script adds sinks, and hands settings to \`runtime.run\`.

${sections.join("\n")}`;
}

function rowOf(option: Option): string {
  const flags = [...(option.flag === "" ? [] : [option.flag]), ...Object.keys(option.also ?? {})];
  const typed = flags.map((flag) => `\`${flag}\``).join(", ");
  const units = option.unit === undefined ? "" : ` (${option.unit})`;
  const asks = relations.filter(({ option: name }) => name === option.name).map(({ says }) => says);
  const meaning = [option.meaning, ...asks].join("; ");
  return `| \`${option.name}\`${units} | ${typed} | ${describeStandard(option)} | ${meaning.replaceAll("|", "\\|")} |`;
}
