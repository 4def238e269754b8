import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";

/**
 * @typedef {object} Outcome
 * @property {boolean} ok - it started and ended with code 0
 * @property {string} stdout
 * @property {string} tail - the last lines of stdout and stderr together, or why it did not start
 */

/**
 * Runs a program to its end and keeps what it printed.
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, log?: string, append?: boolean, stderr?: "pipe" | "inherit" }} [options] - `log`: a file
 *   for the complete output; `stderr`: "inherit" shows it instead
 * @returns {Promise<Outcome>}
 */
export function capture(
  program,
  args,
  { cwd, env = process.env, log, append = false, stderr = "pipe" } = {},
) {
  if (log !== undefined && !append) writeFileSync(log, "");
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      ...(cwd === undefined ? {} : { cwd }),
      env,
      stdio: ["ignore", "pipe", stderr],
    });
    let stdout = "";
    let all = "";
    /** @param {string} text */
    const keep = (text) => {
      all += text;
      if (log !== undefined) appendFileSync(log, text);
    };
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      stdout += text;
      keep(text);
    });
    child.stderr?.setEncoding("utf8").on("data", keep);
    child.on("error", (error) => resolve({ ok: false, stdout, tail: `${program}: ${error.message}` }));
    child.on("close", (code, signal) => {
      const ending = signal === null ? "" : `\n${program} ended by ${signal}`;
      resolve({ ok: code === 0, stdout, tail: lastLines(all) + ending });
    });
  });
}

/**
 * Asks a program a quick question, waiting at most ten seconds.
 * @param {string} program
 * @param {string[]} args
 * @returns {Outcome}
 */
export function ask(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8", timeout: 10_000 });
  const tail = error === undefined ? lastLines(`${stdout}${stderr}`) : error.message;
  return { ok: status === 0, stdout: stdout ?? "", tail };
}

/**
 * Hands the terminal to a program: stdin, stdout, stderr, signals and the exit code are its own.
 * @param {string} program
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<number>} exit code; 128 + the signal's number where a signal ended it
 */
export function handOver(program, args, env = process.env) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: "inherit" });
    /** @type {NodeJS.Signals[]} */
    const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];
    /** @param {NodeJS.Signals} signal */
    const pass = (signal) => {
      // Ctrl-C reaches every process of a terminal's group by itself; passing it on would count as a second one.
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      child.kill(signal);
    };
    for (const signal of signals) process.on(signal, pass);
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      for (const name of signals) process.off(name, pass);
      // A crash writes nothing by itself, and looks like an end.
      if (signal !== null) process.stderr.write(`${program} was ended by ${signal}\n`);
      resolve(code ?? 128 + signalNumber(signal));
    });
  });
}

/** @param {NodeJS.Signals | null} signal */
function signalNumber(signal) {
  return signal === null ? 0 : (constants.signals[signal] ?? 0);
}

/** @param {string} text */
function lastLines(text) {
  return text.trimEnd().split("\n").slice(-30).join("\n");
}
