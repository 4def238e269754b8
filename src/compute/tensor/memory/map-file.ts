import { TroupeError } from "../../../errors/index.ts";
import { type DType, dtypeCode } from "../dtype.ts";
import { native } from "../native.ts";
import { adopt, type Tensor } from "../tensor.ts";

/**
 * Maps a file's bytes as a 1-D tensor, without reading them: pages are loaded when touched and dropped under memory pressure.
 * The tensor is read-only: in-place operators throw `TENSOR_READ_ONLY`. The file must not shrink while the tensor, or a view
 * of it, lives.
 * @param numel - number of elements from `offsetBytes` on
 * @throws {TroupeError} `FILE_UNREADABLE`, or `FILE_TOO_SHORT` if the file ends before the last element
 */
export function mapFile(
  path: string,
  dtype: DType,
  numel: number,
  options: { readonly offsetBytes?: number } = {},
): Tensor {
  const offsetBytes = options.offsetBytes ?? 0;
  if (!Number.isSafeInteger(numel) || !Number.isSafeInteger(offsetBytes)) {
    throw new TroupeError("TENSOR_ARGUMENT", {
      where: "mapFile",
      expected: "whole numbers",
      got: `numel ${numel}, offsetBytes ${offsetBytes}`,
    });
  }
  return adopt(native().mapFile(path, dtypeCode(dtype), numel, offsetBytes));
}
