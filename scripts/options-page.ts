import { describeStandard, groups, type Option, optionsOf } from "../src/job/options/option.ts";
import { relations } from "../src/job/options/relations.ts";
import { commandSchema } from "../src/job/options/schema.ts";

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

Every option of a run is defined once, in \`src/job/options/schema.ts\`. This page, \`troupe run --help\` and the TypeScript types are
generated from it (\`npm run docs:write\`).

| set in | how |
| --- | --- |
| a script | \`Runtime.spawn({ ranks: 2, checkpoint: { dir: "runs/gpt", everySteps: 200 } })\` |
| a command line | \`troupe run JOB --ranks 2 --checkpoint runs/gpt --checkpoint-every 200\` |
| the environment | \`TROUPE_RANKS=2 TROUPE_CHECKPOINT_EVERY_STEPS=200 troupe run JOB\`: an option's name in capitals, its parts joined by \`_\` |
| a file | \`troupe run JOB --config run.toml\`, or \`TROUPE_CONFIG=run.toml\`; JSON if its name ends in \`.json\` |

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

When several of them set an option, flags win over the environment, the environment over the file, the file over the job and its
checkpoint, and these over the default. \`--print-config\` prints every option, its value and where it was set, in the form of such a file, and
trains nothing; a script has the same text in \`runtime.options\`. An unknown name is refused with the nearest known one. No option is
ever ignored: it is obeyed or refused. Only the command line has the options of \`output\` and \`set\`; a script adds sinks, and passes the
job's settings to \`runtime.run\`.

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
