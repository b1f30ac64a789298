import type { APIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { parseOwnOptions } from "../../../src/features/oauth/provider-options";
import {
  assertRedirectURI,
  isTrustedAddress,
  isTrustedHost,
} from "../../../src/features/oauth/trusted-addresses";
import { tenantAuth } from "../../../src/index";
import { expectRefused, shareWorld } from "../../support/world";
import { createOAuthTenant } from "./tenant";

const world = shareWorld();
const CLIENT = { clientId: "acme-client", clientSecret: "acme-secret" };

/** A list of what has no blanks in it. */
const words = (text: string) => text.trim().split(/\s+/);

/** What a call is refused with; undefined when it is not. */
function refusal(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return (error as APIError).body?.code;
  }
}

/** Loopback, in all its spellings; private networks, and what clouds keep there. */
const INSIDE = words(`
  localhost LOCALHOST localhost. localtest.me 127.0.0.1 127.1 127.000.000.001 2130706433
  0x7f000001 0x7f.1 017700000001 0177.1 0 0.0.0.0 [::1] [::] [0:0:0:0:0:0:0:1] ::1
  [::ffff:127.0.0.1] [::ffff:7f00:1] [64:ff9b::7f00:1] [fe80::1%25eth0] 10.0.0.1 192.168.1
  3232235521 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 [::ffff:a9fe:a9fe]
  metadata.google.internal kubernetes.default.svc redis`);

/** Hosts that lead elsewhere, or that only a forgiving parser takes for the provider's own. */
const hostileHosts = (own: string, domain: string): string[] => [
  ...INSIDE,
  // Credentials, backslashes, dots and ports.
  ...words(`
    user@${own} user:password@${own} @${own} ${own}@evil.example ${own}%40evil.example
    evil.example\\@${own} evil.example\\${own} ${own}\\.evil.example \\\\evil.example\\${own}
    ${own}. ${own}.. .${domain} a..${domain} ${own}:22 ${own}:443 ${own}:0443 ${own}: ${own}:99999
    ${own}:443:443 ${own}:\uff14\uff14\uff13`),
  // What a parser throws away, and letters that look like others, or become them.
  ...[" ", "\t", "\n", "\u0000", "\u00ad", "\u200b", "\ufeff"].flatMap((odd) => [
    `${odd}${own}`,
    `${own}${odd}`,
    `${own.slice(0, 2)}${odd}${own.slice(2)}`,
    `${own}${odd}.evil.example`,
  ]),
  ...["\u3002", "\uff0e", "\uff61"].map((dot) => own.replaceAll(".", dot)),
  own.replace(/[aeyo]/, "\u0430"),
  own.replace(/[a-z]/, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)),
  // Whatever else an address may have; encoded, and near misses.
  ...words(`
    ${own}# ${own}? ${own}?a=b evil.example#${own} evil.example?.${own} evil.example/${own}
    evil.example;.${own} ${own}// ${own}/.. ${own}/./ ${own}/a/../../b ${own}/%2e%2e/evil
    ${own}/a%00 ${own}/.git ${own}/@evil.example ${own}/a\\b xn-- xn--80ak6aa92e.com
    %6c%6f%63%61%6c%68%6f%73%74 127%2e0%2e0%2e1 ${own}%2eevil.example %00${own}
    ${own}.evil.example ${own}-evil.example evil-${domain} evil${domain} ${domain}.co *.${domain}
    * ${own},evil.example <${own}> "${own}" evil.example`),
  "",
];

/** Addresses that are none, or of the wrong kind. */
const hostileAddresses = (own: string, bare: boolean): string[] => [
  ...words(`
    http://${own} HTTP://${own} http://localhost http://169.254.169.254/latest/meta-data
    https:${own} https:/${own} https:///${own} https:\\\\${own} https://https://${own}
    https:https://${own} //${own} https%3a//${own} ftp://${own} wss://${own} gopher://${own}:70/_
    file:///etc/passwd blob:https://${own} data:text/html,hello javascript://${own}/%0aalert(1)
    https:// https: https / ../oauth \\\\`),
  ` https://${own}`,
  `ht\ntps://${own}`,
  ...(bare ? [`${own}/oauth2`, `https://${own}/oauth2`] : [own, `${own}:443`, `${own}/oauth`]),
];

/** An option that is an address, and one that is a bare host. */
it.each([
  ["gitlab", "issuer", "gitlab.com", "gitlab.com"],
  ["salesforce", "loginUrl", "a.salesforce.com", "salesforce.com"],
])("threat: into the network: %s's %s names no other host", async (...row) => {
  const [providerId, option, own, domain] = row;
  const bare = option === "loginUrl";
  const hosts = hostileHosts(own, domain);
  const asAddresses = hosts.map((host) => `https://${host}`);
  const spellings = [...(bare ? hosts : []), ...asAddresses, ...hostileAddresses(own, bare)];
  const taken = spellings.filter((value) => {
    const parse = () => parseOwnOptions(providerId, { [option]: value }, []);
    return refusal(parse) !== "UNTRUSTED_PROVIDER_HOST";
  });
  expect(taken).toEqual([]);
  // Nor in requests.
  const acme = await createOAuthTenant(world);
  const given = (value: string) => ({ providerId, ...CLIENT, options: { [option]: value } });
  for (const good of [`https://${own}`, `https://${own}/`, ...(bare ? [own] : [])]) {
    expect([good, (await acme.register(given(good))).status]).toEqual([good, 200]);
  }
  const { clientId: _, ...changes } = given("https://169.254.169.254");
  for (const answer of [
    await acme.register({ ...changes, ...CLIENT }),
    await acme.update(changes),
  ]) {
    expectRefused(answer, 400, "UNTRUSTED_PROVIDER_HOST");
    expect(answer.data.message).toContain(`options.${option}`);
  }
  expect(JSON.stringify((await acme.list())[0]?.options)).toContain(own);
});

it.each([
  ["paybin", { issuer: "https://evil.example" }],
  ["microsoft", { authority: "https://login.microsoftonline.com.evil.example" }],
  ["cognito", { domain: "amazoncognito.com", region: "eu-west-1", userPoolId: "eu-west-1_A" }],
])("threat: into the network: %s is not at %j", (providerId, options) => {
  const parse = () => parseOwnOptions(providerId, options, []);
  expect(refusal(parse)).toBe("UNTRUSTED_PROVIDER_HOST");
});

it.each([
  ["cognito", "region", { domain: "a.amazoncognito.com", userPoolId: "eu-west-1_A" }],
  ["cognito", "userPoolId", { domain: "a.amazoncognito.com", region: "eu-west-1" }],
  ["microsoft", "tenantId", {}],
])("threat: into the network: nothing gets out of %s's %s", (providerId, option, beside) => {
  const hostile = [
    ...words(`
      eu-west-1.evil.example/# eu-west-1.evil.example eu-west-1/ eu-west-1# eu-west-1?
      eu-west-1@evil evil.example#-1 ../eu-west-1 %2e%2e .. . EU-WEST-1\\ eu-west-1\u3002evil`),
    "eu-west-1\n",
    "eu-west-1 ",
    "",
    "a".repeat(300),
  ];
  const parse = (value: string) => parseOwnOptions(providerId, { ...beside, [option]: value }, []);
  const taken = hostile.filter((value) => refusal(() => parse(value)) === undefined);
  // A name with dots is a good name for a directory: it stays in its part of the path.
  expect(taken).toEqual(option === "tenantId" ? ["eu-west-1.evil.example"] : []);
  const codes = hostile.map((value) => refusal(() => parse(value)) ?? "INVALID_PROVIDER_OPTIONS");
  expect(new Set(codes)).toEqual(new Set(["INVALID_PROVIDER_OPTIONS"]));
});

describe("threat: a page of another customer: a path on the provider's public host", () => {
  const REFUSED = "Leave out the path";
  it.each<[string, Record<string, string>, message?: string]>([
    ["gitlab", { issuer: "https://gitlab.com/evil/project/" }, REFUSED],
    ["gitlab", { issuer: "https://GITLAB.com/evil" }, REFUSED],
    ["paybin", { issuer: "https://idp.paybin.io/evil" }, REFUSED],
    ["microsoft", { authority: "https://login.microsoftonline.com/evil" }, REFUSED],
    ["microsoft", { authority: "https://login.microsoftonline.us/evil" }, REFUSED],
    ["microsoft", { authority: "https://acme.ciamlogin.com/evil" }, REFUSED],
    // Control: none, on a trusted host, and Azure AD B2C, whose address has the directory in it.
    ["gitlab", { issuer: "https://gitlab.com/" }],
    ["gitlab", { issuer: "https://gitlab.acme.example/git" }],
    ["microsoft", { authority: "https://acme.b2clogin.com/acme.example", tenantId: "policy" }],
  ])("%s with %j: %s", (providerId, options, message) => {
    const parse = () => parseOwnOptions(providerId, options, ["gitlab.acme.example"]);
    if (message) expect(parse).toThrow(`options.${Object.keys(options)[0]}: ${message}`);
    else expect(parse).not.toThrow();
  });
});

describe("trustedProviderHosts", () => {
  const own = ["gitlab.com", "*.b2c.example/*"];
  const trusted = words(`
    gitlab.acme.example git.acme.example:8443 *.corp.example *.ports.example:444 10.0.0.7
    localhost:3001 127.0.0.1:9000 [::1]:8080`);

  const isGood = (address: string) => isTrustedAddress(address, own, trusted);

  it("are these, and no others", () => {
    const good = words(`
      https://gitlab.acme.example https://GITLAB.acme.example https://gitlab.acme.example/some/path
      https://git.acme.example:8443 https://a.corp.example https://a.b.corp.example
      https://a.ports.example:444 https://10.0.0.7 https://localhost:3001 http://localhost:3001
      http://127.0.0.1:9000/gitlab http://[::1]:8080 https://gitlab.com https://acme.b2c.example
      https://acme.b2c.example/directory`);
    const bad = words(`
      https://gitlab.acme.example:8443 https://gitlab.acme.example:443 https://a.gitlab.acme.example
      https://acme.example https://git.acme.example https://git.acme.example:844
      https://git.acme.example:84430 https://corp.example https://acorp.example
      https://a.corp.example:8443 https://a.corp.example.evil.example https://.corp.example
      https://a.ports.example http://gitlab.acme.example http://a.corp.example http://10.0.0.7
      https://167772167 https://0x0a000007 https://10.7 https://10.0.0.007 http://localhost
      http://localhost:3002 http://localhost.:3001 http://127.0.0.1 http://127.1:9000
      http://2130706433:9000 http://[::ffff:127.0.0.1]:9000 http://[0:0:0:0:0:0:0:1]:8080
      http://[::1] http://gitlab.com ftp://localhost:3001 https://xn--a.corp.example
      https://gitlab.com/evil https://GitLab.com/evil https://gitlab.com/a/b https://b2c.example
      https://evil.b2c.example.evil.example/directory`);
    expect([...good, ...bad].filter(isGood)).toEqual(good);
  });

  it("a bare host is one that https leads to", () => {
    const isHost = (host: string) => isTrustedHost(host, ["*.own.example"], trusted);
    const good = ["a.own.example", "a.corp.example", "git.acme.example:8443"];
    const bad = ["own.example", "a.corp.example/", "a.corp.example/x", ""];
    expect([...good, ...bad].filter(isHost)).toEqual(good);
  });

  it("are refused at start where one is no host, or all of it is no list", () => {
    const entries = [
      ...words(`
      * *. .example.com example.com. Example.com https://example.com example.com/gitlab
      user@example.com example.com: example.com:99999 example.com:443 example.com:08443
      a.*.example.com *example.com *.*.example.com *.127.0.0.1 2130706433 0x7f.1 127.1 ::1
      [::ffff:127.0.0.1] [:::::] [0:0:0:0:0:0:0:1] b\u00fccher.example exa_mple.com example..com
      example.com,example.org`),
      ...["", "exa mple.com", 1, null],
    ];
    const lists: unknown[] = [
      "example.com",
      {},
      ...entries.map((entry) => ["good.example", entry]),
    ];
    for (const list of lists) {
      const trustedProviderHosts = list as string[];
      expect(() => tenantAuth({ trustedProviderHosts }), String(list)).toThrow(
        /trustedProviderHosts/,
      );
    }
  });
});

it("threat: open redirect: a redirect URI is an address with https, spelled out, or of this machine", () => {
  const good = [
    null,
    undefined,
    ...words(`
    https://app.example.com https://app.example.com/ http://localhost/back
    https://app.example.com:8443/back?from=google&to=%2Fhome http://localhost:3000/back
    http://127.0.0.1:3000/back http://[::1]:3000/back`),
  ];
  const bad = [
    // Without https, and what only begins like loopback; with credentials or a fragment.
    ...words(`
    http://app.example.com/back http://192.168.0.1/back http://localhost.evil.com/back
    http://localhost:3000@evil.com/back https://somebody:password@app.example.com/back
    https://@app.example.com/back https://app.example.com/back# https://app.example.com/back#part`),
    // Not absolute, not in so many letters, or of another scheme.
    ...words(`
    /back app.example.com/back //evil.com/back \\\\evil.com\\back https://app.example.com\\@evil.com
    https:\\\\evil.com https:evil.com https:/evil.com https:///evil.com https:%2f%2fevil.com https://
    https://app.example.com:99999/back javascript:alert(1) javascript://app.example.com/%0aalert(1)
    data:text/html,hello file:///etc/passwd myapp://back`),
    // What a parser throws away, or forgives.
    " https://app.example.com/back",
    "https://app.example.com/back\n",
    "ht\ttps://app.example.com/back",
    "https://app.example.com/\r\nset-cookie:a=b",
    "https://app.example.com/a b",
    "https://\u0430pp.example.com/back",
    "",
  ];
  const codes = [...good, ...bad].map((uri) => refusal(() => assertRedirectURI(uri)));
  const expected = [...good.map(() => undefined), ...bad.map(() => "INVALID_REDIRECT_URI")];
  expect(codes).toEqual(expected);
});
