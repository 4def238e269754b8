import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { deviceCount } from "../../src/compute/tensor/index.ts";

const source = fileURLToPath(new URL("../fixtures/devices/pretend-nccl.cc", import.meta.url));
const native = fileURLToPath(new URL("../../native", import.meta.url));

/**
 * Compiles a pretend NCCL and has this process, and those that it forks, find it: to be called before the first group is
 * opened. `using` removes it.
 * @param numDevices - pretend devices of each process from now on
 */
export function pretendNccl(numDevices: number): Disposable {
  const folder = mkdtempSync(join(tmpdir(), "troupe-pretend-nccl-"));
  const library = join(folder, "libnccl.so");
  execFileSync(process.env.CXX ?? "c++", [
    ...["-std=c++17", "-shared", "-fPIC", "-O1", "-I", native],
    ...["-o", library, source],
  ]);
  process.env.TROUPE_NCCL = library;
  process.env.TROUPE_SIM_DEVICES = String(numDevices);
  if (deviceCount("sim") !== numDevices) throw new Error("the pretend device was opened before");
  return {
    [Symbol.dispose]() {
      delete process.env.TROUPE_NCCL;
      delete process.env.TROUPE_SIM_DEVICES;
      rmSync(folder, { recursive: true });
    },
  };
}
