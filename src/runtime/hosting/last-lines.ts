import type { Readable, Writable } from "node:stream";

const mostLines = 20;
const mostLineLength = 2_000;

/** Copies the output of a process line by line, with its name before each, and keeps the last lines. */
export class LastLines {
  readonly #prefix: string;
  readonly #lines: string[] = [];

  constructor(name: string) {
    this.#prefix = `[${name}] `;
  }

  /** Copies everything from `source` to `sink`; a line longer than 2,000 characters is split. */
  follow(source: Readable, sink: Writable): void {
    let rest = "";
    source.setEncoding("utf8");
    source.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > mostLineLength) lines.push(rest.slice(0, mostLineLength));
      rest = rest.slice(rest.length > mostLineLength ? mostLineLength : 0);
      this.#pass(lines, sink);
    });
    source.on("end", () => this.#pass(rest === "" ? [] : [rest], sink));
  }

  /** The last lines, oldest first. */
  get text(): string {
    return this.#lines.join("\n");
  }

  #pass(lines: readonly string[], sink: Writable): void {
    for (const line of lines) {
      sink.write(`${this.#prefix}${line}\n`);
      this.#lines.push(line);
      if (this.#lines.length > mostLines) this.#lines.shift();
    }
  }
}
