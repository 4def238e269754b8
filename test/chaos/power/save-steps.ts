// Saves steps one after another, each time saying so: the program whose power is cut. `save-steps.ts FOLDER KEEP STEP...`.

import { writeCheckpoint } from "../../../src/library/checkpoint/saving/save-checkpoint.ts";
import { LocalFolder } from "../../../src/library/checkpoint/storage/local-folder.ts";
import { contentOf } from "../../checkpoint/content.ts";

const [folder = "", keep, ...steps] = process.argv.slice(2);
await new LocalFolder(folder).sweep();
for (const step of steps) {
  const options = keep === "all" ? {} : { keep: { last: Number(keep) } };
  await writeCheckpoint(folder, contentOf(Number(step), { numElements: 40 }), options);
  process.stdout.write(`saved ${step}\n`);
}
