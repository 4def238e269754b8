// Tests of the code for CUDA that need no GPU: nvcc compiles it, nvrtc the texts of programs, and an addon with it links and loads.
// That its kernels give the CPU's numbers is shown by npm run test:cuda-on-host.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";
import { build, configure } from "../../scripts/setup/build.mjs";
import { readBuildInfo } from "../../scripts/setup/build-info.mjs";
import { lookAt, lookForLibtorch } from "../../scripts/setup/libtorch-find.mjs";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const kernels = join(root, "native", "kernels", "cuda");
const folder = mkdtempSync(join(tmpdir(), "troupe-cuda-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const nvcc = [
  ...(process.env.PATH ?? "").split(delimiter),
  join(process.env.CUDA_HOME ?? "/usr/local/cuda", "bin"),
]
  .map((place) => join(place, "nvcc"))
  .find((path) => existsSync(path));

/** A libtorch with CUDA: the one that `TROUPE_CUDA_LIBTORCH` names, else what set-up would find beside the one it uses. */
function libtorchOfCuda() {
  const named = process.env.TROUPE_CUDA_LIBTORCH;
  const { TROUPE_LIBTORCH: _, ...env } = process.env;
  for (const look of named === undefined ? lookForLibtorch(env) : [lookAt("TROUPE_CUDA_LIBTORCH", named)])
    if (look.libtorch?.cuda === true) return look.libtorch;
  return undefined;
}

const ofCuda = libtorchOfCuda();
const libtorch = nvcc === undefined ? undefined : ofCuda;
// A loud message, so that a skipped test is not taken for a passed one.
if (nvcc === undefined)
  process.stderr.write("test/setup/cuda: SKIPPED, no kernel was compiled: no nvcc is here\n");
if (libtorch === undefined)
  process.stderr.write(
    "test/setup/cuda: SKIPPED, no addon with CUDA was built: no libtorch with CUDA is here\n",
  );

const sources = readdirSync(kernels).filter((name) => name.endsWith(".cu"));
const flags = ["-std=c++17", "-O3", "--fmad=false", "-Xcompiler=-fPIC,-Wall", "-I", join(root, "native")];
const generations = [80, 90, 100].map((number) => `-gencode=arch=compute_${number},code=sm_${number}`);

it.skipIf(nvcc === undefined).each(sources)("nvcc compiles %s for sm_80, sm_90 and sm_100", async (name) => {
  const output = ["-o", join(folder, `${name}.o`)];
  const { stderr } = await run(nvcc as string, [
    ...flags,
    ...generations,
    "-c",
    join(kernels, name),
    ...output,
  ]);
  expect(stderr).toBe("");
});

/** CUDA's compiler at run time: the library that `TROUPE_NVRTC` names, else one beside the libtorch with CUDA. */
function findNvrtc(): string | undefined {
  if (process.env.TROUPE_NVRTC !== undefined) return process.env.TROUPE_NVRTC;
  if (ofCuda === undefined) return undefined;
  const lib = ofCuda.libraries;
  const packages = join(lib, "..", "..", "nvidia");
  return [lib, join(packages, "cu13", "lib"), join(packages, "cuda_nvrtc", "lib")]
    .flatMap((place) => (existsSync(place) ? readdirSync(place).map((name) => join(place, name)) : []))
    .find((path) => /\/libnvrtc[-.\w]*\.so[.\d]*$/.test(path) && !/builtins|\.alt/.test(path));
}

const nvrtc = findNvrtc();
if (nvrtc === undefined)
  process.stderr.write("test/setup/cuda: SKIPPED, no text of a kernel was compiled: no libnvrtc is here\n");

it.skipIf(nvrtc === undefined)(
  "nvrtc compiles the texts of chains for sm_80, sm_90 and sm_100, and keeps them",
  async () => {
    const program = join(folder, "compile-chains");
    const source = join(root, "test", "fixtures", "programs", "compile-chains.cc");
    await run(process.env.CXX ?? "c++", [
      "-std=c++17",
      "-I",
      join(root, "native"),
      "-o",
      program,
      source,
      "-ldl",
    ]);
    const env = { ...process.env, TROUPE_NVRTC: nvrtc, TROUPE_CACHE: join(folder, "cache") };
    const { stdout } = await run(program, ["80", "90", "100"], { env });
    const lines = ["80", "90", "100"].flatMap((capability) =>
      Array(8).fill(`${capability} machine code kept`),
    );
    expect(stdout.trim().split("\n")).toEqual(lines);
    const kernels = join(folder, "cache", "kernels");
    expect(readdirSync(kernels)).toHaveLength(lines.length);
    // A file that was cut is compiled again.
    for (const name of readdirSync(kernels)) truncateSync(join(kernels, name), 1000);
    expect((await run(program, ["80", "90", "100"], { env })).stdout).toBe(stdout);
    await expect(
      run(program, ["80"], { env: { ...env, TROUPE_NVRTC: join(folder, "none") } }),
    ).rejects.toThrow(/expected CUDA's compiler libnvrtc, got no such library/);
  },
);

it.skipIf(libtorch === undefined)(
  "an addon with CUDA compiles, links and loads, with a GPU or without",
  async () => {
    const torch = libtorch as NonNullable<typeof libtorch>;
    expect(await configure(torch, folder)).toBeUndefined();
    await build(torch, folder);
    expect(readBuildInfo(folder)?.addon).toMatchObject({ cuda: true });
  },
);
