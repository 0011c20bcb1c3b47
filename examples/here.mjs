// Where the server of this folder listens: `make dev` leaves its address here. PALIMPSEST_URL names another server.
import { readFileSync } from "node:fs";

export function serverUrl() {
  if (process.env.PALIMPSEST_URL) return process.env.PALIMPSEST_URL;
  try {
    const server = JSON.parse(readFileSync(`${process.env.PALIMPSEST_DATA_DIR || ".palimpsest"}/server.json`, "utf8"));
    process.kill(server.pid, 0); // fails where that process is gone
    return server.url;
  } catch {
    console.error("No server of this folder runs: start one with `make dev`, or set PALIMPSEST_URL.");
    process.exit(1);
  }
}
