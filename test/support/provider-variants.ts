import {
  cognitoAt,
  DIRECTORY,
  gitlabAt,
  microsoftAt,
  type ProviderAnswers,
  type ProviderId,
  paybinAt,
  paypalAt,
  providerAnswers,
  salesforceAt,
} from "./provider-answers";

/** Providers that live elsewhere, or are asked in another way, because an option says so. */
export interface ProviderVariant {
  name: string;
  provider: ProviderId;
  answers: ProviderAnswers;
}

/** Hosts that are no provider's own, and have to be on the application's list. */
export const TRUSTED_HOSTS = ["gitlab.acme.example", "login.acme.example", "*.pay.example"];

const { cloudflare, dropbox, facebook, github, google, reddit, twitch, wechat } = providerAnswers;
const pool = cognitoAt("acme.auth.us-east-2.amazoncognito.com", "us-east-2", "us-east-2_Acme");
const ownDomain = cognitoAt("login.acme.example", "eu-central-1", "eu-central-1_Acme");
const directory = microsoftAt(`https://login.microsoftonline.com/${DIRECTORY}`);

export const providerVariants: ProviderVariant[] = [
  {
    name: "cloudflare, secret in the form",
    provider: "cloudflare",
    answers: {
      ...cloudflare,
      options: { tokenEndpointAuthMethod: "client_secret_post" },
      exchange: { ...cloudflare.exchange, credentials: "form" },
      refresh: { ...cloudflare.exchange, credentials: "form" },
    },
  },
  {
    name: "cognito, another pool",
    provider: "cognito",
    answers: {
      ...pool,
      options: { ...pool.options, identityProvider: "AcmeSAML" },
      authorization: { ...pool.authorization, query: { identity_provider: "AcmeSAML" } },
    },
  },
  {
    // A pool whose clients may not ask for openid gives no id token.
    name: "cognito, own domain",
    provider: "cognito",
    answers: {
      ...withoutIdToken(ownDomain),
      server: "login.acme.example",
      profile: [
        {
          request: "GET https://login.acme.example/oauth2/userinfo",
          answer: ({ id, email, name, picture }) => ({
            sub: id,
            email,
            email_verified: true,
            name,
            picture,
          }),
        },
      ],
    },
  },
  {
    name: "dropbox, offline",
    provider: "dropbox",
    answers: {
      ...dropbox,
      options: { accessType: "offline" },
      authorization: { ...dropbox.authorization, query: { token_access_type: "offline" } },
    },
  },
  {
    name: "facebook, login configuration",
    provider: "facebook",
    answers: {
      ...facebook,
      options: { configId: "4711", fields: ["locale", "timezone"] },
      authorization: { ...facebook.authorization, query: { config_id: "4711" } },
      profile: facebook.profile.map((asked) => ({
        ...asked,
        request: asked.request.replace("picture", "picture,locale,timezone"),
      })),
    },
  },
  {
    name: "github, no default scopes",
    provider: "github",
    answers: {
      ...github,
      options: { disableDefaultScope: true, prompt: "select_account" },
      authorization: { ...github.authorization, scopes: [], query: { prompt: "select_account" } },
    },
  },
  {
    name: "gitlab, self-hosted",
    provider: "gitlab",
    answers: {
      ...gitlabAt("https://gitlab.acme.example/git"),
      options: { issuer: "https://gitlab.acme.example/git" },
      server: "https://gitlab.acme.example/git",
    },
  },
  {
    name: "google, hosted domain",
    provider: "google",
    answers: {
      ...google,
      options: {
        hd: "acme.example",
        accessType: "offline",
        display: "popup",
        includeGrantedScopes: false,
        prompt: "consent",
      },
      authorization: {
        ...google.authorization,
        query: {
          hd: "acme.example",
          access_type: "offline",
          display: "popup",
          prompt: "consent",
        },
      },
      idToken: (person) => ({ ...google.idToken?.(person), hd: "acme.example" }),
      idTokenSignIn: google.idTokenSignIn && {
        ...google.idTokenSignIn,
        claims: (person) => ({ ...google.idTokenSignIn?.claims(person), hd: "acme.example" }),
        elsewhere: { hd: "other.example" },
      },
    },
  },
  {
    name: "microsoft, directory",
    provider: "microsoft",
    answers: {
      ...directory,
      options: { tenantId: DIRECTORY, disableProfilePhoto: true },
      profile: [],
      user: (person) => ({ ...directory.user(person), image: null }),
    },
  },
  {
    name: "microsoft, own authority",
    provider: "microsoft",
    answers: {
      ...microsoftAt(`https://acme.ciamlogin.com/${DIRECTORY}`),
      options: {
        tenantId: DIRECTORY,
        authority: "https://acme.ciamlogin.com/",
        profilePhotoSize: 96,
      },
      profile: directory.profile.map((asked) => ({
        ...asked,
        request: asked.request.replace("48x48", "96x96"),
      })),
    },
  },
  {
    name: "paybin, own issuer",
    provider: "paybin",
    answers: {
      ...paybinAt("https://idp.pay.example"),
      options: { issuer: "https://idp.pay.example" },
      server: "https://idp.pay.example",
    },
  },
  {
    name: "paypal, live",
    provider: "paypal",
    answers: {
      ...paypalAt("https://www.paypal.com", "https://api-m.paypal.com"),
      options: { environment: "live" },
    },
  },
  {
    name: "reddit, permanent",
    provider: "reddit",
    answers: {
      ...reddit,
      options: { duration: "permanent" },
      authorization: { ...reddit.authorization, query: { duration: "permanent" } },
    },
  },
  {
    name: "salesforce, sandbox",
    provider: "salesforce",
    answers: { ...salesforceAt("test.salesforce.com"), options: { environment: "sandbox" } },
  },
  {
    name: "salesforce, own domain",
    provider: "salesforce",
    answers: {
      ...salesforceAt("acme.my.salesforce.com"),
      options: { loginUrl: "acme.my.salesforce.com" },
    },
  },
  {
    name: "twitch, claims",
    provider: "twitch",
    answers: {
      ...twitch,
      options: { claims: ["preferred_username"] },
      authorization: {
        ...twitch.authorization,
        query: {
          claims: JSON.stringify({
            id_token: { email: null, email_verified: null, preferred_username: null },
          }),
        },
      },
    },
  },
  {
    name: "wechat, in English",
    provider: "wechat",
    answers: {
      ...wechat,
      options: { lang: "en" },
      authorization: { ...wechat.authorization, query: { lang: "en" } },
    },
  },
];

function withoutIdToken({ idToken: _, ...answers }: ProviderAnswers): ProviderAnswers {
  return answers;
}
