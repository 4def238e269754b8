import { readFileSync } from "node:fs";

const root = new URL("../", import.meta.url);

/** A comment that names a file of the repository, or a region of one, and the code below it. */
const cut = /<!-- code: ([^\s#]+)(?:#([\w-]+))? -->\n\n```(\w+)\n([\s\S]*?)```/g;

/**
 * The text of a page whose code is cut from the files that it names: `<!-- code: examples/hello/job.ts -->` above a block is a
 * file, `<!-- code: test/fixtures/docs/loops.ts#steps -->` the lines between `// #region steps` and `// #endregion` in it, which
 * begin with `#` in Python.
 * @throws {Error} for a file or a region that does not exist
 */
export function withCode(text: string): string {
  return text.replaceAll(cut, (_, path: string, region: string | undefined, language: string) => {
    const name = region === undefined ? path : `${path}#${region}`;
    const code = readFileSync(new URL(path, root), "utf8");
    return `<!-- code: ${name} -->\n\n\`\`\`${language}\n${region === undefined ? code : regionOf(code, region, name)}\`\`\``;
  });
}

function regionOf(code: string, region: string, name: string): string {
  const lines = code.split("\n");
  const marks = lines.map((line) => /^\s*(?:\/\/|#) (#(?:end)?region.*)$/.exec(line)?.[1]);
  const begin = marks.indexOf(`#region ${region}`);
  const end = marks.indexOf("#endregion", begin + 1);
  if (begin === -1 || end === -1) throw new Error(`no region ${name}`);
  const inner = lines.slice(begin + 1, end);
  const indent = Math.min(...inner.filter((line) => line !== "").map((line) => line.search(/\S/)));
  return `${inner.map((line) => line.slice(indent)).join("\n")}\n`;
}
