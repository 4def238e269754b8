/** `troupe/export`: models for inference by other programs. */

import "../errors/node-version.ts";

export {
  type Exported,
  type ExportInput,
  type ExportOptions,
  exportModel,
  type ForwardSpec,
  type OnnxOptions,
  type ReadParameter,
  type WriteOptions,
  writeOnnx,
} from "../library/export/index.ts";
