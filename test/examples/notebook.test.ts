import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

interface Cell {
  readonly cell_type: string;
  readonly execution_count?: number | null;
  readonly outputs?: readonly unknown[];
}

const folder = fileURLToPath(new URL("../../examples/notebook", import.meta.url));

/** Runs the cells in order, as Jupyter does, then a loop over events that is left at the third step. */
const runCells = `
import json
names = {}
with open("training.ipynb") as notebook:
    cells = json.load(notebook)["cells"]
for cell in cells:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), names)
for event in names["events"](names["job"], "--steps", "100000", "--checkpoint", str(names["folder"] / "left")):
    if event["kind"] == "step.finished" and event["step"] == 3:
        break
print("left")
`;

/** A matplotlib and an IPython of which each drawn line is printed. */
const drawing = `
import sys, types
from unittest.mock import MagicMock
axes = MagicMock()
line = MagicMock()
axes.plot.return_value = (line,)
line.set_data = lambda steps, losses: print(f"drawn {len(steps)} {losses[-1]:.3f}")
pyplot = MagicMock()
pyplot.subplots.return_value = (MagicMock(), axes)
sys.modules.update({"matplotlib": MagicMock(pyplot=pyplot), "matplotlib.pyplot": pyplot, "IPython": MagicMock(), "IPython.display": MagicMock()})
`;

/** As on a machine without either. */
const plain = `
import sys
sys.modules.update({"matplotlib": None, "IPython": None})
`;

describe("examples/notebook", () => {
  const temporary = mkdtempSync(join(tmpdir(), "troupe-test-"));
  afterAll(() => rmSync(temporary, { recursive: true, force: true }));

  it("has cells that were not run", () => {
    const notebook = JSON.parse(readFileSync(join(folder, "training.ipynb"), "utf8"));
    const cells: readonly Cell[] = notebook.cells;
    expect(notebook.nbformat).toBe(4);
    const code = cells.filter((cell) => cell.cell_type === "code");
    expect(code.map(({ execution_count, outputs }) => [execution_count, outputs])).toEqual(
      code.map(() => [null, []]),
    );
  });

  it.each([
    { where: "in lines of text", before: plain, shown: /^step +\d+ {2}loss (\d+\.\d{3})/gm },
    { where: "in a picture", before: drawing, shown: /^drawn \d+ (\d+\.\d{3})$/gm },
  ])(
    "trains, reads a record and trains over HTTP, and shows the losses $where",
    async ({ before, shown }) => {
      const { stdout } = await promisify(execFile)("python3", ["-B", "-c", `${before}${runCells}`], {
        cwd: folder,
        env: { ...process.env, TMPDIR: temporary },
      });
      const losses = [...stdout.matchAll(shown)].map(([, loss]) => Number(loss));
      const [live, recorded, served] = [losses.slice(0, 60), losses.slice(60, 120), losses.slice(120)];
      // A byte tells 5.5 nats to a model that knows nothing.
      expect(live[0]).toBeGreaterThan(5);
      expect(live.at(-1)).toBeLessThan(3.7);
      expect(recorded).toEqual(live);
      expect(served).toHaveLength(16);
      expect(served.at(-1)).toBeLessThan(0.5);
      expect(stdout).toMatch(/^The cat sat on the mat\. \nleft\n$/m);
    },
  );
});
