// node scripts/bench.mjs NAME ARGS...: sets everything up, then runs bench/NAME.ts under the Node that the product needs.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { handOver } from "./setup/child.mjs";
import { productNode, root } from "./setup/layout.mjs";
import { main, SetupError } from "./setup/say.mjs";
import { setUp } from "./setup/set-up.mjs";

const folder = join(root, "bench");

await main(async () => {
  const [name = "", ...args] = process.argv.slice(2);
  const script = join(folder, `${name}.ts`);
  if (!/^[\w-]+$/.test(name) || !existsSync(script)) {
    const names = readdirSync(folder).filter((file) => file.endsWith(".ts"));
    throw new SetupError({
      where: "bench",
      expected: "the name of a benchmark",
      got: `"${name}"`,
      hint: `there are\n${names.map(described).join("\n")}`,
    });
  }
  await setUp();
  process.exitCode = await handOver(productNode(), [script, ...args]);
});

/**
 * A benchmark with the first sentence of its file.
 * @param {string} file
 */
function described(file) {
  const name = basename(file, ".ts");
  const comment =
    /^(?:\/\/.*\n)+|^\/\*\*[\s\S]*?\*\//.exec(readFileSync(join(folder, file), "utf8"))?.[0] ?? "";
  const text = comment
    .replaceAll(/^ *(?:\/\*\*|\*\/|\/\/|\*(?!\/))/gm, "")
    .replaceAll(/\s+/g, " ")
    .replace(/^ *npm run bench -- [^:]*: /, "");
  const [sentence = ""] = /^.+?(?=[.?;](?: |$)|: `|$)/.exec(text.trim()) ?? [];
  return `  ${name.padEnd(14)} ${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`;
}
