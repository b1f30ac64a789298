import { passkey } from "@better-auth/passkey";
import { sso } from "@better-auth/sso";
import { betterAuth } from "better-auth";
import { admin, magicLink, twoFactor } from "better-auth/plugins";
import { byDomain, bySubdomain, firstOf, tenantAuth } from "better-auth-tenant";
import { tenantDomains } from "better-auth-tenant/domains";
import { tenantInvitations } from "better-auth-tenant/invitations";
import { openDatabase } from "./database";
import { resolveTxt } from "./dns";
import { formatTime } from "./format";
import { APP_URL } from "./hosts";
import { inbox } from "./inbox";
import { sendMail } from "./mail";

/** Where the stand-in identity provider of this example is. */
const IDP_HOST = process.env.IDP_HOST ?? "localhost:4000";

/**
 * Where a tenant's identity provider may be. Google and Microsoft have several hosts. None of them is
 * in better-auth's `trustedOrigins`: nobody is sent there with a token.
 */
export const PROVIDER_HOSTS = [
  "*.okta.com",
  "login.microsoftonline.com",
  "graph.microsoft.com",
  "accounts.google.com",
  "oauth2.googleapis.com",
  "openidconnect.googleapis.com",
  "www.googleapis.com",
  IDP_HOST,
];

/** A tenant is at `<slug>.<our host>`, and at domains that it has verified. */
const byOwnHost = firstOf(bySubdomain({ baseDomain: APP_URL.hostname }), byDomain());

export const auth = betterAuth({
  appName: "Tenants, an example",
  // One application on many hosts: links and redirects stay on the host of the request.
  baseURL: {
    allowedHosts: [APP_URL.host, `*.${APP_URL.host}`],
    protocol: APP_URL.protocol === "https:" ? "https" : "http",
    fallback: APP_URL.origin,
  },
  database: openDatabase(),
  // The tables are brought up to date when the server starts, see instrumentation.ts.
  advanced: { database: { validateSchema: false } },
  emailAndPassword: {
    enabled: true,
    sendResetPassword: ({ user, url }) =>
      sendMail({
        to: user.email,
        subject: "Set a new password",
        text: `Hello ${user.name}, we received a request to reset your password. If it was not you, you can ignore this email.`,
        link: url,
      }),
  },
  emailVerification: {
    sendOnSignUp: true,
    sendVerificationEmail: ({ user, url }) =>
      sendMail({
        to: user.email,
        subject: "Confirm your email address",
        text: `Welcome, ${user.name}! Please confirm that this email address is yours.`,
        link: url,
      }),
  },
  // Where people end up whom no page of ours has sent on their way.
  onAPIError: { errorURL: "/sign-in-problem" },
  plugins: [
    tenantAuth({
      // At the application's own address the client's header names the tenant. On every other host
      // nothing but the host counts.
      resolveTenantId: (ctx) =>
        ctx.headers?.get("host") === APP_URL.host ? undefined : byOwnHost(ctx),
      // Somebody may be at several tenants in one browser, in two tabs.
      sessionCookies: "per-tenant",
      // People sign up at a tenant. Operators of the platform are made by other operators.
      platformPolicy: { signUp: "closed" },
      trustedProviderHosts: PROVIDER_HOSTS,
      scopedModels: ["mail", "ssoProvider", "passkey"],
      // A tenant's own administrators manage it at /t/<slug>/settings, without an operator.
      tenantRoles: {
        admin: [
          "tenant:get",
          "tenant:update",
          "policy:update",
          "oauth-config:*",
          "invitation:*",
          "domain:*",
          "sso:*",
          "user:reset-two-factor",
        ],
      },
    }),
    tenantInvitations({
      sendInvitationEmail: ({ invitation, url, tenant, inviter }) =>
        sendMail({
          to: invitation.email,
          subject: `Join ${tenant.name}`,
          text: `${inviter?.name ?? tenant.name} has invited you to ${tenant.name}. The link works until ${formatTime(invitation.expiresAt)}.`,
          link: url,
        }),
    }),
    tenantDomains({
      resolveTxt,
      signInURL: ({ slug }) => `${APP_URL.origin}/t/${slug}`,
    }),
    admin(),
    magicLink({
      sendMagicLink: ({ email, url }) =>
        sendMail({
          to: email,
          subject: "Your sign-in link",
          text: "This link signs you in. It works once, for five minutes. If you did not ask for it, you can ignore this email.",
          link: url,
        }),
    }),
    // Tenants may require it: see the policy of a tenant.
    twoFactor({ issuer: "Tenants, an example" }),
    passkey(),
    // A demo has no DNS where a domain could be verified, so it believes what a tenant's identity
    // provider says about an address. Yours has `domainVerification: { enabled: true }` instead.
    sso({ trustEmailVerified: true }),
    inbox(),
  ],
});
