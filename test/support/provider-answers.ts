import { type SocialProviderList, socialProviderList } from "better-auth/social-providers";
import { claimsIn, publishedKeys } from "./providers";

export type ProviderId = SocialProviderList[number];

/** Somebody with an account at a provider. */
export interface ProviderPerson {
  number: number;
  id: string;
  email: string;
  firstName: string;
  lastName: string;
  name: string;
  picture: string;
}

/** What a provider knows an application by. */
export interface ProviderClient {
  clientId: string;
  clientSecret: string;
}

type Claims = (person: ProviderPerson) => Record<string, unknown>;
type Params = Record<string, string>;

/** How a client id and its secret travel to a provider: in the form, in the header, in the query. */
export type Credentials = "form" | "basic" | "form, as client_key" | "query" | "query, id alone";

interface Profile {
  /** The rest of the query, or the form. */
  params?: (grant: ProviderClient & { accessToken: string; person: ProviderPerson }) => Params;
  /** Whether the access token travels in the header; it does unless told. */
  bearer?: boolean;
  answer: (person: ProviderPerson, client: ProviderClient) => unknown;
}

/** Who somebody is afterwards, in the database. */
type ProviderUser = ReturnType<typeof unverified>;

interface IdTokenSignIn {
  /** What is asked to check the token: the provider's keys, or the provider itself. */
  request: string;
  answer: (form: Params) => unknown;
  /** The form that goes there. */
  form?: (token: string, client: ProviderClient, nonce?: string) => Params;
  /** What the token says besides its audience and nonce. */
  claims: Claims;
  /** What a token of another place says differently. LINE is asked itself, and knows its own. */
  elsewhere?: Record<string, unknown>;
  /** What a token cannot tell is not in the user. */
  user?: (person: ProviderPerson) => Partial<ProviderUser>;
  /** The token may carry the nonce as a hash. */
  hashesNonce?: true;
  /** A provider that stays, as the application's does, asks once. */
  remembersKeys?: true;
}

/** How a provider is asked, and what it answers, where that is not as with most. */
interface Spec {
  /** What it is configured with besides credentials. */
  options?: Record<string, unknown>;
  /** The server that a tenant's accounts are bound to, if it is not where the provider usually is. */
  server?: string;
  /** Words with blanks between. */
  scopes?: string;
  /** What it calls the client id; what stands between scopes, or null where they are never sent. */
  asks?: { clientId?: string; scopeSeparator?: "," | null };
  /** TikTok gets the verifier of a challenge that it was never told. */
  pkce?: boolean | "verifier alone";
  credentials?: Credentials;
  /** What goes along with a code, besides what OAuth wants. */
  extra?: Params;
  /** The claims of the id token that comes with the access token, and what else comes with it. */
  idToken?: Claims;
  tokens?: Claims;
  /** What a browser brings back besides code and state. */
  callback?: (person: ProviderPerson) => Params;
  /** The way back is a form that the provider's own site sends. */
  formPost?: { origin: string };
  /** What is asked with the access token, in order: method and address, and the answer. */
  profile?: Record<string, Profile | Profile["answer"]>;
  user?: (person: ProviderPerson) => ProviderUser;
  /** Where it is not as the exchange; null where better-auth cannot refresh. */
  refresh?: { address?: string; credentials?: Credentials; extra?: Params } | null;
  /** Where better-auth takes an id token from a client. */
  idTokenSignIn?: IdTokenSignIn;
}

/** One provider, seen from outside: where it is asked what, and what it answers. */
export type ProviderAnswers = ReturnType<typeof provider>;

/** A provider by where people are sent to, and from there where their codes go. */
function provider(start: string, token: string, spec: Spec) {
  const { scopes, asks, credentials = "form", extra, profile = {}, refresh, ...rest } = spec;
  const { origin, pathname, searchParams } = new URL(`https://${start.replace("https://", "")}`);
  const exchange = { address: new URL(token, origin).href, credentials };
  return {
    ...rest,
    pkce: spec.pkce ?? true,
    user: spec.user ?? verified,
    authorization: {
      address: `${origin}${pathname}`,
      scopes: scopes?.split(" ") ?? [],
      ...asks,
      /** The rest of the query, without state and PKCE. */
      query: Object.fromEntries(searchParams) as Params,
    },
    exchange: { ...exchange, extra },
    profile: Object.entries(profile).map(([request, asked]): Profile & { request: string } => ({
      request: request.replace(/\S+$/, (address) => new URL(address, origin).href),
      ...(typeof asked === "function" ? { answer: asked } : asked),
    })),
    refresh: refresh === null ? null : { ...exchange, extra: undefined, ...refresh },
  };
}

const unverified = ({ id, email, name, picture }: ProviderPerson) => ({
  accountId: id,
  email,
  name,
  image: picture as string | null,
  emailVerified: false,
});

const verified = (person: ProviderPerson) => ({ ...unverified(person), emailVerified: true });
const faceless = (person: ProviderPerson) => ({ ...verified(person), image: null });

/** Who is known without an address. */
const without = (provider: string) => (person: ProviderPerson) => ({
  ...unverified(person),
  email: `${person.id}@${provider}.placeholder.invalid`,
});

/** What a provider tells of somebody, in its own words: `login=name`, or `data.state:active`. */
const told = (words: string) => (person: ProviderPerson) => {
  const answer = {};
  for (const word of words.split(" ")) {
    const [, path = "", kind, what] = /^([\w.]+)([=:]?)(.*)$/.exec(word) ?? [];
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    const inner = keys.reduce<Record<string, unknown>>((outer, key) => {
      outer[key] ??= {};
      return outer[key] as Record<string, unknown>;
    }, answer);
    const ours = (what || last) as keyof ProviderPerson;
    inner[last] = kind === ":" ? (ours in constants ? constants[ours] : what) : person[ours];
  }
  return answer;
};
const constants: Record<string, unknown> = { true: true, false: false, null: null, "1": 1 };

/** What OpenID Connect calls things. */
const claims = told("sub=id email email_verified:true name picture");

/** Id tokens that anybody can check with the keys at an address. */
const signedBy = (iss: string, keys: string, more: Partial<IdTokenSignIn> = {}): IdTokenSignIn => ({
  request: `GET ${keys}`,
  answer: () => publishedKeys,
  claims: (person) => ({ iss, ...claims(person) }),
  elsewhere: { iss: iss.replace(".com", ".example") },
  ...more,
});

/** A user pool lives under a domain of its own. */
function cognitoAt(domain: string, region: string, userPoolId: string): ProviderAnswers {
  const issuer = `https://cognito-idp.${region}.amazonaws.com`;
  return provider(`${domain}/oauth2/authorize`, `https://${domain}/oauth2/token`, {
    options: { domain, region, userPoolId },
    scopes: "openid profile email",
    idToken: claims,
    idTokenSignIn: signedBy(
      `${issuer}/${userPoolId}`,
      `${issuer}/${userPoolId}/.well-known/jwks.json`,
      { elsewhere: { iss: `${issuer}/${region}_Else` } },
    ),
  });
}

export const gitlabAt = (issuer: string) =>
  provider(`${issuer}/oauth/authorize`, `${issuer}/oauth/token`, {
    scopes: "read_user",
    profile: {
      [`GET ${issuer}/api/v4/user`]: told(
        "id=number email name avatar_url=picture email_verified:true username:somebody state:active locked:false",
      ),
    },
  });

/** A directory at Microsoft, which it calls a tenant. */
export const DIRECTORY = "6babcaad-604b-40ac-a9d7-9fd97c0b779f";
const OTHER_DIRECTORY = "72f988bf-86f1-41af-91ab-2d7cd011db47";

/** The Microsoft account class, a directory or the whole of it, is part of the address. */
export function microsoftAt(directory: string): ProviderAnswers {
  const { origin } = new URL(directory);
  const scope = "openid profile email User.Read offline_access";
  const token = (person: ProviderPerson) => ({
    ...told("oid=id email name")(person),
    sub: `pairwise-${person.id}`,
  });
  const issuedBy = (tid: string) => ({ tid, iss: `${origin}/${tid}/v2.0` });
  return provider(`${directory}/oauth2/v2.0/authorize`, `${directory}/oauth2/v2.0/token`, {
    scopes: scope,
    idToken: (person) => ({ ...token(person), verified_primary_email: [person.email] }),
    profile: {
      "GET https://graph.microsoft.com/v1.0/me/photos/48x48/$value": () =>
        new Response("photo", { headers: { "content-type": "image/jpeg" } }),
    },
    user: (person) => ({ ...verified(person), image: `data:image/jpeg;base64, ${btoa("photo")}` }),
    refresh: { extra: { scope } },
    idTokenSignIn: signedBy(origin, `${directory}/discovery/v2.0/keys`, {
      claims: (person) => ({ ...issuedBy(DIRECTORY), ...token(person) }),
      // Where every directory is welcome, a token still has to name its own.
      elsewhere: directory.endsWith(DIRECTORY)
        ? issuedBy(OTHER_DIRECTORY)
        : { tid: OTHER_DIRECTORY },
      user: () => ({ image: null, emailVerified: false }),
    }),
  });
}

const paybinAt = (issuer: string) =>
  provider(`${issuer}/oauth2/authorize`, `${issuer}/oauth2/token`, {
    scopes: "openid email profile",
    idToken: claims,
  });

const paypalAt = (site: string, api: string) =>
  provider(`${site}/signin/authorize`, `${api}/v1/oauth2/token`, {
    asks: { scopeSeparator: null },
    credentials: "basic",
    idToken: ({ id }) => ({ sub: id }),
    profile: {
      [`GET ${api}/v1/identity/oauth2/userinfo?schema=paypalv1.1`]: (person) => ({
        user_id: person.id,
        ...claims(person),
      }),
    },
  });

export const salesforceAt = (host: string) =>
  provider(`${host}/services/oauth2/authorize`, `https://${host}/services/oauth2/token`, {
    scopes: "openid email profile",
    profile: {
      [`GET https://${host}/services/oauth2/userinfo`]: (person) => ({
        ...told("user_id=id email name email_verified:true photos.picture=picture")(person),
        sub: `https://login.salesforce.com/id/00D/${person.id}`,
      }),
    },
  });

const twitchClaims = (...names: string[]) => {
  const asked = ["email", "email_verified", ...names].map((name) => [name, null]);
  return JSON.stringify({ id_token: Object.fromEntries(asked) });
};

/** Every built-in provider as it is without options; one that better-auth adds is a type error. */
export const providerAnswers: Record<ProviderId, ProviderAnswers> = {
  apple: provider(
    "appleid.apple.com/auth/authorize?response_type=code+id_token&response_mode=form_post",
    "/auth/token",
    {
      scopes: "email name",
      idToken: ({ id, email }) => ({ sub: id, email, email_verified: "true" }),
      formPost: { origin: "https://appleid.apple.com" },
      // Apple tells the name once, and only here.
      callback: ({ firstName, lastName, email }) => ({
        user: JSON.stringify({ name: { firstName, lastName }, email }),
      }),
      user: faceless,
      idTokenSignIn: signedBy("https://appleid.apple.com", "https://appleid.apple.com/auth/keys", {
        user: () => ({ image: null }),
        hashesNonce: true,
      }),
    },
  ),
  atlassian: provider("auth.atlassian.com/authorize?audience=api.atlassian.com", "/oauth/token", {
    scopes: "read:jira-user offline_access",
    profile: { "GET //api.atlassian.com/me": told("account_id=id email name picture") },
    user: unverified,
  }),
  cloudflare: provider("dash.cloudflare.com/oauth2/auth", "/oauth2/token", {
    scopes: "user-details.read",
    credentials: "basic",
    profile: {
      "GET //api.cloudflare.com/client/v4/user": told(
        "success:true result.id=id result.email=email result.first_name=firstName result.last_name=lastName",
      ),
    },
    user: (person) => ({ ...unverified(person), image: null }),
  }),
  cognito: cognitoAt("app.auth.eu-west-1.amazoncognito.com", "eu-west-1", "eu-west-1_App"),
  discord: provider("discord.com/api/oauth2/authorize?prompt=none", "/api/oauth2/token", {
    scopes: "identify email",
    pkce: false,
    profile: {
      "GET /api/users/@me": told(
        "id email global_name=name verified:true username:somebody discriminator:0 avatar:a_moving",
      ),
    },
    user: (person) => ({
      ...verified(person),
      image: `https://cdn.discordapp.com/avatars/${person.id}/a_moving.gif`,
    }),
  }),
  dropbox: provider("www.dropbox.com/oauth2/authorize", "//api.dropboxapi.com/oauth2/token", {
    scopes: "account_info.read",
    profile: {
      "POST //api.dropboxapi.com/2/users/get_current_account": told(
        "account_id=id email profile_photo_url=picture email_verified:true name.display_name=name",
      ),
    },
  }),
  facebook: provider(
    "www.facebook.com/v24.0/dialog/oauth",
    "//graph.facebook.com/v24.0/oauth/access_token",
    {
      scopes: "email public_profile",
      pkce: false,
      profile: {
        // Whose token is this? The application shows its own credentials to ask.
        "GET //graph.facebook.com/debug_token": {
          params: ({ accessToken, clientId, clientSecret }) => ({
            input_token: accessToken,
            access_token: `${clientId}|${clientSecret}`,
          }),
          bearer: false,
          answer: ({ id }, { clientId }) => ({
            data: { is_valid: true, app_id: clientId, user_id: id },
          }),
        },
        "GET //graph.facebook.com/me?fields=id,name,email,picture": told(
          "id name email picture.data.url=picture",
        ),
      },
      user: unverified,
      idTokenSignIn: signedBy(
        "https://www.facebook.com",
        "https://limited.facebook.com/.well-known/oauth/openid/jwks/",
        { remembersKeys: true },
      ),
    },
  ),
  figma: provider("www.figma.com/oauth", "//api.figma.com/v1/oauth/token", {
    scopes: "current_user:read",
    credentials: "basic",
    profile: { "GET //api.figma.com/v1/me": told("id email handle=name img_url=picture") },
    user: unverified,
  }),
  github: provider("github.com/login/oauth/authorize", "/login/oauth/access_token", {
    scopes: "read:user user:email",
    profile: {
      // Who hides their address has it in the list alone.
      "GET //api.github.com/user": told(
        "id=number name avatar_url=picture login:somebody email:null",
      ),
      "GET //api.github.com/user/emails": ({ email }) => [
        { email: "old@example.com", primary: false, verified: false },
        { email, primary: true, verified: true },
      ],
    },
  }),
  gitlab: gitlabAt("https://gitlab.com"),
  google: provider(
    "accounts.google.com/o/oauth2/v2/auth?include_granted_scopes=true",
    "//oauth2.googleapis.com/token",
    {
      scopes: "email profile openid",
      idToken: claims,
      idTokenSignIn: signedBy(
        "https://accounts.google.com",
        "https://www.googleapis.com/oauth2/v3/certs",
      ),
    },
  ),
  huggingface: provider("huggingface.co/oauth/authorize", "/oauth/token", {
    scopes: "openid profile email",
    profile: { "GET /oauth/userinfo": claims },
  }),
  kakao: provider("kauth.kakao.com/oauth/authorize", "/oauth/token", {
    scopes: "account_email profile_image profile_nickname",
    pkce: false,
    profile: {
      "GET //kapi.kakao.com/v2/user/me": told(
        "id=number kakao_account.email=email kakao_account.is_email_valid:true kakao_account.is_email_verified:true kakao_account.profile.nickname=name kakao_account.profile.profile_image_url=picture",
      ),
    },
  }),
  kick: provider("id.kick.com/oauth/authorize", "/oauth/token", {
    scopes: "user:read",
    profile: {
      "GET //api.kick.com/public/v1/users": (person) => ({
        data: [told("user_id=number email name profile_picture=picture")(person)],
      }),
    },
    user: unverified,
  }),
  line: provider("access.line.me/oauth2/v2.1/authorize", "//api.line.me/oauth2/v2.1/token", {
    scopes: "openid profile email",
    idToken: claims,
    user: unverified,
    idTokenSignIn: {
      request: "POST https://api.line.me/oauth2/v2.1/verify",
      form: (token, { clientId }, nonce) => ({
        id_token: token,
        client_id: clientId,
        ...(nonce && { nonce }),
      }),
      answer: ({ id_token = "", client_id, nonce }) => {
        const said = claimsIn(id_token);
        const good = said.aud === client_id && (nonce === undefined || said.nonce === nonce);
        return good ? said : Response.json({ error: "invalid_request" }, { status: 400 });
      },
      claims: (person) => ({ iss: "https://access.line.me", ...claims(person) }),
    },
  }),
  linear: provider("linear.app/oauth/authorize", "//api.linear.app/oauth/token", {
    scopes: "read",
    pkce: false,
    profile: {
      "POST //api.linear.app/graphql": {
        params: () => ({
          query: "query { viewer { id name email avatarUrl active createdAt updatedAt } }",
        }),
        answer: (person) => ({
          data: { viewer: told("id email name avatarUrl=picture active:true")(person) },
        }),
      },
    },
    user: unverified,
  }),
  linkedin: provider("www.linkedin.com/oauth/v2/authorization", "/oauth/v2/accessToken", {
    scopes: "profile email openid",
    pkce: false,
    profile: { "GET //api.linkedin.com/v2/userinfo": claims },
  }),
  microsoft: microsoftAt("https://login.microsoftonline.com/common"),
  naver: provider("nid.naver.com/oauth2.0/authorize", "/oauth2.0/token", {
    scopes: "profile email",
    pkce: false,
    profile: {
      "GET //openapi.naver.com/v1/nid/me": told(
        "resultcode:00 message:success response.id=id response.email=email response.name=name response.profile_image=picture",
      ),
    },
    user: unverified,
  }),
  notion: provider("api.notion.com/v1/oauth/authorize?owner=user", "/v1/oauth/token", {
    pkce: false,
    credentials: "basic",
    profile: {
      "GET /v1/users/me": ({ id, email, name, picture }) => {
        const user = { id, name, avatar_url: picture, person: { email } };
        return { object: "user", type: "bot", bot: { owner: { type: "user", user } } };
      },
    },
    user: unverified,
    refresh: { credentials: "form" },
  }),
  paybin: paybinAt("https://idp.paybin.io"),
  paypal: paypalAt("https://www.sandbox.paypal.com", "https://api-m.sandbox.paypal.com"),
  polar: provider("polar.sh/oauth2/authorize", "//api.polar.sh/v1/oauth2/token", {
    scopes: "openid profile email",
    profile: {
      "GET //api.polar.sh/v1/oauth2/userinfo": told(
        "id email public_name=name avatar_url=picture email_verified:true username:somebody",
      ),
    },
  }),
  railway: provider("backboard.railway.com/oauth/auth", "/oauth/token", {
    scopes: "openid email profile",
    credentials: "basic",
    profile: { "GET /oauth/me": claims },
    user: unverified,
  }),
  reddit: provider("www.reddit.com/api/v1/authorize", "/api/v1/access_token", {
    scopes: "identity",
    pkce: false,
    credentials: "basic",
    profile: {
      "GET //oauth.reddit.com/api/v1/me": (person) => ({
        ...told("id name")(person),
        icon_img: `${person.picture}?width=256`,
      }),
    },
    user: without("reddit"),
  }),
  roblox: provider(
    "apis.roblox.com/oauth/v1/authorize?prompt=select_account+consent",
    "/oauth/v1/token",
    {
      scopes: "openid profile",
      pkce: false,
      profile: { "GET /oauth/v1/userinfo": told("sub=id nickname=name picture") },
      user: without("roblox"),
    },
  ),
  salesforce: salesforceAt("login.salesforce.com"),
  slack: provider("slack.com/openid/connect/authorize", "/api/openid.connect.token", {
    scopes: "openid profile email",
    pkce: false,
    profile: {
      "GET /api/openid.connect.userInfo": (person) => ({
        ok: true,
        ...claims(person),
        "https://slack.com/user_id": person.id,
      }),
    },
  }),
  spotify: provider("accounts.spotify.com/authorize", "/api/token", {
    scopes: "user-read-email",
    profile: {
      "GET //api.spotify.com/v1/me": (person) => ({
        ...told("id email display_name=name")(person),
        images: [{ url: person.picture }],
      }),
    },
    user: unverified,
  }),
  tiktok: provider("www.tiktok.com/v2/auth/authorize", "//open.tiktokapis.com/v2/oauth/token/", {
    asks: { clientId: "client_key", scopeSeparator: "," },
    scopes: "user.info.profile",
    pkce: "verifier alone",
    credentials: "form, as client_key",
    profile: {
      "GET //open.tiktokapis.com/v2/user/info/?fields=open_id,avatar_large_url,display_name,username":
        told(
          "data.user.open_id=id data.user.display_name=name data.user.avatar_large_url=picture error.code:ok",
        ),
    },
    user: without("tiktok"),
  }),
  twitch: provider(
    `id.twitch.tv/oauth2/authorize?claims=${twitchClaims("preferred_username", "picture")}`,
    "/oauth2/token",
    {
      scopes: "user:read:email openid",
      pkce: false,
      idToken: (person) => ({ ...claims(person), preferred_username: person.name }),
    },
  ),
  twitter: provider("x.com/i/oauth2/authorize", "//api.x.com/2/oauth2/token", {
    scopes: "users.read tweet.read offline.access users.email",
    credentials: "basic",
    profile: {
      "GET //api.x.com/2/users/me?user.fields=profile_image_url": told(
        "data.id=id data.name=name data.profile_image_url=picture data.username:somebody",
      ),
      "GET //api.x.com/2/users/me?user.fields=confirmed_email": told(
        "data.id=id data.confirmed_email=email",
      ),
    },
  }),
  vercel: provider("vercel.com/oauth/authorize", "//api.vercel.com/login/oauth/token", {
    profile: { "GET //api.vercel.com/login/oauth/userinfo": claims },
    refresh: null,
  }),
  vk: provider("id.vk.com/authorize", "/oauth2/auth", {
    scopes: "email phone",
    extra: { device_id: "device-of-somebody" },
    callback: () => ({ device_id: "device-of-somebody" }),
    profile: {
      "POST /oauth2/user_info": {
        params: ({ accessToken, clientId }) => ({ access_token: accessToken, client_id: clientId }),
        bearer: false,
        answer: told(
          "user.user_id=id user.email=email user.first_name=firstName user.last_name=lastName user.avatar=picture",
        ),
      },
    },
    user: unverified,
  }),
  wechat: provider(
    "open.weixin.qq.com/connect/qrconnect?lang=cn",
    "//api.weixin.qq.com/sns/oauth2/access_token",
    {
      asks: { clientId: "appid", scopeSeparator: "," },
      scopes: "snsapi_login",
      pkce: false,
      credentials: "query",
      tokens: ({ id }) => ({ openid: `open-${id}`, unionid: id, scope: "snsapi_login" }),
      profile: {
        "GET //api.weixin.qq.com/sns/userinfo?lang=zh_CN": {
          params: ({ accessToken, person }) => ({
            access_token: accessToken,
            openid: `open-${person.id}`,
          }),
          bearer: false,
          answer: (person) => ({
            ...told("unionid=id nickname=name headimgurl=picture")(person),
            openid: `open-${person.id}`,
          }),
        },
      },
      user: without("wechat"),
      refresh: {
        address: "https://api.weixin.qq.com/sns/oauth2/refresh_token",
        credentials: "query, id alone",
      },
    },
  ),
  zoom: provider("zoom.us/oauth/authorize", "/oauth/token", {
    asks: { scopeSeparator: null },
    profile: {
      "GET //api.zoom.us/v2/users/me": told(
        "id email display_name=name pic_url=picture verified:1",
      ),
    },
  }),
};

/** A provider under the name that a table prints, with the options that its answers belong to. */
export interface ProviderRow {
  name: string;
  provider: ProviderId;
  answers: ProviderAnswers;
  /** The default is in the first round; the first variant of each provider in the next one. */
  round: number;
}

/** Hosts that are no provider's own, and have to be on the application's list. */
export const TRUSTED_HOSTS = ["gitlab.acme.example", "login.acme.example", "*.pay.example"];

const { cloudflare, dropbox, facebook, github, google, reddit, twitch, wechat } = providerAnswers;
const pool = cognitoAt("acme.auth.us-east-2.amazoncognito.com", "us-east-2", "us-east-2_Acme");
const ownDomain = cognitoAt("login.acme.example", "eu-central-1", "eu-central-1_Acme");
const directory = microsoftAt(`https://login.microsoftonline.com/${DIRECTORY}`);
const inForm = { ...cloudflare.exchange, credentials: "form" as const };

type Change = Partial<ProviderAnswers> & { query?: Params };
const variant = (answers: ProviderAnswers, { query, ...change }: Change): ProviderAnswers => ({
  ...answers,
  authorization: { ...answers.authorization, ...(query && { query }) },
  ...change,
});
const asking = ({ profile }: ProviderAnswers, usual: string, now: string) =>
  profile.map((asked) => ({ ...asked, request: asked.request.replace(usual, now) }));

/** Providers that live elsewhere, or are asked in another way, because an option says so. */
const providerVariants: Record<string, ProviderAnswers> = {
  "cloudflare, secret in the form": variant(cloudflare, {
    options: { tokenEndpointAuthMethod: "client_secret_post" },
    exchange: inForm,
    refresh: inForm,
  }),
  "cognito, another pool": variant(pool, {
    options: { ...pool.options, identityProvider: "AcmeSAML" },
    query: { identity_provider: "AcmeSAML" },
  }),
  // A pool whose clients may not ask for openid gives no id token.
  "cognito, own domain": variant(ownDomain, {
    server: "login.acme.example",
    idToken: undefined,
    profile: [{ request: "GET https://login.acme.example/oauth2/userinfo", answer: claims }],
  }),
  "dropbox, offline": variant(dropbox, {
    options: { accessType: "offline" },
    query: { token_access_type: "offline" },
  }),
  "facebook, login configuration": variant(facebook, {
    options: { configId: "4711", fields: ["locale", "timezone"] },
    query: { config_id: "4711" },
    profile: asking(facebook, "picture", "picture,locale,timezone"),
  }),
  "github, no default scopes": variant(github, {
    options: { disableDefaultScope: true, prompt: "select_account" },
    authorization: { ...github.authorization, scopes: [], query: { prompt: "select_account" } },
  }),
  "gitlab, self-hosted": variant(gitlabAt("https://gitlab.acme.example/git"), {
    options: { issuer: "https://gitlab.acme.example/git" },
    server: "https://gitlab.acme.example/git",
  }),
  "google, hosted domain": variant(google, {
    options: {
      hd: "acme.example",
      accessType: "offline",
      display: "popup",
      includeGrantedScopes: false,
      prompt: "consent",
    },
    query: { hd: "acme.example", access_type: "offline", display: "popup", prompt: "consent" },
    idToken: (person) => ({ ...claims(person), hd: "acme.example" }),
    idTokenSignIn: google.idTokenSignIn && {
      ...google.idTokenSignIn,
      claims: (person) => ({ ...google.idTokenSignIn?.claims(person), hd: "acme.example" }),
      elsewhere: { hd: "other.example" },
    },
  }),
  "microsoft, directory": variant(directory, {
    options: { tenantId: DIRECTORY, disableProfilePhoto: true },
    profile: [],
    user: faceless,
  }),
  "microsoft, own authority": variant(microsoftAt(`https://acme.ciamlogin.com/${DIRECTORY}`), {
    options: {
      tenantId: DIRECTORY,
      authority: "https://acme.ciamlogin.com/",
      profilePhotoSize: 96,
    },
    profile: asking(directory, "48x48", "96x96"),
  }),
  "paybin, own issuer": variant(paybinAt("https://idp.pay.example"), {
    options: { issuer: "https://idp.pay.example" },
    server: "https://idp.pay.example",
  }),
  "paypal, live": variant(paypalAt("https://www.paypal.com", "https://api-m.paypal.com"), {
    options: { environment: "live" },
  }),
  "reddit, permanent": variant(reddit, {
    options: { duration: "permanent" },
    query: { duration: "permanent" },
  }),
  "salesforce, sandbox": variant(salesforceAt("test.salesforce.com"), {
    options: { environment: "sandbox" },
  }),
  "salesforce, own domain": variant(salesforceAt("acme.my.salesforce.com"), {
    options: { loginUrl: "acme.my.salesforce.com" },
  }),
  "twitch, claims": variant(twitch, {
    options: { claims: ["preferred_username"] },
    query: { claims: twitchClaims("preferred_username") },
  }),
  "wechat, in English": variant(wechat, { options: { lang: "en" }, query: { lang: "en" } }),
};

/** Every provider that the installed better-auth has, as it is without options. */
export const defaultRows: ProviderRow[] = socialProviderList.map((provider) => ({
  name: provider,
  provider,
  answers: providerAnswers[provider],
  round: 0,
}));

/** In a round each provider comes once, so that one application can be configured like that. */
export const variantRows: ProviderRow[] = [];
for (const [name, answers] of Object.entries(providerVariants)) {
  const provider = name.replace(/,.*/, "") as ProviderId;
  const before = variantRows.filter((row) => row.provider === provider);
  variantRows.push({ name, provider, answers, round: 1 + before.length });
}
