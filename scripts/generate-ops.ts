// Writes src/compute/tensor/*.generated.ts from scripts/operators/operators.txt and the schemas of the libtorch that the built
// addon is linked with. For developers of Troupe, after an operator was added to the list or to native/kernels:
//
//   npm run generate:ops
import { writeFileSync } from "node:fs";
import { native } from "../src/compute/tensor/native.ts";
import { readArguments } from "./arguments.mjs";
import { generateFiles } from "./operators/emit-files.ts";

readArguments("usage: npm run generate:ops\n\nWrites src/compute/tensor/*.generated.ts", {});
const lines = [...native().schemas("aten"), ...native().schemas("troupe")];
const { texts, numAten, numTroupe } = generateFiles(lines, native().nativeInfo().torch);
for (const [name, text] of texts)
  writeFileSync(new URL(`../src/compute/tensor/${name}`, import.meta.url), text);
console.log(`${numAten} operators of libtorch, ${numTroupe} of Troupe`);
