import { describe } from "vitest";
import { nativeInfo } from "../../src/compute/tensor/index.ts";
import { describeCollectives } from "./contract.ts";

describe.skipIf(!nativeInfo().gloo)("where the addon has Gloo", () => {
  describeCollectives({ backend: "gloo", placement: "thread" });
  describeCollectives({ backend: "gloo", placement: "process" });
});
