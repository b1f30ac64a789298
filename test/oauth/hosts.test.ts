import type { APIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { parseOwnOptions } from "../../src/oauth/provider-options";
import { fakeNetwork } from "../support/network";
import { shareInstance } from "../support/shared";
import { hostileAddresses, hostileHosts, type Target } from "./hostile-hosts";

const shared = shareInstance();
const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const POOL = { region: "eu-west-1", userPoolId: "eu-west-1_Acme" };

const targets: Target[] = [
  { providerId: "gitlab", option: "issuer", own: "gitlab.com", domain: "gitlab.com" },
  { providerId: "paybin", option: "issuer", own: "idp.paybin.io", domain: "paybin.io" },
  {
    providerId: "microsoft",
    option: "authority",
    own: "login.microsoftonline.com",
    domain: "microsoftonline.com",
  },
  {
    providerId: "cognito",
    option: "domain",
    own: "acme.auth.eu-west-1.amazoncognito.com",
    domain: "amazoncognito.com",
    bare: true,
    beside: POOL,
  },
  {
    providerId: "salesforce",
    option: "loginUrl",
    own: "acme.my.salesforce.com",
    domain: "salesforce.com",
    bare: true,
  },
];

const register = (
  tenantId: string,
  { providerId, option, beside }: Pick<Target, "providerId" | "option" | "beside">,
  value: unknown,
) =>
  shared.operator.post<{ message: string }>("/tenant/oauth-config/register", {
    tenantId,
    providerId,
    ...CLIENT,
    options: { ...beside, [option]: value },
  });

describe.each(targets)("$providerId's $option", (target) => {
  const hosts = hostileHosts(target);
  const spellings = [
    ...new Set([
      ...hosts.map((host) => (target.bare ? host : `https://${host}`)),
      ...hostileAddresses(target),
    ]),
  ];
  // Every third goes the whole way, each option with others.
  const inRequests = spellings.filter((_, index) => index % 3 === targets.indexOf(target) % 3);

  it(`threat: into the network: refuses ${spellings.length} spellings of other hosts`, () => {
    expect(spellings.length).toBeGreaterThan(180);
    const refusal = (value: string) => {
      try {
        return parseOwnOptions(target.providerId, { ...target.beside, [target.option]: value }, []);
      } catch (error) {
        return (error as APIError).body?.code;
      }
    };
    const taken = spellings.filter((value) => refusal(value) !== "UNTRUSTED_PROVIDER_HOST");
    expect(taken).toEqual([]);
    if (!target.bare) return;
    const asAddresses = hosts.map((host) => `https://${host}`);
    expect(asAddresses.filter((value) => refusal(value) !== "UNTRUSTED_PROVIDER_HOST")).toEqual([]);
  });

  it(`threat: into the network: refuses ${inRequests.length} of them in requests`, async () => {
    expect(inRequests.length).toBeGreaterThan(60);
    const sent = fakeNetwork();
    const { id: tenantId } = await shared.instance.createTenant();
    const taken: unknown[] = [];
    for (const spelling of inRequests) {
      const { status, code, data } = await register(tenantId, target, spelling);
      const refused = status === 400 && code === "UNTRUSTED_PROVIDER_HOST";
      const told = data.message?.includes(`options.${target.option}`);
      if (!refused || !told) taken.push([spelling, status, data]);
    }
    expect(taken).toEqual([]);
    expect(sent).toEqual([]);
    const { quote } = shared.instance.database;
    const mine = `${quote("tenantId")} = ?`;
    expect(await shared.instance.rows("tenantOauthConfig", mine, [tenantId])).toBe(0);
  });

  it("takes the provider's own host", async () => {
    const { id: tenantId } = await shared.instance.createTenant();
    const good = [
      `https://${target.own}`,
      `https://${target.own}/`,
      ...(target.bare ? [target.own] : []),
    ];
    for (const spelling of good) {
      expect([spelling, (await register(tenantId, target, spelling)).status]).toEqual([
        spelling,
        200,
      ]);
    }
  });

  it("is refused by update and by check as well", async () => {
    const sent = fakeNetwork();
    const { id: tenantId } = await shared.instance.createTenant();
    await register(tenantId, target, `https://${target.own}`);
    const { providerId, option, beside } = target;
    const options = { ...beside, [option]: "https://169.254.169.254" };
    const body = { tenantId, providerId, options };
    const update = await shared.operator.post("/tenant/oauth-config/update", body);
    expect([update.status, update.code]).toEqual([400, "UNTRUSTED_PROVIDER_HOST"]);
    const check = await shared.operator.post("/tenant/oauth-config/check", { ...body, ...CLIENT });
    expect([check.status, check.data.ok]).toEqual([200, false]);
    expect(check.data.findings).toMatchObject([
      { subject: "options", ok: false, code: "UNTRUSTED_PROVIDER_HOST" },
    ]);
    expect(sent).toEqual([]);
    const [config] = await shared.instance.api.listTenantOAuthConfigs({ query: { tenantId } });
    expect(JSON.stringify(config?.options)).toContain(target.own);
  });
});

describe("threat: into the network: parts of an address", () => {
  const hostile = [
    "eu-west-1.evil.example/#",
    "eu-west-1.evil.example",
    "eu-west-1/",
    "eu-west-1#",
    "eu-west-1?",
    "eu-west-1@evil",
    "evil.example#-1",
    "../eu-west-1",
    "eu-west-1\n",
    "eu-west-1 ",
    "%2e%2e",
    "..",
    ".",
    "",
    "EU-WEST-1\\",
    "eu-west-1\u3002evil",
    "a".repeat(300),
  ];

  it.each<Pick<Target, "providerId" | "option" | "beside">>([
    {
      providerId: "cognito",
      option: "region",
      beside: { domain: "a.amazoncognito.com", userPoolId: "eu-west-1_A" },
    },
    {
      providerId: "cognito",
      option: "userPoolId",
      beside: { domain: "a.amazoncognito.com", region: "eu-west-1" },
    },
    { providerId: "microsoft", option: "tenantId" },
  ])("nothing gets out of $providerId's $option", async (target) => {
    const { id: tenantId } = await shared.instance.createTenant();
    const taken: unknown[] = [];
    for (const value of hostile) {
      // A name with dots is a good name for a directory: it stays in its part of the path.
      if (target.option === "tenantId" && value === "eu-west-1.evil.example") continue;
      const { status, code } = await register(tenantId, target, value);
      if (code !== "INVALID_PROVIDER_OPTIONS") taken.push([value, status, code]);
    }
    expect(taken).toEqual([]);
  });
});
