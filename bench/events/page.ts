/** A page that looks, in a process of its own: reads the stream of the dashboard at an address and forgets it. */
const [address = ""] = process.argv.slice(2);
const [url = "", token = ""] = address.split("#token=");
const response = await fetch(new URL("stream", url), { headers: { Authorization: `Bearer ${token}` } });
process.send?.("looking");
try {
  for await (const _ of response.body ?? []);
} catch {
  // The run is over.
}
