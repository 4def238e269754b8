import { ActorSystem } from "../../../src/runtime/index.ts";
import type { EchoProtocol } from "../actors/echo.ts";

// A program that does not supervise its actor: what the actor throws must end it.
const system = new ActorSystem({ name: "program" });
const echo = await system.spawn<EchoProtocol>({
  name: "echo",
  module: new URL("../actors/echo.ts", import.meta.url),
});
echo.tell("fail", "step 12 went wrong");
