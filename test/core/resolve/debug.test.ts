import { createAuthMiddleware } from "better-auth/api";
import { bearer } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { ResolveTenantContext } from "../../../src/index";
import { PASSWORD } from "../../support/instance";
import { createWorld, EMAIL, shareWorld, type World } from "../../support/world";

const SIGN_IN = { email: EMAIL, password: PASSWORD };
const SESSION = "GET /get-session";

/** The lines of this plugin that a request writes. */
async function linesOf({ logs }: Pick<World, "logs">, run: () => Promise<unknown>) {
  logs.length = 0;
  await run();
  return logs.filter((line) => / (runs (in|on) |is refused: )/.test(line));
}

const REQUEST = "its body, query or header";
const CREDENTIAL = "its credential";

const inTenant = (request: string, id: string, by: string) => [
  `debug ${request} runs in tenant "${id}", resolved by ${by}`,
];
const onPlatform = (request: string, by = "") => [`debug ${request} runs on the platform${by}`];

describe("at log level debug a request writes one line", () => {
  const calls: string[] = [];
  const hook = createAuthMiddleware(async ({ headers, path }) => {
    if (path !== "/update-user" || !headers) return;
    calls.push(path);
    await world.api.getSession({ headers });
  });
  const world = shareWorld({ plugins: [bearer()], auth: { hooks: { before: hook } } });
  const tell = (run: () => Promise<unknown>) => linesOf(world, run);

  it("that says that the request named the tenant", async () => {
    const id = world.ids.acme;
    // At the path that the request came to.
    const [own, ours] = ["/sign-in/email", "/tenant/sign-in/email"];
    const query = { tenantId: id };
    const body = { ...SIGN_IN, ...query };
    const byName = inTenant(`POST ${own}`, id, REQUEST);
    const { browser } = world;
    expect(await tell(() => world.at("acme").post(own, SIGN_IN))).toEqual(byName);
    expect(await tell(() => browser().post(own, SIGN_IN, { query }))).toEqual(byName);
    const atOurs = inTenant(`POST ${ours}`, id, REQUEST);
    expect(await tell(() => browser().post(ours, body))).toEqual(atOurs);
    // better-auth's own endpoint does not read the tenant from the body.
    expect(await tell(() => browser().post(own, body))).toEqual(onPlatform(`POST ${own}`));
  });

  it("that says that the session did, or that it runs on the platform", async () => {
    const { acme, platform } = await world.janes();
    const byToken = world.browser({ authorization: `Bearer ${acme.token}` });
    for (const window of [world.at("platform", acme), byToken]) {
      const lines = await tell(() => window.get("/get-session"));
      expect(lines).toEqual(inTenant(SESSION, world.ids.acme, CREDENTIAL));
    }
    expect(await tell(() => world.browser().get("/get-session"))).toEqual(onPlatform(SESSION));
    // Management names a target, and stays where it is.
    const manager = platform.fork(world.naming("acme"));
    expect(await tell(() => manager.get("/tenant/list"))).toEqual(onPlatform("GET /tenant/list"));
    const rename = () => platform.post("/update-user", { name: "N" });
    expect(await tell(rename)).toEqual(onPlatform("POST /update-user"));
  });

  it("that says which error a request is refused with", async () => {
    const wrong = world.browser({ "x-tenant-id": "nobody" });
    expect(await tell(() => wrong.post("/sign-in/email", SIGN_IN))).toEqual([
      "debug POST /sign-in/email is refused: TENANT_NOT_FOUND",
    ]);
    const resolveTenantId = ({ headers }: ResolveTenantContext) => {
      if (headers?.has("x-away")) throw new TypeError("the table of hosts is away");
      return "";
    };
    const failing = await createWorld({ tenant: { resolveTenantId } });
    const ask = () => failing.at("acme").get("/get-session", { headers: { "x-away": "yes" } });
    expect(await linesOf(failing, ask)).toEqual([`debug ${SESSION} is refused: TypeError`]);
  });
});

it("at every other level nothing is written", async () => {
  const linesAt = async (level: "debug" | "info") => {
    const world = await createWorld({ auth: { logger: { level } } });
    const lines = await linesOf(world, () => world.at("acme").post("/sign-in/email", SIGN_IN));
    return lines.length;
  };
  expect(await linesAt("info")).toBe(0);
  expect(await linesAt("debug")).toBe(1);
});
