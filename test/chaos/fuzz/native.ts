import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The result of a run of libFuzzer. */
export interface NativeReport {
  readonly numInputs: number;
  /** Edges of the program's flow that were reached. */
  readonly numCovered: number;
  /** Its report on the input that broke the program; undefined if none did. */
  readonly crash: string | undefined;
}

const root = fileURLToPath(new URL("../../..", import.meta.url));
const compilers = ["clang++-14", "clang++"];

/** A compiler that brings libFuzzer; undefined where there is none. */
export function fuzzingCompiler(): string | undefined {
  const source = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }';
  return compilers.find((compiler) => {
    const args = ["-x", "c++", "-fsanitize=fuzzer,address", "-o", "/dev/null", "-"];
    return spawnSync(compiler, args, { input: source, stdio: ["pipe", "ignore", "ignore"] }).status === 0;
  });
}

/**
 * Fuzzes how native code reads summed files, with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer.
 * @throws {Error} where it does not compile
 */
export function fuzzNative(compiler: string, folder: string, seed: number, durationMs: number): NativeReport {
  const program = join(folder, "summed_file_fuzz");
  const corpus = join(folder, "corpus");
  mkdirSync(corpus, { recursive: true });
  const sources = [
    "test/chaos/fuzz/native/summed_file_fuzz.cc",
    "native/io/summed_reader.cc",
    "native/io/crc32c.cc",
  ];
  const flags = [
    "-std=c++20",
    "-O1",
    "-g",
    "-fsanitize=fuzzer,address,undefined",
    "-fno-sanitize-recover=all",
    "-Inative",
  ];
  const built = spawnSync(compiler, [...flags, "-o", program, ...sources], { cwd: root, encoding: "utf8" });
  if (built.status !== 0) throw new Error(built.stderr);
  const limits = [
    `-max_total_time=${Math.ceil(durationMs / 1000)}`,
    `-seed=${seed}`,
    "-max_len=1024",
    "-print_final_stats=1",
  ];
  const ran = spawnSync(program, [...limits, `-artifact_prefix=${folder}/`, corpus], {
    encoding: "utf8",
    cwd: folder,
  });
  const numbers = (pattern: RegExp): number =>
    Number(ran.stderr.match(pattern)?.at(-1)?.replace(/\D/g, "") ?? 0);
  return {
    numInputs: numbers(/stat::number_of_executed_units:\s+\d+/g),
    numCovered: numbers(/ cov: \d+/g),
    crash: ran.status === 0 ? undefined : ran.stderr.slice(-2_000),
  };
}
