import type { ProviderOptions } from "better-auth/oauth2";
import type { SocialProviderList, socialProviders } from "better-auth/social-providers";
import * as z from "zod";
import { limited } from "../../core/input";

export type ProviderId = SocialProviderList[number];

type OptionsOf<Id extends ProviderId> = Parameters<(typeof socialProviders)[Id]>[0];
type KeyOf<Options> = Options extends unknown ? keyof Options : never;
type ValueOf<Options, Key> = Options extends unknown
  ? Key extends keyof Options
    ? Options[Key]
    : never
  : never;
type OwnKey<Id extends ProviderId> = Exclude<KeyOf<OptionsOf<Id>>, keyof ProviderOptions>;

/** Schema of an option. With null, only the application can set the option. */
type Rule<Value> = z.ZodType<Value> | null;

type Address = string | ((options: Record<string, unknown>) => string);

/** Options that the oldest supported version of better-auth lacks. */
type Newer = { tokenEndpointAuth?: null };

/** What a tenant can set for a provider, beyond a client id and a secret. */
interface Entry<Id extends ProviderId> {
  /**
   * Every option that only this provider has. List an option that belongs to the application's
   * client in `GOES_WITH_THE_CLIENT` (provider-options.ts) as well.
   */
  options: { [Key in OwnKey<Id>]-?: Rule<ValueOf<OptionsOf<Id>, Key>> } & Newer;
  /**
   * Options that hold a URL, with the provider's public hosts. A host that ends in `/*` allows a
   * path.
   */
  addresses?: { [Key in OwnKey<Id>]?: string[] };
  /** Options that hold a host without a scheme, with the provider's public hosts. */
  hosts?: { [Key in OwnKey<Id>]?: string[] };
  /**
   * Options that select a server or directory of the provider. A tenant's provider gets all of the
   * application's values or none: a mix would send the tenant's secret to the wrong place.
   */
  location?: OwnKey<Id>[];
  /** How the provider takes its client id: as a list, or as `clientKey`. By default, as one id. */
  clientId?: string[] extends ValueOf<OptionsOf<Id>, "clientId"> ? "first of several" : "key";
  /** The provider's exact issuer (RFC 9207). A wrong value would lock users out. */
  issuer?: Address;
  /**
   * Base of the discovery URL, where the issuer differs or is uncertain: Facebook has two issuers,
   * LinkedIn has changed its issuer, and Roblox's ends in `/`.
   */
  discovery?: Address;
}

const matching = (pattern: RegExp, error: string) => limited(255).regex(pattern, error);
const name = z.string().regex(/^[ -~]{1,255}$/, "is empty, too long or not plain text");
const names = z.array(name).max(20);
/**
 * A word without special characters: better-auth's providers put it into a URL without encoding it.
 */
const word = z.string().regex(/^\w{1,64}$/);
const words = z.array(word).max(50).optional();
const flag = z.boolean().optional();
/** Accepts only `true`: a tenant may tighten what the application allows, never loosen it. */
const stricter = z.literal(true).optional();
const oneOf = <const Names extends readonly [string, ...string[]]>(...names: Names) =>
  z.enum(names).optional();
const address = limited(128).transform((url) => url.replace(/\/$/, ""));
/** A host. Removes the scheme and the slash of a pasted URL. */
const host = address.transform((url) => url.replace(/^https:\/\//i, ""));
const PLAIN = { options: {} };

/** Other clients of the tenant whose id tokens are accepted, such as a mobile app. */
export const additionalClientIds = names.optional();

/** better-auth's options that all providers share. */
export const shared = {
  prompt: oneOf("select_account", "consent", "login", "none", "select_account consent"),
  disableDefaultScope: flag,
  disableSignUp: stricter,
  disableImplicitSignUp: stricter,
  disableIdTokenSignIn: stricter,
  // Not set in `options`, because a config has columns for these.
  clientId: null,
  clientKey: null,
  clientSecret: null,
  redirectURI: null,
  scope: null,
  // Only the application can set these.
  authorizationEndpoint: null,
  getUserInfo: null,
  mapProfileToUser: null,
  overrideUserInfoOnSignIn: null,
  refreshAccessToken: null,
  requireEmailVerification: null,
  responseMode: null,
  verifyIdToken: null,
} satisfies { [Key in keyof ProviderOptions]-?: Rule<ProviderOptions[Key]> };

/**
 * better-auth's built-in providers. TypeScript reports an error if a provider with extra options,
 * or an option that better-auth adds, is missing. A provider that is not in this table takes a
 * client id, a secret and the shared options.
 */
const providerTable = {
  apple: {
    options: {
      appBundleIdentifier: name.optional(),
      audience: z.union([name, names.min(1)]).optional(),
    },
    clientId: "first of several",
    issuer: "https://appleid.apple.com",
  },
  cloudflare: {
    options: {
      tokenEndpointAuth: null,
      tokenEndpointAuthMethod: oneOf("client_secret_basic", "client_secret_post"),
    },
  },
  cognito: {
    options: {
      domain: host,
      region: matching(/^[a-z]{2}(-[a-z]{2,12}){1,3}-\d{1,2}$/, "is not a region of AWS"),
      userPoolId: matching(/^[a-z0-9-]{1,32}_[A-Za-z0-9]{1,64}$/, "is not a user pool id"),
      identityProvider: name.optional(),
      requireClientSecret: null,
    },
    hosts: { domain: ["*.amazoncognito.com"] },
    location: ["domain", "region", "userPoolId", "identityProvider"],
    clientId: "first of several",
    discovery: ({ region, userPoolId }) =>
      `https://cognito-idp.${region}.amazonaws.com/${userPoolId}`,
  },
  discord: { options: { permissions: z.int().min(0).optional() } },
  dropbox: { options: { accessType: oneOf("offline", "online", "legacy") } },
  facebook: {
    options: { fields: words, configId: name.optional() },
    clientId: "first of several",
    discovery: "https://www.facebook.com",
  },
  gitlab: {
    options: { issuer: address.optional() },
    addresses: { issuer: ["gitlab.com"] },
    location: ["issuer"],
    issuer: ({ issuer = "https://gitlab.com" }) => `${issuer}`,
  },
  google: {
    options: {
      accessType: oneOf("offline", "online"),
      display: oneOf("page", "popup", "touch", "wap"),
      hd: matching(/^(\*|[a-z0-9-]+(\.[a-z0-9-]+)+)$/i, "is not a domain").optional(),
      includeGrantedScopes: flag,
    },
    clientId: "first of several",
    issuer: "https://accounts.google.com",
  },
  huggingface: { options: {}, issuer: "https://huggingface.co" },
  kakao: { options: {}, issuer: "https://kauth.kakao.com" },
  line: { options: {}, issuer: "https://access.line.me" },
  linkedin: { options: {}, discovery: "https://www.linkedin.com/oauth" },
  microsoft: {
    options: {
      tenantId: matching(/^[a-z0-9][a-z0-9.-]{0,127}$/i, "is not a directory tenant").optional(),
      authority: address.optional(),
      clientAssertion: null,
      profilePhotoSize: z.literal([48, 64, 96, 120, 240, 360, 432, 504, 648]).optional(),
      disableProfilePhoto: flag,
    },
    addresses: {
      authority: [
        "login.microsoftonline.com",
        "login.microsoftonline.us",
        "login.partner.microsoftonline.cn",
        // B2C needs a path: it is the directory, and `tenantId` holds the user flow.
        "*.b2clogin.com/*",
        "*.ciamlogin.com",
      ],
    },
    location: ["tenantId", "authority"],
    clientId: "first of several",
    discovery: ({ authority = "https://login.microsoftonline.com", tenantId = "common" }) =>
      `${authority}/${tenantId}/v2.0`,
  },
  paybin: {
    options: { issuer: address.optional() },
    addresses: { issuer: ["idp.paybin.io"] },
    location: ["issuer"],
    issuer: ({ issuer = "https://idp.paybin.io" }) => `${issuer}`,
  },
  paypal: {
    options: { environment: oneOf("sandbox", "live"), requestShippingAddress: flag },
    location: ["environment"],
  },
  reddit: { options: { duration: oneOf("temporary", "permanent") } },
  roblox: { options: {}, discovery: "https://apis.roblox.com/oauth" },
  salesforce: {
    options: { environment: oneOf("sandbox", "production"), loginUrl: host.optional() },
    hosts: { loginUrl: ["*.salesforce.com", "*.my.site.com"] },
    location: ["environment", "loginUrl"],
    discovery: ({ environment, loginUrl }) => {
      const usual = environment === "sandbox" ? "test.salesforce.com" : "login.salesforce.com";
      return `https://${loginUrl ?? usual}`;
    },
  },
  slack: { options: {}, issuer: "https://slack.com" },
  tiktok: { options: {}, clientId: "key" },
  twitch: { options: { claims: words }, issuer: "https://id.twitch.tv/oauth2" },
  vercel: { options: { tokenEndpointAuth: null }, issuer: "https://vercel.com" },
  vk: { options: { scheme: oneOf("light", "dark") } },
  wechat: { options: { platformType: oneOf("WebsiteApp"), lang: oneOf("cn", "en") } },
  zoom: { options: { pkce: null } },
} satisfies { [Id in WithOwnOptions]: Entry<Id> } & { [Id in ProviderId]?: Entry<Id> };

type WithOwnOptions = { [Id in ProviderId]: OwnKey<Id> extends never ? never : Id }[ProviderId];
type EntryOf<Id> = Id extends keyof typeof providerTable
  ? (typeof providerTable)[Id]
  : typeof PLAIN;

type Settable<Rules> = {
  [Key in keyof Rules as Rules[Key] extends z.ZodType ? Key : never]?:
    | z.input<Extract<Rules[Key], z.ZodType>>
    | undefined;
};

/** Options that a tenant can set for a built-in provider: `options` of its OAuth config. */
export type TenantOAuthOptions<Id extends ProviderId> = Settable<
  typeof shared & EntryOf<Id>["options"]
> &
  (EntryOf<Id> extends { clientId: "first of several" }
    ? Settable<{ additionalClientIds: typeof additionalClientIds }>
    : unknown);

export type ProviderEntry = {
  options: Record<string, Rule<unknown>>;
  addresses?: Record<string, string[]>;
  hosts?: Record<string, string[]>;
  location?: string[];
  clientId?: "first of several" | "key";
  issuer?: Address;
  discovery?: Address;
};

export function entryOf(id: string): ProviderEntry {
  const known: Record<string, ProviderEntry> = providerTable;
  return Object.hasOwn(known, id) ? (known[id] as ProviderEntry) : PLAIN;
}
