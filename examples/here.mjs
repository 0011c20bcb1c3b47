// Where the server of this folder listens: `make dev` leaves its address here. PALIMPSEST_URL names another server.
import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";

export function serverUrl() {
  const given = { ...(existsSync(".env") ? parseEnv(readFileSync(".env", "utf8")) : {}), ...process.env };
  if (given.PALIMPSEST_URL) return given.PALIMPSEST_URL;
  try {
    const server = JSON.parse(readFileSync(`${given.PALIMPSEST_DATA_DIR || ".palimpsest"}/server.json`, "utf8"));
    process.kill(server.pid, 0); // fails where that process is gone
    return server.url;
  } catch {
    console.error("No server of this folder runs: start one with `make dev`, or set PALIMPSEST_URL.");
    process.exit(1);
  }
}
