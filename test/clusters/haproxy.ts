import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, makeDirectory, server, unprivileged } from "../soak/services";

/** A server behind HAProxy, and the port at which it is asked over HTTP whether it may be used. */
interface Target {
  port: number;
  checkPort: number;
}

/**
 * HAProxy with one port, which shares connections among the targets that answer 200 at `path`. It
 * closes the connections to a target that no longer does, as the manual of Patroni has it.
 */
export async function startHaproxy(path: string, targets: Target[]): Promise<number> {
  const port = await freePort();
  const directory = makeDirectory();
  const file = join(directory, "haproxy.cfg");
  const lines = targets.map(
    (target, index) =>
      `  server node${index} 127.0.0.1:${target.port} check port ${target.checkPort}`,
  );
  writeFileSync(
    file,
    `defaults
  mode tcp
  retries 2
  option redispatch
  timeout connect 4s
  timeout check 3s
  timeout client 30m
  timeout server 30m
listen database
  bind 127.0.0.1:${port}
  balance leastconn
  option httpchk GET ${path}
  default-server inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
${lines.join("\n")}
`,
  );
  const log = join(directory, "log");
  await server(port, "haproxy", ["-db", "-f", file], { log, end: "SIGKILL", ...unprivileged() });
  return port;
}
