// Saves one step into a folder and says so: the process that fault tests kill, or take the disk from.

import { writeCheckpoint } from "../../src/library/checkpoint/saving/save-checkpoint.ts";
import { LocalFolder } from "../../src/library/checkpoint/storage/local-folder.ts";
import { contentOf } from "./content.ts";

const [directory, step, numElements] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: save-step.ts DIRECTORY STEP [ELEMENTS]");
await new LocalFolder(directory).sweep();
await writeCheckpoint(directory, contentOf(Number(step), { numElements: Number(numElements ?? 6) })).then(
  ({ path }) => console.log(JSON.stringify({ saved: path })),
  ({ code, message, fields }) => console.log(JSON.stringify({ failed: { code, message, fields } })),
);
