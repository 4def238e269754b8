import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lookAt, lookForLibtorch } from "../../scripts/setup/libtorch-find.mjs";
import { pythons } from "../../scripts/setup/pythons.mjs";

describe("looking for libtorch", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "troupe-find-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The files of a wheel's libtorch that set-up looks at. */
  function placeLibtorch(
    at: string,
    version: string,
    libraries: readonly string[] = ["libtorch.so"],
  ): string {
    const root = join(folder, at);
    const config = join(root, "share", "cmake", "Torch");
    mkdirSync(config, { recursive: true });
    mkdirSync(join(root, "lib"));
    writeFileSync(join(config, "TorchConfig.cmake"), "");
    writeFileSync(join(config, "TorchConfigVersion.cmake"), `set(PACKAGE_VERSION "${version}")\n`);
    for (const library of libraries) writeFileSync(join(root, "lib", library), "");
    return root;
  }

  it("takes the folder named by TROUPE_LIBTORCH, with its version", () => {
    const root = placeLibtorch("torch", "2.13.0");
    const looks = [...lookForLibtorch({ TROUPE_LIBTORCH: root })];
    const configFolder = join(root, "share", "cmake", "Torch");
    const libraries = join(root, "lib");
    const facts = { version: "2.13.0", cuda: false, headers: false };
    const libtorch = { source: "TROUPE_LIBTORCH", configFolder, libraries, ...facts };
    expect(looks).toEqual([{ source: "TROUPE_LIBTORCH", path: root, libtorch }]);
  });

  it("looks nowhere else when TROUPE_LIBTORCH names a folder without libtorch", () => {
    const other = placeLibtorch("other", "2.13.0");
    const looks = [...lookForLibtorch({ TROUPE_LIBTORCH: folder, LIBTORCH: other })];
    expect(looks).toEqual([
      { source: "TROUPE_LIBTORCH", path: folder, refused: "no TorchConfig.cmake there" },
    ]);
  });

  it("asks LIBTORCH, Torch_DIR and CMAKE_PREFIX_PATH in this order, before everything else", () => {
    const [first, second, third] = ["a", "b", "c"].map((name) => placeLibtorch(name, "2.11.0"));
    const env = {
      LIBTORCH: first,
      Torch_DIR: second,
      CMAKE_PREFIX_PATH: `/nowhere:${third}`,
      PATH: "/nowhere",
    };
    const looks = [...lookForLibtorch(env).take(4)];
    expect(looks.map(({ source, libtorch }) => [source, libtorch?.version])).toEqual([
      ["LIBTORCH", "2.11.0"],
      ["Torch_DIR", "2.11.0"],
      ["CMAKE_PREFIX_PATH", undefined],
      ["CMAKE_PREFIX_PATH", "2.11.0"],
    ]);
  });

  it("finds it in a Python's site-packages", () => {
    const root = placeLibtorch("site-packages/torch", "2.7.1");
    expect(lookAt("python3", join(root, "..")).libtorch?.version).toBe("2.7.1");
  });

  it("finds those of Pythons by looking at files: an environment, one on the PATH, pyenv's, the user's", () => {
    const at = (home: string) => join(home, "lib", "python3.12", "site-packages", "torch");
    for (const home of ["venv", "other-venv", "pyenv/versions/3.12.1", "user"])
      placeLibtorch(at(home), "2.13.0");
    const program = (path: string) => {
      mkdirSync(join(folder, path, ".."), { recursive: true });
      writeFileSync(join(folder, path), "");
    };
    program("other-venv/bin/python3");
    writeFileSync(join(folder, "other-venv", "pyvenv.cfg"), "");
    program("pyenv/shims/python3");
    writeFileSync(join(folder, "pyenv", "version"), "3.12.1\n");
    program("bare/bin/python3");
    const env = {
      VIRTUAL_ENV: join(folder, "venv"),
      PATH: ["other-venv/bin", "pyenv/shims", "bare/bin"].map((path) => join(folder, path)).join(delimiter),
      PYTHONUSERBASE: join(folder, "user"),
    };
    const found = pythons(env).slice(0, 5);
    expect(found.map(({ path }) => path)).toEqual([
      join(folder, at("venv")),
      join(folder, at("other-venv")),
      join(folder, at("pyenv/versions/3.12.1")),
      undefined,
      join(folder, at("user")),
    ]);
    expect(lookAt("VIRTUAL_ENV", found[0]?.path ?? "").libtorch?.version).toBe("2.13.0");
  });

  it("knows what can be built against, and CUDA's version", () => {
    const root = placeLibtorch("torch", "2.14.1", ["libtorch.so", "libtorch_cuda.so"]);
    mkdirSync(join(root, "include", "ATen"), { recursive: true });
    writeFileSync(join(root, "version.py"), "__version__ = '2.14.1+cu130'\ncuda: Optional[str] = '13.0'\n");
    expect(lookAt("LIBTORCH", root).libtorch).toMatchObject({
      headers: true,
      cuda: true,
      cudaVersion: "13.0",
    });
  });

  it("refuses what is older than 1.13", () => {
    expect(lookAt("LIBTORCH", placeLibtorch("old", "1.9.0")).refused).toBe(
      "torch 1.9.0 is older than 1.13.0",
    );
    expect(lookAt("LIBTORCH", placeLibtorch("debian", "1.13.1")).refused).toBeUndefined();
  });

  it("refuses cmake files without the library", () => {
    const refused = lookAt("LIBTORCH", placeLibtorch("torn", "2.13.0", [])).refused;
    expect(refused).toBe("its libtorch library is missing");
  });

  it("tells CUDA's build from the CPU's", () => {
    const root = placeLibtorch("cuda", "2.13.0", ["libtorch.so", "libtorch_cuda.so"]);
    expect(lookAt("LIBTORCH", root).libtorch?.cuda).toBe(true);
  });
});
