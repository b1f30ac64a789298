import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createConnection } from "mysql2/promise";
import { onTestFinished } from "vitest";
import { freePort, makeDirectory, server, unprivileged } from "../soak/services";
import { startHaproxy } from "./haproxy";

/** The library that makes a cluster of MariaDB servers, from the package `galera-4`. */
const PROVIDER = "/usr/lib/galera/libgalera_smm.so";

const SYNCED = "4";

type Node = Awaited<ReturnType<typeof prepareNode>>;

/** Makes a node that has not started yet. */
async function prepareNode(settings: Record<string, string | number>) {
  const user = unprivileged();
  const directory = makeDirectory();
  const data = join(directory, "data");
  const log = join(directory, "log");
  execFileSync(
    "mariadb-install-db",
    ["--no-defaults", `--datadir=${data}`, "--auth-root-authentication-method=normal"],
    { ...user, stdio: "ignore" },
  );
  const [port, cluster, incremental, snapshot] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const arguments_ = Object.entries({
    datadir: data,
    socket: join(directory, "socket"),
    "pid-file": join(directory, "pid"),
    port,
    "bind-address": "127.0.0.1",
    "innodb-buffer-pool-size": "64M",
    // What follows is what the documentation of Galera requires.
    "binlog-format": "ROW",
    "default-storage-engine": "InnoDB",
    "innodb-autoinc-lock-mode": 2,
    "wsrep-on": "ON",
    "wsrep-provider": PROVIDER,
    "wsrep-node-address": "127.0.0.1",
    "wsrep-node-incoming-address": `127.0.0.1:${port}`,
    "wsrep-sst-method": "rsync",
    "wsrep-sst-receive-address": `127.0.0.1:${snapshot}`,
    "wsrep-provider-options": [
      `gmcast.listen_addr=tcp://127.0.0.1:${cluster}`,
      `ist.recv_addr=127.0.0.1:${incremental}`,
    ].join(";"),
    ...settings,
  }).map(([name, value]) => `--${name}=${value}`);

  async function query(sql: string) {
    const connection = await createConnection({ host: "127.0.0.1", port, user: "root" });
    // A node that is stopped breaks the connection.
    connection.on("error", () => {});
    const [rows] = await connection.query(sql).finally(() => connection.destroy());
    return rows as Record<string, string>[];
  }

  const isSynced = () =>
    query("show status like 'wsrep_local_state'").then(
      ([row]) => row?.Value === SYNCED,
      () => false,
    );

  let running: Awaited<ReturnType<typeof server>> | undefined;
  /** Starts it and waits until it is part of the cluster. `members` are addresses of other nodes. */
  async function start(members: string[]) {
    const given = ["--no-defaults", ...arguments_, `--wsrep-cluster-address=gcomm://${members}`];
    if (running) await running.start();
    else running = await server(port, "mariadbd", given, { log, end: "SIGKILL", ...user });
    for (let attempt = 0; !(await isSynced()); attempt++) {
      if (attempt > 600) throw new Error(`A node has not joined: see ${log}`);
      await sleep(100);
    }
  }

  return {
    port,
    address: `127.0.0.1:${cluster}`,
    start,
    kill: async () => void (await running?.stop("SIGKILL")),
    query,
    isSynced,
  };
}

/** Answers over HTTP whether a node may be used: what people install `clustercheck` for. */
async function startCheck({ isSynced }: Node): Promise<number> {
  const check = createServer(async (_, response) => {
    response.writeHead((await isSynced()) ? 200 : 503).end();
  });
  await new Promise<void>((resolve) => check.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void check.close());
  return (check.address() as AddressInfo).port;
}

/** Three nodes of MariaDB, behind an HAProxy that sends connections to all that may be used. */
export async function startGalera(settings: Record<string, string | number> = {}) {
  const nodes: Node[] = [];
  for (let count = 0; count < 3; count++) nodes.push(await prepareNode(settings));
  const others = (node: Node) => nodes.filter((one) => one !== node).map(({ address }) => address);
  const [first, ...rest] = nodes as [Node, Node, Node];
  await first.start([]);
  for (const node of rest) await node.start(others(node));
  await first.query("create database auth character set utf8mb4 collate utf8mb4_nopad_bin");
  const targets = nodes.map(async (node) => ({
    port: node.port,
    checkPort: await startCheck(node),
  }));
  const port = await startHaproxy("/", await Promise.all(targets));
  return { port, nodes, restart: (node: Node) => node.start(others(node)) };
}
