import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { freePort, makeDirectory, server, unprivileged } from "../soak/services";

/** What Sentinel and ioredis call the group of a master and its replicas. */
const GROUP = "auth";

/** A Redis, or a Sentinel, with a file of settings, which Sentinels and clusters write to. */
async function startNode(command: string, port: number, settings: string[]) {
  const directory = makeDirectory();
  const file = join(directory, "redis.conf");
  const data = join(directory, "data");
  const user = unprivileged();
  const common = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${data}`,
    // `npm run test:clusters` finds what was left by the directory in the command line.
    "set-proc-title no",
  ];
  mkdirSync(data);
  writeFileSync(file, `${[...common, ...settings].join("\n")}\n`);
  if (user.uid !== undefined) execFileSync("chown", ["-R", `${user.uid}:${user.gid}`, directory]);
  const log = join(directory, "log");
  const { start, stop } = await server(port, command, [file], {
    log,
    end: "SIGKILL",
    ...user,
  });
  return {
    port,
    start,
    kill: () => stop("SIGKILL"),
    command: (...words: [string, ...string[]]) => ask(port, ...words),
  };
}

type Node = Awaited<ReturnType<typeof startNode>>;

const IN_MEMORY = ['save ""', "appendonly no", "repl-diskless-sync-delay 0"];

/** Asks one server, outside of any cluster. */
async function ask(port: number, ...command: [string, ...string[]]) {
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: () => null });
  client.on("error", () => {});
  return await client.call(...command).finally(() => client.disconnect());
}

const sayRole = async (port: number) => {
  const [role] = (await ask(port, "ROLE").catch(() => [])) as string[];
  return role;
};

async function until(what: string, isSo: () => Promise<boolean>) {
  for (let attempt = 0; !(await isSo().catch(() => false)); attempt++) {
    if (attempt > 600) throw new Error(`Not after a minute: ${what}`);
    await sleep(100);
  }
}

/** How many replicas are connected to a master. */
async function countReplicas(port: number) {
  const [role, , replicas] = (await ask(port, "ROLE")) as [string, number, unknown[]];
  return role === "master" ? replicas.length : 0;
}

/** A master, two replicas and three Sentinels, which make a replica the master. */
export async function startSentinel() {
  const nodes: Node[] = [];
  for (let count = 0; count < 3; count++) {
    const first = nodes[0];
    const replicates = first ? [`replicaof 127.0.0.1 ${first.port}`] : [];
    const port = await freePort();
    nodes.push(await startNode("redis-server", port, [...IN_MEMORY, ...replicates]));
  }
  const [master] = nodes as [Node];
  await until("two replicas", async () => (await countReplicas(master.port)) === 2);
  const sentinels: number[] = [];
  for (let count = 0; count < 3; count++) {
    const sentinel = await startNode("redis-sentinel", await freePort(), [
      `sentinel monitor ${GROUP} 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds ${GROUP} 2000`,
      `sentinel failover-timeout ${GROUP} 10000`,
    ]);
    sentinels.push(sentinel.port);
  }
  /** The master that the Sentinels agree on, once it is one. */
  async function findMaster(): Promise<Node> {
    let found: Node | undefined;
    await until("one master", async () => {
      const ports = await Promise.all(
        sentinels.map((port) => ask(port, "SENTINEL", "get-master-addr-by-name", GROUP)),
      );
      const agreed = new Set(ports.map((address) => Number((address as string[])[1])));
      found = nodes.find(({ port }) => agreed.size === 1 && agreed.has(port));
      return found !== undefined && (await sayRole(found.port)) === "master";
    });
    return found as Node;
  }
  await until("three Sentinels that know each other and both replicas", async () => {
    const known = await Promise.all(
      sentinels.map(async (port) => {
        const others = (await ask(port, "SENTINEL", "sentinels", GROUP)) as unknown[];
        const replicas = (await ask(port, "SENTINEL", "replicas", GROUP)) as unknown[];
        return others.length === 2 && replicas.length === 2;
      }),
    );
    return known.every(Boolean);
  });
  return {
    nodes,
    connection: { sentinels },
    findMaster,
    /** Waits until the master has both replicas again, so that it may be killed. */
    isWhole: async () => {
      const { port } = await findMaster();
      await until("two replicas", async () => (await countReplicas(port)) === 2);
    },
  };
}

/** Six nodes: three masters that share the keys, and a replica of each. */
export async function startRedisCluster() {
  const nodes: Node[] = [];
  for (let count = 0; count < 6; count++) {
    const [port, bus] = [await freePort(), await freePort()];
    const settings = ["cluster-enabled yes", `cluster-port ${bus}`, "cluster-node-timeout 2000"];
    nodes.push(await startNode("redis-server", port, [...IN_MEMORY, ...settings]));
  }
  const ports = nodes.map(({ port }) => port);
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  const make = ["--cluster", "create", ...addresses, "--cluster-replicas", "1", "--cluster-yes"];
  execFileSync("redis-cli", ["-p", String(ports[0]), ...make], { stdio: "ignore" });
  const running = async () => {
    const roles = await Promise.all(ports.map(sayRole));
    return {
      masters: nodes.filter((_, index) => roles[index] === "master"),
      replicas: roles.filter((role) => role === "slave").length,
    };
  };
  const isWhole = () =>
    until("three masters, each with a replica", async () => {
      const { masters } = await running();
      const counts = await Promise.all(masters.map(({ port }) => countReplicas(port)));
      const infos = await Promise.all(ports.map((port) => ask(port, "CLUSTER", "INFO")));
      const isOk = infos.every((info) => String(info).includes("cluster_state:ok"));
      return isOk && counts.join() === "1,1,1";
    });
  await isWhole();
  return {
    nodes,
    connection: { nodes: ports },
    findMaster: async () => (await running()).masters[0] as Node,
    /** Waits until every key has a master again. */
    hasMasters: () =>
      until("three masters", async () => {
        const { masters } = await running();
        const infos = await Promise.all(masters.map(({ port }) => ask(port, "CLUSTER", "INFO")));
        const isOk = infos.every((info) => String(info).includes("cluster_state:ok"));
        return isOk && masters.length === 3;
      }),
    isWhole,
  };
}
