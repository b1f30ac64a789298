import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { freePort, makeDirectory, postgresAt, server, unprivileged } from "../soak/services";
import { startHaproxy } from "./haproxy";

type Node = Awaited<ReturnType<typeof prepareNode>>;

/** One etcd, which is not killed: what happens when it is, is its own matter. */
async function startEtcd(): Promise<number> {
  const [port, peers] = [await freePort(), await freePort()];
  const directory = makeDirectory();
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peers}`];
  const args = {
    "data-dir": join(directory, "data"),
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `default=${peer}`,
  };
  await server(
    port,
    "etcd",
    Object.entries(args).map(([name, value]) => `--${name}=${value}`),
    { log: join(directory, "log"), end: "SIGKILL", ...unprivileged() },
  );
  return port;
}

const configurationOf = (node: {
  name: string;
  etcd: number;
  port: number;
  api: number;
  directory: string;
}) => `
scope: auth
name: ${node.name}
restapi: { listen: "127.0.0.1:${node.api}", connect_address: "127.0.0.1:${node.api}" }
etcd3: { host: "127.0.0.1:${node.etcd}" }
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    # A commit waits for one standby, and only that standby is promoted.
    synchronous_mode: true
    postgresql: { use_pg_rewind: true }
  initdb: [{ auth: trust }, { encoding: UTF8 }, data-checksums]
postgresql:
  listen: "127.0.0.1:${node.port}"
  connect_address: "127.0.0.1:${node.port}"
  data_dir: ${node.directory}/data
  bin_dir: ${postgresAt()}
  pgpass: ${node.directory}/pgpass
  authentication:
    superuser: { username: postgres }
    replication: { username: postgres }
  parameters: { unix_socket_directories: ${node.directory}, max_connections: 60 }
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
`;

/** Makes a node that has not started yet. */
async function prepareNode(name: string, etcd: number) {
  const [port, api] = [await freePort(), await freePort()];
  const directory = makeDirectory();
  const file = join(directory, "patroni.yml");
  writeFileSync(file, configurationOf({ name, etcd, port, api, directory }));
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${api}${path}`).catch(() => undefined);
    return response?.status === 200;
  };

  let patroni: Awaited<ReturnType<typeof server>> | undefined;
  const start = async () => {
    const settings = { log: join(directory, "log"), end: "SIGKILL", ...unprivileged() } as const;
    if (patroni) await patroni.start();
    else patroni = await server(api, "patroni", [file], settings);
  };
  /** Kills Patroni, and then PostgreSQL with all of its processes, like a machine that breaks. */
  const kill = async () => {
    await patroni?.stop("SIGKILL");
    for (const pid of postgresIn(join(directory, "data"))) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // Gone with its parent.
      }
    }
  };
  onTestFinished(kill);
  return { port, api, ask, start, kill };
}

/** The processes of the PostgreSQL that runs in a directory. */
function postgresIn(directory: string): number[] {
  try {
    const [pid = ""] = readFileSync(join(directory, "postmaster.pid"), "utf8").split("\n");
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return [pid, ...children.split(" ")].filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/**
 * Three PostgreSQL, one of which Patroni makes the primary, behind an HAProxy that sends connections
 * to the primary.
 */
export async function startPatroni() {
  const etcd = await startEtcd();
  const nodes: Node[] = [];
  for (const name of ["one", "two", "three"]) nodes.push(await prepareNode(name, etcd));
  const findOnly = async (path: string): Promise<Node> => {
    for (let attempt = 0; attempt < 1_200; attempt++) {
      const answers = await Promise.all(nodes.map(({ ask }) => ask(path)));
      const node = nodes[answers.indexOf(true)];
      if (node) return node;
      await sleep(100);
    }
    throw new Error(`No node is ${path}`);
  };
  const [first, ...rest] = nodes as [Node, Node, Node];
  await first.start();
  await findOnly("/primary");
  await Promise.all(rest.map(({ start }) => start()));
  await findOnly("/synchronous");
  const targets = nodes.map(({ port, api }) => ({ port, checkPort: api }));
  const port = await startHaproxy("/primary", targets);
  return {
    port,
    nodes,
    findPrimary: () => findOnly("/primary"),
    /** Waits until the primary may be killed: there is another that has all that was acknowledged. */
    findStandby: () => findOnly("/synchronous"),
  };
}
