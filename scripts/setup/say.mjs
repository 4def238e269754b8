/**
 * Runs one step of set-up under one line on stderr: what it is, what it takes, how long it took.
 * Stdout stays free for the program that runs afterwards.
 * @template T
 * @param {string} title - what is being set up
 * @param {string} cost - what it takes: size, time
 * @param {() => T | Promise<T>} body
 * @returns {Promise<T>}
 */
export async function step(title, cost, body) {
  process.stderr.write(`troupe set-up: ${title} (${cost}) ...`);
  const startMs = Date.now();
  try {
    const result = await body();
    process.stderr.write(` ${((Date.now() - startMs) / 1000).toFixed(1)} s\n`);
    return result;
  } catch (error) {
    process.stderr.write(" failed\n");
    throw error;
  }
}

/**
 * Shows how far a {@link step} is, at the end of its line; nothing where stderr is no terminal.
 * @param {NodeJS.WriteStream} stream
 */
export function progress(stream) {
  /** @param {string} code */
  const control = (code) => stream.isTTY && stream.write(code);
  control("\x1b7");
  let shownMs = 0;
  /** @param {string} text */
  const text = (text) => control(`\x1b8\x1b[K ${text}`);
  return {
    text,
    /**
     * @param {number} done
     * @param {number} [total]
     */
    bytes: (done, total) => {
      if (Date.now() - shownMs < 200) return;
      shownMs = Date.now();
      text(`${(done / 1e6).toFixed(0)}${total === undefined ? "" : ` of ${(total / 1e6).toFixed(0)}`} MB`);
    },
    /** Leaves the line as it was. */
    end: () => control("\x1b8\x1b[K"),
  };
}

/**
 * Prints one line about something that set-up continues without.
 * @param {string} line
 */
export function note(line) {
  process.stderr.write(`troupe set-up: ${line}\n`);
}

/** A problem that set-up cannot fix by itself: shown as its message alone, without a stack. */
export class SetupError extends Error {
  /**
   * `[where] expected X, got Y (hint)`, and the details below it.
   * @param {{ where: string, expected: string, got: string, hint?: string }} says - the hint is what to do
   * @param {string} [details] - the last lines of a failed program's output
   */
  constructor({ where, expected, got, hint }, details = "") {
    const advice = hint === undefined ? "" : ` (${hint})`;
    super(`[${where}] expected ${expected}, got ${got}${advice}${details === "" ? "" : `\n${details}`}`);
    this.name = "SetupError";
  }
}

/**
 * Runs an entry script: a {@link SetupError}, or what the system refuses (a folder that is not ours), becomes its message and
 * exit code 1.
 * @param {() => Promise<void>} body
 */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    const { message, syscall } = /** @type {NodeJS.ErrnoException} */ (error);
    if (!(error instanceof SetupError) && syscall === undefined) throw error;
    process.stderr.write(`troupe set-up: ${message}\n`);
    process.exitCode = 1;
  }
}
