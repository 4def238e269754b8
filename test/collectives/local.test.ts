import { describeCollectives } from "./contract.ts";

describeCollectives({ backend: "local", placement: "thread" });
