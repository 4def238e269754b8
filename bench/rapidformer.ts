// Rapidformer's tables beside the planner's predictions and PyTorch, and what strategies learn.
//
//   npm run bench -- rapidformer [--dimension NAME...] [--peer PYTHON] [--out FOLDER]   (--help names every flag)

import { measureTables } from "./rapidformer/command.ts";

await measureTables(process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 2;
});
