import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { chooseAddon } from "../../scripts/setup/prebuilt.mjs";
import { placesOf, wheelOfThisMachine } from "../../scripts/setup/wheels.mjs";

const hasGpu = existsSync("/proc/driver/nvidia/version");

describe("the choice of an addon", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "troupe-prebuilt-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function placeLibtorch(version: string, cudaVersion?: string): string {
    const root = join(folder, version);
    const config = join(root, "share", "cmake", "Torch");
    mkdirSync(config, { recursive: true });
    mkdirSync(join(root, "lib"));
    writeFileSync(join(config, "TorchConfig.cmake"), "");
    writeFileSync(join(config, "TorchConfigVersion.cmake"), `set(PACKAGE_VERSION "${version}")\n`);
    writeFileSync(join(root, "lib", "libtorch.so"), "");
    if (cudaVersion === undefined) return root;
    writeFileSync(join(root, "lib", "libtorch_cuda.so"), "");
    writeFileSync(join(root, "version.py"), `cuda: Optional[str] = '${cudaVersion}'\n`);
    return root;
  }

  function prebuilt(version: string, cudaVersion?: string) {
    const torch = { version, configFolder: "", source: "", cuda: cudaVersion !== undefined };
    const info = {
      sourceHash: "",
      torch: cudaVersion === undefined ? torch : { ...torch, cudaVersion },
      glooHeaders: true,
      addon: {},
      compiler: "",
    };
    return { name: `of ${version} ${cudaVersion ?? "CPU"}`, folder: "", info };
  }

  const choose = (env: Record<string, string>, ...fitting: ReturnType<typeof prebuilt>[]) =>
    chooseAddon({ fitting, others: [] }, { PATH: "/nowhere", ...env });

  it("takes the prebuilt one of the minor version that is found, whatever its last number", () => {
    const libtorch = placeLibtorch("2.97.4");
    expect(
      choose({ LIBTORCH: libtorch }, prebuilt("2.96.0"), prebuilt("2.97.0"), prebuilt("2.98.0")),
    ).toMatchObject({
      way: "prebuilt",
      prebuilt: { name: "of 2.97.0 CPU" },
      libtorch: { version: "2.97.4" },
      why: "torch 2.97.4 of LIBTORCH is the first that an addon fits",
    });
  });

  it("compiles against what TROUPE_LIBTORCH names where no prebuilt one fits, and says why", () => {
    const libtorch = placeLibtorch("2.11.0");
    expect(choose({ TROUPE_LIBTORCH: libtorch }, prebuilt("2.97.0"))).toEqual({
      way: "compile",
      why: "no prebuilt addon for torch 2.11.0 of TROUPE_LIBTORCH",
    });
    expect(choose({ TROUPE_LIBTORCH: libtorch })).toEqual({
      way: "compile",
      why: "no prebuilt addon is installed",
    });
  });

  it("takes CUDA's for a libtorch with the same CUDA where a GPU is, else the CPU's", () => {
    const libtorch = placeLibtorch("2.97.0", "13.1");
    const of = (...fitting: ReturnType<typeof prebuilt>[]) =>
      choose({ TROUPE_LIBTORCH: libtorch }, ...fitting).prebuilt?.name;
    expect(of(prebuilt("2.97.0", "13.0"))).toBe("of 2.97.0 13.0");
    for (const both of [
      ["13.0", undefined],
      [undefined, "13.0"],
    ])
      expect(of(...both.map((cuda) => prebuilt("2.97.0", cuda)))).toBe(
        `of 2.97.0 ${hasGpu ? "13.0" : "CPU"}`,
      );
    expect(of(prebuilt("2.97.0", "12.8"))).toBeUndefined();
    expect(of(prebuilt("2.97.0"))).toBe(hasGpu ? undefined : "of 2.97.0 CPU");
  });
});

describe("the places of a wheel", () => {
  const wheel = { version: "2.97.0", file: "torch-2.97.0+cpu.whl", sha256: "" };

  it("are the one that TROUPE_WHEELS names alone, as a folder or an address", () => {
    expect(placesOf(wheel, { TROUPE_WHEELS: "/some where" })).toEqual(["/some where/torch-2.97.0+cpu.whl"]);
    expect(placesOf(wheel, { TROUPE_WHEELS: "file:///some%20where" })).toEqual([
      "/some where/torch-2.97.0+cpu.whl",
    ]);
    expect(placesOf(wheel, { TROUPE_WHEELS: "https://mirror.test/cpu/", PIP_FIND_LINKS: "/x" })).toEqual([
      "https://mirror.test/cpu/torch-2.97.0%2Bcpu.whl",
    ]);
  });

  it("are else the folders of pip that have it, then PyTorch's own host", () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-wheels-"));
    writeFileSync(join(folder, wheel.file), "");
    expect(placesOf(wheel, { PIP_FIND_LINKS: `/nowhere https://links.test file://${folder}` })).toEqual([
      join(folder, wheel.file),
      "https://download.pytorch.org/whl/cpu/torch-2.97.0%2Bcpu.whl",
    ]);
    mkdirSync(join(folder, "pip"));
    writeFileSync(
      join(folder, "pip", "pip.conf"),
      `[global]\ntimeout = 3\nfind-links =\n  /nowhere\n  ${folder}\nretries = 1\n`,
    );
    expect(placesOf(wheel, { XDG_CONFIG_HOME: folder })[0]).toBe(join(folder, wheel.file));
    rmSync(folder, { recursive: true });
  });

  it.skipIf(process.platform !== "linux")("are those of a file of known content", () => {
    expect(wheelOfThisMachine()?.sha256).toMatch(/^[0-9a-f]{64}$/);
  });
});
