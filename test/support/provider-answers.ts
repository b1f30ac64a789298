import type { SocialProviderList } from "better-auth/social-providers";
import { claimsIn, publishedKeys } from "./jwt";

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

/** An access token, whose it is, and which application got it. */
interface ProviderGrant extends ProviderClient {
  accessToken: string;
  person: ProviderPerson;
}

/** How a client id and its secret travel to a provider: in the form, in the header, in the query. */
export type Credentials = "form" | "basic" | "form, as client_key" | "query" | "query, id alone";

/** An address that hands out tokens. */
interface TokenAddress {
  address: string;
  credentials: Credentials;
  /** What goes there besides what OAuth wants. */
  extra?: Record<string, string>;
}

interface ProfileRequest {
  /** Method and address, with the part of the query that is always the same. */
  request: string;
  /** The rest of the query, or the form. */
  params?: (grant: ProviderGrant) => Record<string, string>;
  /** Whether the access token travels in the header; it does unless told. */
  bearer?: boolean;
  answer: (person: ProviderPerson, client: ProviderClient) => unknown;
}

/** Who somebody is afterwards, in the database. */
interface ProviderUser {
  accountId: string;
  email: string;
  name: string;
  image: string | null;
  emailVerified: boolean;
}

/** One provider, seen from outside: where it is asked what, and what it answers. */
export interface ProviderAnswers {
  /** What it is configured with besides credentials. */
  options?: Record<string, unknown>;
  /** The server that a tenant's accounts are bound to, if it is not where the provider usually is. */
  server?: string;
  authorization: {
    address: string;
    /** What it calls the client id: client_id unless told. */
    clientId?: string;
    scopes: string[];
    /** What stands between scopes; null where better-auth sends no scopes whatever is asked for. */
    scopeSeparator?: "," | null;
    /** The rest of the query, without state and PKCE. */
    query?: Record<string, string>;
  };
  /** TikTok gets the verifier of a challenge that it was never told. */
  pkce: boolean | "verifier alone";
  exchange: TokenAddress;
  /** The claims of the id token that comes with the access token. */
  idToken?: (person: ProviderPerson) => Record<string, unknown>;
  /** What else comes with the access token. */
  tokens?: (person: ProviderPerson) => Record<string, unknown>;
  /** What a browser brings back besides code and state. */
  callback?: (person: ProviderPerson) => Record<string, string>;
  /** The way back is a form that the provider's own site sends. */
  formPost?: { origin: string };
  /** What is asked with the access token, in order. */
  profile: ProfileRequest[];
  user: (person: ProviderPerson) => ProviderUser;
  /** Null where better-auth cannot refresh. */
  refresh: TokenAddress | null;
  /** Where better-auth takes an id token from a client. */
  idTokenSignIn?: IdTokenSignIn;
}

interface IdTokenSignIn {
  /** What is asked to check the token: the provider's keys, or the provider itself. */
  request: string;
  answer: (form: Record<string, string>) => unknown;
  /** The form that goes there. */
  form?: (token: string, client: ProviderClient, nonce?: string) => Record<string, string>;
  /** What the token says besides its audience and nonce. */
  claims: (person: ProviderPerson) => Record<string, unknown>;
  /** What a token of another place says differently. LINE is asked itself, and knows its own. */
  elsewhere?: Record<string, unknown>;
  /** What a token cannot tell is not in the user. */
  user?: (person: ProviderPerson) => Partial<ProviderUser>;
  /** The token may carry the nonce as a hash. */
  hashesNonce?: true;
  /** A provider that stays, as the application's does, asks once. */
  remembersKeys?: true;
}

const verified = (person: ProviderPerson) => ({ ...unverified(person), emailVerified: true });

const unverified = ({ id, email, name, picture }: ProviderPerson) => ({
  accountId: id,
  email,
  name,
  image: picture,
  emailVerified: false,
});

/** What OpenID Connect calls things. */
const claims = ({ id, email, name, picture }: ProviderPerson) => ({
  sub: id,
  email,
  email_verified: true,
  name,
  picture,
});

const keys = () => publishedKeys;

const apple: ProviderAnswers = {
  authorization: {
    address: "https://appleid.apple.com/auth/authorize",
    scopes: ["email", "name"],
    query: { response_type: "code id_token", response_mode: "form_post" },
  },
  pkce: true,
  exchange: { address: "https://appleid.apple.com/auth/token", credentials: "form" },
  idToken: ({ id, email }) => ({ sub: id, email, email_verified: "true" }),
  formPost: { origin: "https://appleid.apple.com" },
  // Apple tells the name once, and only here.
  callback: ({ firstName, lastName, email }) => ({
    user: JSON.stringify({ name: { firstName, lastName }, email }),
  }),
  profile: [],
  user: (person) => ({ ...verified(person), image: null }),
  refresh: { address: "https://appleid.apple.com/auth/token", credentials: "form" },
  idTokenSignIn: {
    request: "GET https://appleid.apple.com/auth/keys",
    answer: keys,
    claims: (person) => ({ iss: "https://appleid.apple.com", ...claims(person) }),
    elsewhere: { iss: "https://appleid.apple.example" },
    user: () => ({ image: null }),
    hashesNonce: true,
  },
};

const atlassian: ProviderAnswers = {
  authorization: {
    address: "https://auth.atlassian.com/authorize",
    scopes: ["read:jira-user", "offline_access"],
    query: { audience: "api.atlassian.com" },
  },
  pkce: true,
  exchange: { address: "https://auth.atlassian.com/oauth/token", credentials: "form" },
  profile: [
    {
      request: "GET https://api.atlassian.com/me",
      answer: ({ id, email, name, picture }) => ({ account_id: id, email, name, picture }),
    },
  ],
  user: unverified,
  refresh: { address: "https://auth.atlassian.com/oauth/token", credentials: "form" },
};

const cloudflare: ProviderAnswers = {
  authorization: {
    address: "https://dash.cloudflare.com/oauth2/auth",
    scopes: ["user-details.read"],
  },
  pkce: true,
  exchange: { address: "https://dash.cloudflare.com/oauth2/token", credentials: "basic" },
  profile: [
    {
      request: "GET https://api.cloudflare.com/client/v4/user",
      answer: ({ id, email, firstName, lastName }) => ({
        success: true,
        errors: [],
        result: { id, email, first_name: firstName, last_name: lastName },
      }),
    },
  ],
  user: (person) => ({ ...unverified(person), image: null }),
  refresh: { address: "https://dash.cloudflare.com/oauth2/token", credentials: "basic" },
};

/** A user pool lives under a domain of its own. */
export const cognitoAt = (domain: string, region: string, userPoolId: string): ProviderAnswers => ({
  options: { domain, region, userPoolId },
  authorization: {
    address: `https://${domain}/oauth2/authorize`,
    scopes: ["openid", "profile", "email"],
  },
  pkce: true,
  exchange: { address: `https://${domain}/oauth2/token`, credentials: "form" },
  idToken: claims,
  profile: [],
  user: verified,
  refresh: { address: `https://${domain}/oauth2/token`, credentials: "form" },
  idTokenSignIn: {
    request: `GET https://cognito-idp.${region}.amazonaws.com/${userPoolId}/.well-known/jwks.json`,
    answer: keys,
    claims: (person) => ({
      iss: `https://cognito-idp.${region}.amazonaws.com/${userPoolId}`,
      ...claims(person),
    }),
    elsewhere: { iss: `https://cognito-idp.${region}.amazonaws.com/${region}_Else` },
  },
});

const discord: ProviderAnswers = {
  authorization: {
    address: "https://discord.com/api/oauth2/authorize",
    scopes: ["identify", "email"],
    query: { prompt: "none" },
  },
  pkce: false,
  exchange: { address: "https://discord.com/api/oauth2/token", credentials: "form" },
  profile: [
    {
      request: "GET https://discord.com/api/users/@me",
      answer: ({ id, email, name }) => ({
        id,
        email,
        verified: true,
        username: "somebody",
        global_name: name,
        discriminator: "0",
        avatar: "a_moving",
      }),
    },
  ],
  user: (person) => ({
    ...verified(person),
    image: `https://cdn.discordapp.com/avatars/${person.id}/a_moving.gif`,
  }),
  refresh: { address: "https://discord.com/api/oauth2/token", credentials: "form" },
};

const dropbox: ProviderAnswers = {
  authorization: {
    address: "https://www.dropbox.com/oauth2/authorize",
    scopes: ["account_info.read"],
  },
  pkce: true,
  exchange: { address: "https://api.dropboxapi.com/oauth2/token", credentials: "form" },
  profile: [
    {
      request: "POST https://api.dropboxapi.com/2/users/get_current_account",
      answer: ({ id, email, name, picture }) => ({
        account_id: id,
        email,
        email_verified: true,
        name: { display_name: name },
        profile_photo_url: picture,
      }),
    },
  ],
  user: verified,
  refresh: { address: "https://api.dropboxapi.com/oauth2/token", credentials: "form" },
};

const facebook: ProviderAnswers = {
  authorization: {
    address: "https://www.facebook.com/v24.0/dialog/oauth",
    scopes: ["email", "public_profile"],
  },
  pkce: false,
  exchange: {
    address: "https://graph.facebook.com/v24.0/oauth/access_token",
    credentials: "form",
  },
  profile: [
    {
      // Whose token is this? The application shows its own credentials to ask.
      request: "GET https://graph.facebook.com/debug_token",
      params: ({ accessToken, clientId, clientSecret }) => ({
        input_token: accessToken,
        access_token: `${clientId}|${clientSecret}`,
      }),
      bearer: false,
      answer: ({ id }, { clientId }) => ({
        data: { is_valid: true, app_id: clientId, user_id: id },
      }),
    },
    {
      request: "GET https://graph.facebook.com/me?fields=id,name,email,picture",
      answer: ({ id, email, name, picture }) => ({
        id,
        email,
        name,
        picture: { data: { url: picture } },
      }),
    },
  ],
  user: unverified,
  refresh: {
    address: "https://graph.facebook.com/v24.0/oauth/access_token",
    credentials: "form",
  },
  idTokenSignIn: {
    request: "GET https://limited.facebook.com/.well-known/oauth/openid/jwks/",
    answer: keys,
    claims: (person) => ({ iss: "https://www.facebook.com", ...claims(person) }),
    elsewhere: { iss: "https://www.facebook.example" },
    remembersKeys: true,
  },
};

const figma: ProviderAnswers = {
  authorization: { address: "https://www.figma.com/oauth", scopes: ["current_user:read"] },
  pkce: true,
  exchange: { address: "https://api.figma.com/v1/oauth/token", credentials: "basic" },
  profile: [
    {
      request: "GET https://api.figma.com/v1/me",
      answer: ({ id, email, name, picture }) => ({ id, email, handle: name, img_url: picture }),
    },
  ],
  user: unverified,
  refresh: { address: "https://api.figma.com/v1/oauth/token", credentials: "basic" },
};

const github: ProviderAnswers = {
  authorization: {
    address: "https://github.com/login/oauth/authorize",
    scopes: ["read:user", "user:email"],
  },
  pkce: true,
  exchange: { address: "https://github.com/login/oauth/access_token", credentials: "form" },
  profile: [
    {
      request: "GET https://api.github.com/user",
      // Who hides their address has it in the list alone.
      answer: ({ number, name, picture }) => ({
        id: number,
        login: "somebody",
        name,
        email: null,
        avatar_url: picture,
      }),
    },
    {
      request: "GET https://api.github.com/user/emails",
      answer: ({ email }) => [
        { email: "old@example.com", primary: false, verified: false },
        { email, primary: true, verified: true },
      ],
    },
  ],
  user: verified,
  refresh: { address: "https://github.com/login/oauth/access_token", credentials: "form" },
};

export const gitlabAt = (issuer: string): ProviderAnswers => ({
  authorization: { address: `${issuer}/oauth/authorize`, scopes: ["read_user"] },
  pkce: true,
  exchange: { address: `${issuer}/oauth/token`, credentials: "form" },
  profile: [
    {
      request: `GET ${issuer}/api/v4/user`,
      answer: ({ number, email, name, picture }) => ({
        id: number,
        email,
        email_verified: true,
        name,
        username: "somebody",
        avatar_url: picture,
        state: "active",
        locked: false,
      }),
    },
  ],
  user: verified,
  refresh: { address: `${issuer}/oauth/token`, credentials: "form" },
});

const google: ProviderAnswers = {
  authorization: {
    address: "https://accounts.google.com/o/oauth2/v2/auth",
    scopes: ["email", "profile", "openid"],
    query: { include_granted_scopes: "true" },
  },
  pkce: true,
  exchange: { address: "https://oauth2.googleapis.com/token", credentials: "form" },
  idToken: claims,
  profile: [],
  user: verified,
  refresh: { address: "https://oauth2.googleapis.com/token", credentials: "form" },
  idTokenSignIn: {
    request: "GET https://www.googleapis.com/oauth2/v3/certs",
    answer: keys,
    claims: (person) => ({ iss: "https://accounts.google.com", ...claims(person) }),
    elsewhere: { iss: "https://accounts.google.example" },
  },
};

const huggingface: ProviderAnswers = {
  authorization: {
    address: "https://huggingface.co/oauth/authorize",
    scopes: ["openid", "profile", "email"],
  },
  pkce: true,
  exchange: { address: "https://huggingface.co/oauth/token", credentials: "form" },
  profile: [{ request: "GET https://huggingface.co/oauth/userinfo", answer: claims }],
  user: verified,
  refresh: { address: "https://huggingface.co/oauth/token", credentials: "form" },
};

const kakao: ProviderAnswers = {
  authorization: {
    address: "https://kauth.kakao.com/oauth/authorize",
    scopes: ["account_email", "profile_image", "profile_nickname"],
  },
  pkce: false,
  exchange: { address: "https://kauth.kakao.com/oauth/token", credentials: "form" },
  profile: [
    {
      request: "GET https://kapi.kakao.com/v2/user/me",
      answer: ({ number, email, name, picture }) => ({
        id: number,
        kakao_account: {
          email,
          is_email_valid: true,
          is_email_verified: true,
          profile: { nickname: name, profile_image_url: picture },
        },
      }),
    },
  ],
  user: verified,
  refresh: { address: "https://kauth.kakao.com/oauth/token", credentials: "form" },
};

const kick: ProviderAnswers = {
  authorization: { address: "https://id.kick.com/oauth/authorize", scopes: ["user:read"] },
  pkce: true,
  exchange: { address: "https://id.kick.com/oauth/token", credentials: "form" },
  profile: [
    {
      request: "GET https://api.kick.com/public/v1/users",
      answer: ({ number, email, name, picture }) => ({
        data: [{ user_id: number, email, name, profile_picture: picture }],
      }),
    },
  ],
  user: unverified,
  refresh: { address: "https://id.kick.com/oauth/token", credentials: "form" },
};

const line: ProviderAnswers = {
  authorization: {
    address: "https://access.line.me/oauth2/v2.1/authorize",
    scopes: ["openid", "profile", "email"],
  },
  pkce: true,
  exchange: { address: "https://api.line.me/oauth2/v2.1/token", credentials: "form" },
  idToken: claims,
  profile: [],
  user: unverified,
  refresh: { address: "https://api.line.me/oauth2/v2.1/token", credentials: "form" },
  idTokenSignIn: {
    request: "POST https://api.line.me/oauth2/v2.1/verify",
    form: (token, { clientId }, nonce) => ({
      id_token: token,
      client_id: clientId,
      ...(nonce && { nonce }),
    }),
    answer: ({ id_token = "", client_id, nonce }) => {
      const told = claimsIn(id_token);
      const good = told.aud === client_id && (nonce === undefined || told.nonce === nonce);
      return good ? told : Response.json({ error: "invalid_request" }, { status: 400 });
    },
    claims: (person) => ({ iss: "https://access.line.me", ...claims(person) }),
  },
};

const linear: ProviderAnswers = {
  authorization: { address: "https://linear.app/oauth/authorize", scopes: ["read"] },
  pkce: false,
  exchange: { address: "https://api.linear.app/oauth/token", credentials: "form" },
  profile: [
    {
      request: "POST https://api.linear.app/graphql",
      params: () => ({
        query: "query { viewer { id name email avatarUrl active createdAt updatedAt } }",
      }),
      answer: ({ id, email, name, picture }) => ({
        data: { viewer: { id, email, name, avatarUrl: picture, active: true } },
      }),
    },
  ],
  user: unverified,
  refresh: { address: "https://api.linear.app/oauth/token", credentials: "form" },
};

const linkedin: ProviderAnswers = {
  authorization: {
    address: "https://www.linkedin.com/oauth/v2/authorization",
    scopes: ["profile", "email", "openid"],
  },
  pkce: false,
  exchange: { address: "https://www.linkedin.com/oauth/v2/accessToken", credentials: "form" },
  profile: [{ request: "GET https://api.linkedin.com/v2/userinfo", answer: claims }],
  user: verified,
  refresh: { address: "https://www.linkedin.com/oauth/v2/accessToken", credentials: "form" },
};

/** A directory at Microsoft, which it calls a tenant. */
export const DIRECTORY = "6babcaad-604b-40ac-a9d7-9fd97c0b779f";
const OTHER_DIRECTORY = "72f988bf-86f1-41af-91ab-2d7cd011db47";

/** The Microsoft account class, a directory or the whole of it, is part of the address. */
export const microsoftAt = (directory: string): ProviderAnswers => ({
  authorization: {
    address: `${directory}/oauth2/v2.0/authorize`,
    scopes: ["openid", "profile", "email", "User.Read", "offline_access"],
  },
  pkce: true,
  exchange: { address: `${directory}/oauth2/v2.0/token`, credentials: "form" },
  idToken: ({ id, email, name }) => ({
    sub: `pairwise-${id}`,
    oid: id,
    email,
    name,
    verified_primary_email: [email],
  }),
  profile: [
    {
      request: "GET https://graph.microsoft.com/v1.0/me/photos/48x48/$value",
      answer: () => new Response("photo", { headers: { "content-type": "image/jpeg" } }),
    },
  ],
  user: (person) => ({
    ...verified(person),
    image: `data:image/jpeg;base64, ${Buffer.from("photo").toString("base64")}`,
  }),
  refresh: {
    address: `${directory}/oauth2/v2.0/token`,
    credentials: "form",
    extra: { scope: "openid profile email User.Read offline_access" },
  },
  idTokenSignIn: {
    request: `GET ${directory}/discovery/v2.0/keys`,
    answer: keys,
    claims: ({ id, email, name }) => ({
      iss: `${new URL(directory).origin}/${DIRECTORY}/v2.0`,
      tid: DIRECTORY,
      sub: `pairwise-${id}`,
      oid: id,
      email,
      name,
    }),
    // Where every directory is welcome, a token still has to name its own.
    elsewhere: directory.endsWith(DIRECTORY)
      ? { tid: OTHER_DIRECTORY, iss: `${new URL(directory).origin}/${OTHER_DIRECTORY}/v2.0` }
      : { tid: OTHER_DIRECTORY },
    user: () => ({ image: null, emailVerified: false }),
  },
});

const naver: ProviderAnswers = {
  authorization: {
    address: "https://nid.naver.com/oauth2.0/authorize",
    scopes: ["profile", "email"],
  },
  pkce: false,
  exchange: { address: "https://nid.naver.com/oauth2.0/token", credentials: "form" },
  profile: [
    {
      request: "GET https://openapi.naver.com/v1/nid/me",
      answer: ({ id, email, name, picture }) => ({
        resultcode: "00",
        message: "success",
        response: { id, email, name, profile_image: picture },
      }),
    },
  ],
  user: unverified,
  refresh: { address: "https://nid.naver.com/oauth2.0/token", credentials: "form" },
};

const notion: ProviderAnswers = {
  authorization: {
    address: "https://api.notion.com/v1/oauth/authorize",
    scopes: [],
    query: { owner: "user" },
  },
  pkce: false,
  exchange: { address: "https://api.notion.com/v1/oauth/token", credentials: "basic" },
  profile: [
    {
      request: "GET https://api.notion.com/v1/users/me",
      answer: ({ id, email, name, picture }) => ({
        object: "user",
        type: "bot",
        bot: {
          owner: { type: "user", user: { id, name, avatar_url: picture, person: { email } } },
        },
      }),
    },
  ],
  user: unverified,
  refresh: { address: "https://api.notion.com/v1/oauth/token", credentials: "form" },
};

export const paybinAt = (issuer: string): ProviderAnswers => ({
  authorization: { address: `${issuer}/oauth2/authorize`, scopes: ["openid", "email", "profile"] },
  pkce: true,
  exchange: { address: `${issuer}/oauth2/token`, credentials: "form" },
  idToken: claims,
  profile: [],
  user: verified,
  refresh: { address: `${issuer}/oauth2/token`, credentials: "form" },
});

export const paypalAt = (site: string, api: string): ProviderAnswers => ({
  authorization: { address: `${site}/signin/authorize`, scopes: [], scopeSeparator: null },
  pkce: true,
  exchange: { address: `${api}/v1/oauth2/token`, credentials: "basic" },
  idToken: ({ id }) => ({ sub: id }),
  profile: [
    {
      request: `GET ${api}/v1/identity/oauth2/userinfo?schema=paypalv1.1`,
      answer: ({ id, email, name, picture }) => ({
        user_id: id,
        sub: id,
        email,
        email_verified: true,
        name,
        picture,
      }),
    },
  ],
  user: verified,
  refresh: { address: `${api}/v1/oauth2/token`, credentials: "basic" },
});

const polar: ProviderAnswers = {
  authorization: {
    address: "https://polar.sh/oauth2/authorize",
    scopes: ["openid", "profile", "email"],
  },
  pkce: true,
  exchange: { address: "https://api.polar.sh/v1/oauth2/token", credentials: "form" },
  profile: [
    {
      request: "GET https://api.polar.sh/v1/oauth2/userinfo",
      answer: ({ id, email, name, picture }) => ({
        id,
        email,
        email_verified: true,
        username: "somebody",
        public_name: name,
        avatar_url: picture,
      }),
    },
  ],
  user: verified,
  refresh: { address: "https://api.polar.sh/v1/oauth2/token", credentials: "form" },
};

const railway: ProviderAnswers = {
  authorization: {
    address: "https://backboard.railway.com/oauth/auth",
    scopes: ["openid", "email", "profile"],
  },
  pkce: true,
  exchange: { address: "https://backboard.railway.com/oauth/token", credentials: "basic" },
  profile: [{ request: "GET https://backboard.railway.com/oauth/me", answer: claims }],
  user: unverified,
  refresh: { address: "https://backboard.railway.com/oauth/token", credentials: "basic" },
};

const reddit: ProviderAnswers = {
  authorization: { address: "https://www.reddit.com/api/v1/authorize", scopes: ["identity"] },
  pkce: false,
  exchange: { address: "https://www.reddit.com/api/v1/access_token", credentials: "basic" },
  profile: [
    {
      request: "GET https://oauth.reddit.com/api/v1/me",
      answer: ({ id, name, picture }) => ({ id, name, icon_img: `${picture}?width=256` }),
    },
  ],
  user: (person) => ({
    ...unverified(person),
    email: `${person.id}@reddit.placeholder.invalid`,
  }),
  refresh: { address: "https://www.reddit.com/api/v1/access_token", credentials: "basic" },
};

const roblox: ProviderAnswers = {
  authorization: {
    address: "https://apis.roblox.com/oauth/v1/authorize",
    scopes: ["openid", "profile"],
    query: { prompt: "select_account consent" },
  },
  pkce: false,
  exchange: { address: "https://apis.roblox.com/oauth/v1/token", credentials: "form" },
  profile: [
    {
      request: "GET https://apis.roblox.com/oauth/v1/userinfo",
      answer: ({ id, name, picture }) => ({ sub: id, nickname: name, picture }),
    },
  ],
  user: (person) => ({
    ...unverified(person),
    email: `${person.id}@roblox.placeholder.invalid`,
  }),
  refresh: { address: "https://apis.roblox.com/oauth/v1/token", credentials: "form" },
};

export const salesforceAt = (host: string): ProviderAnswers => ({
  authorization: {
    address: `https://${host}/services/oauth2/authorize`,
    scopes: ["openid", "email", "profile"],
  },
  pkce: true,
  exchange: { address: `https://${host}/services/oauth2/token`, credentials: "form" },
  profile: [
    {
      request: `GET https://${host}/services/oauth2/userinfo`,
      answer: ({ id, email, name, picture }) => ({
        sub: `https://login.salesforce.com/id/00D/${id}`,
        user_id: id,
        email,
        email_verified: true,
        name,
        photos: { picture },
      }),
    },
  ],
  user: verified,
  refresh: { address: `https://${host}/services/oauth2/token`, credentials: "form" },
});

const slack: ProviderAnswers = {
  authorization: {
    address: "https://slack.com/openid/connect/authorize",
    scopes: ["openid", "profile", "email"],
  },
  pkce: false,
  exchange: { address: "https://slack.com/api/openid.connect.token", credentials: "form" },
  profile: [
    {
      request: "GET https://slack.com/api/openid.connect.userInfo",
      answer: (person) => ({
        ok: true,
        ...claims(person),
        "https://slack.com/user_id": person.id,
      }),
    },
  ],
  user: verified,
  refresh: { address: "https://slack.com/api/openid.connect.token", credentials: "form" },
};

const spotify: ProviderAnswers = {
  authorization: { address: "https://accounts.spotify.com/authorize", scopes: ["user-read-email"] },
  pkce: true,
  exchange: { address: "https://accounts.spotify.com/api/token", credentials: "form" },
  profile: [
    {
      request: "GET https://api.spotify.com/v1/me",
      answer: ({ id, email, name, picture }) => ({
        id,
        email,
        display_name: name,
        images: [{ url: picture }],
      }),
    },
  ],
  user: unverified,
  refresh: { address: "https://accounts.spotify.com/api/token", credentials: "form" },
};

const tiktok: ProviderAnswers = {
  authorization: {
    address: "https://www.tiktok.com/v2/auth/authorize",
    clientId: "client_key",
    scopes: ["user.info.profile"],
    scopeSeparator: ",",
  },
  pkce: "verifier alone",
  exchange: {
    address: "https://open.tiktokapis.com/v2/oauth/token/",
    credentials: "form, as client_key",
  },
  profile: [
    {
      request:
        "GET https://open.tiktokapis.com/v2/user/info/?fields=open_id,avatar_large_url,display_name,username",
      answer: ({ id, name, picture }) => ({
        data: { user: { open_id: id, display_name: name, avatar_large_url: picture } },
        error: { code: "ok" },
      }),
    },
  ],
  user: (person) => ({
    ...unverified(person),
    email: `${person.id}@tiktok.placeholder.invalid`,
  }),
  refresh: {
    address: "https://open.tiktokapis.com/v2/oauth/token/",
    credentials: "form, as client_key",
  },
};

const twitch: ProviderAnswers = {
  authorization: {
    address: "https://id.twitch.tv/oauth2/authorize",
    scopes: ["user:read:email", "openid"],
    query: {
      claims: JSON.stringify({
        id_token: { email: null, email_verified: null, preferred_username: null, picture: null },
      }),
    },
  },
  pkce: false,
  exchange: { address: "https://id.twitch.tv/oauth2/token", credentials: "form" },
  idToken: (person) => ({ ...claims(person), preferred_username: person.name }),
  profile: [],
  user: verified,
  refresh: { address: "https://id.twitch.tv/oauth2/token", credentials: "form" },
};

const twitter: ProviderAnswers = {
  authorization: {
    address: "https://x.com/i/oauth2/authorize",
    scopes: ["users.read", "tweet.read", "offline.access", "users.email"],
  },
  pkce: true,
  exchange: { address: "https://api.x.com/2/oauth2/token", credentials: "basic" },
  profile: [
    {
      request: "GET https://api.x.com/2/users/me?user.fields=profile_image_url",
      answer: ({ id, name, picture }) => ({
        data: { id, name, username: "somebody", profile_image_url: picture },
      }),
    },
    {
      request: "GET https://api.x.com/2/users/me?user.fields=confirmed_email",
      answer: ({ id, email }) => ({ data: { id, confirmed_email: email } }),
    },
  ],
  user: verified,
  refresh: { address: "https://api.x.com/2/oauth2/token", credentials: "basic" },
};

const vercel: ProviderAnswers = {
  authorization: { address: "https://vercel.com/oauth/authorize", scopes: [] },
  pkce: true,
  exchange: { address: "https://api.vercel.com/login/oauth/token", credentials: "form" },
  profile: [{ request: "GET https://api.vercel.com/login/oauth/userinfo", answer: claims }],
  user: verified,
  refresh: null,
};

const vk: ProviderAnswers = {
  authorization: { address: "https://id.vk.com/authorize", scopes: ["email", "phone"] },
  pkce: true,
  exchange: {
    address: "https://id.vk.com/oauth2/auth",
    credentials: "form",
    extra: { device_id: "device-of-somebody" },
  },
  callback: () => ({ device_id: "device-of-somebody" }),
  profile: [
    {
      request: "POST https://id.vk.com/oauth2/user_info",
      params: ({ accessToken, clientId }) => ({ access_token: accessToken, client_id: clientId }),
      bearer: false,
      answer: ({ id, email, firstName, lastName, picture }) => ({
        user: {
          user_id: id,
          email,
          first_name: firstName,
          last_name: lastName,
          avatar: picture,
        },
      }),
    },
  ],
  user: unverified,
  refresh: { address: "https://id.vk.com/oauth2/auth", credentials: "form" },
};

const wechat: ProviderAnswers = {
  authorization: {
    address: "https://open.weixin.qq.com/connect/qrconnect",
    clientId: "appid",
    scopes: ["snsapi_login"],
    scopeSeparator: ",",
    query: { lang: "cn" },
  },
  pkce: false,
  exchange: { address: "https://api.weixin.qq.com/sns/oauth2/access_token", credentials: "query" },
  tokens: ({ id }) => ({ openid: `open-${id}`, unionid: id, scope: "snsapi_login" }),
  profile: [
    {
      request: "GET https://api.weixin.qq.com/sns/userinfo?lang=zh_CN",
      params: ({ accessToken, person }) => ({
        access_token: accessToken,
        openid: `open-${person.id}`,
      }),
      bearer: false,
      answer: ({ id, name, picture }) => ({
        openid: `open-${id}`,
        unionid: id,
        nickname: name,
        headimgurl: picture,
      }),
    },
  ],
  user: (person) => ({
    ...unverified(person),
    email: `${person.id}@wechat.placeholder.invalid`,
  }),
  refresh: {
    address: "https://api.weixin.qq.com/sns/oauth2/refresh_token",
    credentials: "query, id alone",
  },
};

const zoom: ProviderAnswers = {
  authorization: {
    address: "https://zoom.us/oauth/authorize",
    scopes: [],
    scopeSeparator: null,
  },
  pkce: true,
  exchange: { address: "https://zoom.us/oauth/token", credentials: "form" },
  profile: [
    {
      request: "GET https://api.zoom.us/v2/users/me",
      answer: ({ id, email, name, picture }) => ({
        id,
        email,
        verified: 1,
        display_name: name,
        pic_url: picture,
      }),
    },
  ],
  user: verified,
  refresh: { address: "https://zoom.us/oauth/token", credentials: "form" },
};

export type ProviderId = SocialProviderList[number];

/** Every built-in provider as it is without options; one that better-auth adds is a type error. */
export const providerAnswers: Record<ProviderId, ProviderAnswers> = {
  apple,
  atlassian,
  cloudflare,
  cognito: cognitoAt("app.auth.eu-west-1.amazoncognito.com", "eu-west-1", "eu-west-1_App"),
  discord,
  dropbox,
  facebook,
  figma,
  github,
  gitlab: gitlabAt("https://gitlab.com"),
  google,
  huggingface,
  kakao,
  kick,
  line,
  linear,
  linkedin,
  microsoft: microsoftAt("https://login.microsoftonline.com/common"),
  naver,
  notion,
  paybin: paybinAt("https://idp.paybin.io"),
  paypal: paypalAt("https://www.sandbox.paypal.com", "https://api-m.sandbox.paypal.com"),
  polar,
  railway,
  reddit,
  roblox,
  salesforce: salesforceAt("login.salesforce.com"),
  slack,
  spotify,
  tiktok,
  twitch,
  twitter,
  vercel,
  vk,
  wechat,
  zoom,
};
