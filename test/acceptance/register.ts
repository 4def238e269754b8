import { existsSync, readFileSync } from "node:fs";

const root = new URL("../../", import.meta.url);

/** A test as a page names it. */
export interface NamedTest {
  readonly file: string;
  readonly title: string;
}

/** A page of docs/reference that says by which tests something holds: each title belongs to the file before it. */
export class Register {
  readonly text: string;
  /** The lines of its tables that name a file of tests. */
  readonly rows: readonly string[];
  readonly tests: readonly NamedTest[];

  /** @param page - its path in the repository */
  constructor(page: string) {
    this.text = readFileSync(new URL(page, root), "utf8");
    this.rows = this.text.split("\n").filter((line) => line.startsWith("| ") && line.includes("`test/"));
    const prose = this.text.split("\n\n").filter((part) => !/^(\||#|```)/.test(part));
    this.tests = [...this.rows, ...prose].flatMap(testsIn);
  }

  /** The tests that are not there, so that one that is renamed must be renamed in the page. */
  get missing(): readonly NamedTest[] {
    return this.tests.filter(({ file, title }) => !isThere(file) || !read(file).includes(`"${title}"`));
  }

  /** What it names after a command: of `npm run bench -- events` the word `events`, with "run bench". */
  namesAfter(command: string): readonly string[] {
    const pattern = new RegExp(`\`npm ${command} -- ([\\w./-]+)`, "g");
    return [...this.text.matchAll(pattern)].map(([, name = ""]) => name);
  }

  /** The numbers that the lines of a section begin with, in order. */
  numbersUnder(heading: string): readonly number[] {
    const [, section = ""] = this.text.split(`## ${heading}\n`);
    const lines = (section.split("\n## ")[0] ?? "").split("\n");
    return lines.flatMap((line) => /^\| (\d+) +\|/.exec(line)?.[1] ?? []).map(Number);
  }
}

/** The files and titles of one row or paragraph. */
function testsIn(text: string): NamedTest[] {
  let file = "";
  return [...text.matchAll(/`(test\/[\w./-]+\.ts)`|"([^"]+)"/g)].flatMap(([, path, title]) => {
    file = path ?? file;
    return title === undefined ? [] : [{ file, title }];
  });
}

/** Whether a path of the repository is there. */
export function isThere(path: string): boolean {
  return existsSync(new URL(path, root));
}

/** A file of the repository. */
export function read(path: string): string {
  return readFileSync(new URL(path, root), "utf8");
}
