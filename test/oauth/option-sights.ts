import type { ProviderOptions } from "better-auth/oauth2";
import type { SocialProviderList, socialProviders } from "better-auth/social-providers";

import type { Sent } from "../support/network";

export type ProviderId = SocialProviderList[number];

type OptionsOf<Id extends ProviderId> = Parameters<(typeof socialProviders)[Id]>[0];
type KeysOf<Options> = Options extends unknown ? keyof Options : never;
type OwnOption<Id extends ProviderId> = Exclude<KeysOf<OptionsOf<Id>>, keyof ProviderOptions>;

/** A sign-in with a tenant's config, as far as somebody wants to go. */
export interface Flow {
  /** Where people are sent to. */
  start(): Promise<URL>;
  /** What the server asks the provider when they come back with a code. */
  comeBack(): Promise<Sent[]>;
  /** What it asks when they show an id token. */
  showIdToken(): Promise<Sent[]>;
}

/** An option as a tenant gives it, and where one sees that the provider got it. */
export interface Sight {
  value: unknown;
  /** How it is stored, where not as it was given. */
  stored?: unknown;
  /** What the option does nothing without. */
  beside?: { options?: Record<string, unknown>; scopes?: string[] };
  seen(flow: Flow): Promise<unknown>;
  as: unknown;
}

const APPLICATION = "the application's";
/** An option that better-auth has and does nothing with. */
const IDLE = { seen: async () => "nothing", as: "nothing" };

const param = (name: string) => async (flow: Flow) => (await flow.start()).searchParams.get(name);
const authorizationAddress = async (flow: Flow) => {
  const { origin, pathname } = await flow.start();
  return origin + pathname;
};
const tokenAddress = async (flow: Flow) => (await flow.comeBack())[0]?.url;
const profileAddress = async (flow: Flow) =>
  decodeURIComponent((await flow.comeBack()).at(-1)?.url ?? "");
const keysAddress = async (flow: Flow) => (await flow.showIdToken())[0]?.url;
/** How the client says who it is. */
const authentication = async (flow: Flow) => {
  const [exchange] = await flow.comeBack();
  const basic = exchange?.headers.get("authorization")?.startsWith("Basic ");
  return [basic && "in the header", exchange?.body.includes("client_secret=") && "in the form"];
};

const POOL = {
  domain: "acme.auth.eu-west-1.amazoncognito.com",
  region: "eu-west-1",
  userPoolId: "eu-west-1_AcmePool",
};
const pool = (option: keyof typeof POOL) => {
  const { [option]: _, ...options } = POOL;
  return { beside: { options } };
};

/**
 * Every option of every provider that better-auth has beyond the shared ones. A provider or an
 * option that it adds is a type error here, as it is in the table of the plugin.
 */
export const optionSights: {
  [Id in ProviderId]: { [Option in OwnOption<Id>]-?: Sight[] | typeof APPLICATION };
} = {
  apple: {
    // Which id tokens are good is tried out in a test of its own.
    appBundleIdentifier: [{ value: "example.acme.app", ...IDLE }],
    audience: [
      { value: "example.acme.app", ...IDLE },
      { value: ["example.acme.app", "example.acme.watch"], ...IDLE },
    ],
  },
  atlassian: {},
  cloudflare: {
    tokenEndpointAuthMethod: [
      {
        value: "client_secret_post",
        seen: authentication,
        as: [undefined, "in the form"],
      },
      {
        value: "client_secret_basic",
        seen: authentication,
        as: ["in the header", false],
      },
    ],
  },
  cognito: {
    domain: [
      {
        value: POOL.domain,
        ...pool("domain"),
        seen: authorizationAddress,
        as: `https://${POOL.domain}/oauth2/authorize`,
      },
      {
        value: `https://${POOL.domain}/`,
        stored: POOL.domain,
        ...pool("domain"),
        seen: tokenAddress,
        as: `https://${POOL.domain}/oauth2/token`,
      },
    ],
    region: [
      {
        value: "us-gov-west-1",
        ...pool("region"),
        seen: keysAddress,
        as: "https://cognito-idp.us-gov-west-1.amazonaws.com/eu-west-1_AcmePool/.well-known/jwks.json",
      },
    ],
    userPoolId: [
      {
        value: "eu-west-1_Other",
        ...pool("userPoolId"),
        seen: keysAddress,
        as: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Other/.well-known/jwks.json",
      },
    ],
    identityProvider: [
      {
        value: "Okta",
        beside: { options: POOL },
        seen: param("identity_provider"),
        as: "Okta",
      },
    ],
    requireClientSecret: APPLICATION,
  },
  discord: {
    permissions: [
      { value: 2048, beside: { scopes: ["bot"] }, seen: param("permissions"), as: "2048" },
    ],
  },
  dropbox: {
    accessType: [
      { value: "offline", seen: param("token_access_type"), as: "offline" },
      { value: "legacy", seen: param("token_access_type"), as: "legacy" },
    ],
  },
  facebook: {
    fields: [
      {
        value: ["birthday", "age_range"],
        seen: profileAddress,
        as: "https://graph.facebook.com/me?fields=id,name,email,picture,birthday,age_range",
      },
    ],
    configId: [{ value: "4711", seen: param("config_id"), as: "4711" }],
  },
  figma: {},
  github: {},
  gitlab: {
    issuer: [
      {
        value: "https://gitlab.com/",
        stored: "https://gitlab.com",
        seen: authorizationAddress,
        as: "https://gitlab.com/oauth/authorize",
      },
      {
        value: "https://gitlab.acme.example",
        seen: tokenAddress,
        as: "https://gitlab.acme.example/oauth/token",
      },
      {
        value: "https://tools.acme.example:8443/gitlab",
        seen: profileAddress,
        as: "https://tools.acme.example:8443/gitlab/api/v4/user",
      },
    ],
  },
  google: {
    accessType: [{ value: "offline", seen: param("access_type"), as: "offline" }],
    display: [{ value: "popup", seen: param("display"), as: "popup" }],
    hd: [
      { value: "acme.example", seen: param("hd"), as: "acme.example" },
      { value: "*", seen: param("hd"), as: "*" },
    ],
    includeGrantedScopes: [
      { value: false, seen: param("include_granted_scopes"), as: null },
      { value: true, seen: param("include_granted_scopes"), as: "true" },
    ],
  },
  huggingface: {},
  kakao: {},
  kick: {},
  line: {},
  linear: {},
  linkedin: {},
  microsoft: {
    tenantId: [
      {
        value: "acme.onmicrosoft.com",
        seen: authorizationAddress,
        as: "https://login.microsoftonline.com/acme.onmicrosoft.com/oauth2/v2.0/authorize",
      },
      {
        value: "72f988bf-86f1-41af-91ab-2d7cd011db47",
        seen: tokenAddress,
        as: "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/oauth2/v2.0/token",
      },
    ],
    authority: [
      {
        value: "https://acme.ciamlogin.com/",
        stored: "https://acme.ciamlogin.com",
        seen: tokenAddress,
        as: "https://acme.ciamlogin.com/common/oauth2/v2.0/token",
      },
      {
        value: "https://login.microsoftonline.us",
        beside: { options: { tenantId: "acme" } },
        seen: keysAddress,
        as: "https://login.microsoftonline.us/acme/discovery/v2.0/keys",
      },
    ],
    clientAssertion: APPLICATION,
    profilePhotoSize: [
      {
        value: 96,
        seen: profileAddress,
        as: "https://graph.microsoft.com/v1.0/me/photos/96x96/$value",
      },
    ],
    disableProfilePhoto: [
      { value: true, seen: async (flow) => (await flow.comeBack()).length, as: 1 },
    ],
  },
  naver: {},
  notion: {},
  paybin: {
    issuer: [
      {
        value: "https://idp.paybin.io",
        seen: authorizationAddress,
        as: "https://idp.paybin.io/oauth2/authorize",
      },
      {
        value: "https://paybin.acme.example",
        seen: tokenAddress,
        as: "https://paybin.acme.example/oauth2/token",
      },
    ],
  },
  paypal: {
    environment: [
      {
        value: "sandbox",
        seen: authorizationAddress,
        as: "https://www.sandbox.paypal.com/signin/authorize",
      },
      { value: "live", seen: authorizationAddress, as: "https://www.paypal.com/signin/authorize" },
    ],
    requestShippingAddress: [{ value: true, ...IDLE }],
  },
  polar: {},
  railway: {},
  reddit: { duration: [{ value: "permanent", seen: param("duration"), as: "permanent" }] },
  roblox: {},
  salesforce: {
    environment: [
      {
        value: "sandbox",
        seen: authorizationAddress,
        as: "https://test.salesforce.com/services/oauth2/authorize",
      },
      {
        value: "production",
        seen: authorizationAddress,
        as: "https://login.salesforce.com/services/oauth2/authorize",
      },
    ],
    loginUrl: [
      {
        value: "acme.my.salesforce.com",
        seen: tokenAddress,
        as: "https://acme.my.salesforce.com/services/oauth2/token",
      },
      {
        value: "https://acme--test.sandbox.my.site.com/",
        stored: "acme--test.sandbox.my.site.com",
        seen: authorizationAddress,
        as: "https://acme--test.sandbox.my.site.com/services/oauth2/authorize",
      },
    ],
  },
  slack: {},
  spotify: {},
  tiktok: {},
  twitch: {
    claims: [
      {
        value: ["picture", "updated_at"],
        seen: param("claims"),
        as: '{"id_token":{"email":null,"email_verified":null,"picture":null,"updated_at":null}}',
      },
    ],
  },
  twitter: {},
  vercel: {},
  vk: { scheme: [{ value: "dark", ...IDLE }] },
  wechat: {
    platformType: [{ value: "WebsiteApp", ...IDLE }],
    lang: [{ value: "en", seen: param("lang"), as: "en" }],
  },
  zoom: { pkce: APPLICATION },
};

/** What a provider cannot do without. */
export const neededBy = (id: string): Record<string, unknown> => (id === "cognito" ? POOL : {});
