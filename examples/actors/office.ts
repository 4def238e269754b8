// The head of two hosts: it has a clerk on each. The other host runs `branch.ts` with this one's invitation.
import { ActorSystem, preloads } from "troupe/actors";
import type { Clerk } from "./clerk.ts";

await using actors = new ActorSystem({
  name: "office",
  preload: preloads.severalHosts,
  network: { host: process.env.OWN_ADDRESS ?? "127.0.0.1" },
  hosts: {
    count: 2,
    about: "clerks 1",
    // For processes without a host, and for those whose host is lost.
    placeOf: () => 0,
    onJoined: ({ name }) => console.log(`${name} has joined`),
    onLost: ({ name }, { message }) => console.log(`${name} is lost: ${message}`),
    onSignal: () => {},
  },
});
// It is secret: it lets a host join.
console.log(`INVITATION=${JSON.stringify(await actors.invite())}`);
await actors.hostsJoined(60_000);
const clerks = await actors.pool<Clerk, { ink: string }>({
  name: "clerks",
  module: new URL("./clerk.ts", import.meta.url),
  placement: "process",
  size: 2,
  hosts: [0, 1],
  init: () => ({ ink: "blue" }),
});
const ask = () => clerks.ask("count", { client: "Ada" }, { deadlineMs: 10_000 });
console.log([(await ask()).clerk, (await ask()).clerk].toSorted().join(" "));
console.log(
  `hosts ${actors
    .inspect()
    .map(({ actor, host }) => `${actor}: ${host}`)
    .toSorted()
    .join(", ")}`,
);
