import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import { parseOwnOptions } from "../../src/oauth/provider-options";
import { entryOf, shared } from "../../src/oauth/provider-table";

/* That every provider and every option of better-auth is in the table, the compiler sees to. */

const POOL = {
  domain: "app.auth.eu-west-1.amazoncognito.com",
  region: "eu-west-1",
  userPoolId: "eu-west-1_App",
};
const neededBy = (id: string) => (id === "cognito" ? POOL : {});
const TRUSTED = ["gitlab.acme.example", "*.acme.example:8443", "paybin.acme.example"];

/** Good values, and every option that there is; how they are stored where that is not the same. */
const GOOD: [provider: string, options: object, stored?: object][] = [
  ["apple", { appBundleIdentifier: "example.acme.app", audience: "example.acme.app" }],
  ["apple", { audience: ["example.acme.app", "example.acme.watch"], additionalClientIds: ["b"] }],
  ["cloudflare", { tokenEndpointAuthMethod: "client_secret_post" }],
  ["cloudflare", { tokenEndpointAuthMethod: "client_secret_basic" }],
  ["cognito", { domain: `https://${POOL.domain}/` }, { domain: POOL.domain }],
  ["cognito", { region: "us-gov-west-1", userPoolId: "eu-west-1_Other", identityProvider: "Okta" }],
  ["discord", { permissions: 0 }],
  ["discord", { permissions: 2048 }],
  ...["offline", "online", "legacy"].map((accessType): Row => ["dropbox", { accessType }]),
  ["facebook", { fields: ["birthday", "age_range"], configId: "4711" }],
  ["gitlab", { issuer: "https://gitlab.com/" }, { issuer: "https://gitlab.com" }],
  ["gitlab", { issuer: "https://gitlab.acme.example" }],
  ["gitlab", { issuer: "https://tools.acme.example:8443/gitlab" }],
  ["google", { accessType: "offline", hd: "acme.example", includeGrantedScopes: true }],
  ["google", { accessType: "online", hd: "*", includeGrantedScopes: false }],
  ...["page", "popup", "touch", "wap"].map((display): Row => ["google", { display }]),
  ["microsoft", { tenantId: "72f988bf-86f1-41af-91ab-2d7cd011db47", profilePhotoSize: 48 }],
  ["microsoft", { authority: "https://login.microsoftonline.us" }],
  ["microsoft", { authority: "https://login.partner.microsoftonline.cn" }],
  [
    "microsoft",
    { authority: "https://acme.ciamlogin.com/" },
    { authority: "https://acme.ciamlogin.com" },
  ],
  [
    "microsoft",
    { tenantId: "acme.onmicrosoft.com", profilePhotoSize: 96, disableProfilePhoto: true },
  ],
  ["paybin", { issuer: "https://idp.paybin.io" }],
  ["paybin", { issuer: "https://paybin.acme.example" }],
  ["paypal", { environment: "sandbox", requestShippingAddress: true }],
  ["paypal", { environment: "live" }],
  ["reddit", { duration: "temporary" }],
  ["reddit", { duration: "permanent" }],
  [
    "salesforce",
    { environment: "sandbox", loginUrl: "https://a--b.sandbox.my.site.com/" },
    { environment: "sandbox", loginUrl: "a--b.sandbox.my.site.com" },
  ],
  ["salesforce", { environment: "production" }],
  ["twitch", { claims: ["picture", "updated_at"] }],
  ["vk", { scheme: "dark" }],
  ["vk", { scheme: "light" }],
  ["wechat", { platformType: "WebsiteApp", lang: "cn" }],
  ["wechat", { lang: "en" }],
];
type Row = (typeof GOOD)[number];

/** What stays the application's. */
const APPLICATION: Record<string, string[]> = {
  cognito: ["requireClientSecret"],
  microsoft: ["clientAssertion"],
  zoom: ["pkce"],
};

describe("the table of providers", () => {
  it.each(GOOD)("takes for %s: %j", (id, options, stored = options) => {
    const parsed = parseOwnOptions(id, { ...neededBy(id), ...options }, TRUSTED);
    expect(parsed).toEqual({ ...neededBy(id), ...stored });
  });

  it.each(socialProviderList)("%s takes these options and what all share, and no others", (id) => {
    const tried = GOOD.filter(([provider]) => provider === id).map(([, options]) => options);
    const taken = Object.keys({ ...neededBy(id), ...Object.assign({}, ...tried) });
    const known = [...taken.filter((name) => name !== "additionalClientIds")];
    const { options } = entryOf(id);
    expect(Object.keys(options).sort()).toEqual([...known, ...(APPLICATION[id] ?? [])].sort());
    const theirs = Object.keys(options).filter((name) => options[name] === null);
    expect(theirs).toEqual(APPLICATION[id] ?? []);
    const common = {
      prompt: "consent",
      disableDefaultScope: true,
      disableSignUp: true,
      disableImplicitSignUp: true,
      disableIdTokenSignIn: true,
    };
    const own = Object.entries(shared).filter(([, rule]) => rule !== null);
    expect(own.map(([name]) => name).sort()).toEqual(Object.keys(common).sort());
    const given = { ...neededBy(id), ...common };
    expect(parseOwnOptions(id, given, [])).toEqual(given);
  });
});
