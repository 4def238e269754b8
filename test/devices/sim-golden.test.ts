// The golden states of transformers on the pretend device: the same tests, of a thread that computes there.
import { enterDevice } from "../../src/compute/tensor/index.ts";

enterDevice("sim:0");
await import("../golden/alone.test.ts");
