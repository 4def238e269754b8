// The other host: it lets the head start processes here, until the head releases it.
import { totalmem } from "node:os";
import { HostAgent } from "troupe/actors";

const agent = await HostAgent.join({
  invitation: JSON.parse(process.env.INVITATION ?? ""),
  token: undefined,
  network: { host: process.env.OWN_ADDRESS ?? "127.0.0.1" },
  number: 0,
  place: 1,
  name: "branch",
  means: { numCores: 1, memoryBytes: totalmem(), devices: [] },
  about: "clerks 1",
  isCompanion: false,
});
const failure = await agent.over;
if (failure !== undefined) console.error(failure.message);
