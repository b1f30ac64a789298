import { LIMITS } from "./policy";
import { providerFields } from "./providers";

/** The error of a call to better-auth. */
interface CallError {
  code?: string;
  message?: string;
}

const TAKEN_SSO = "This identifier is already taken. Please choose another one.";
const BROKEN_SSO =
  "Single sign-on does not work at the moment. Please tell an administrator to check it.";

const NO_PASSKEY = "Your browser has not used a passkey. Please try again.";

const SENTENCES: Record<string, string> = {
  INVALID_EMAIL: "Please enter a valid email address.",
  INVALID_EMAIL_OR_PASSWORD: "Invalid email or password.",
  INVALID_TOKEN: "This link has expired or has already been used.",
  TENANT_ALREADY_EXISTS: "This slug is already taken.",
  SLUG_RESERVED: "This slug is reserved. Please choose another one.",
  INVALID_SLUG:
    "A slug has 2 to 63 lowercase letters, digits and hyphens, and no hyphen at either end.",
  PROVIDER_NOT_FOUND: "This provider is not available any more.",
  EMAIL_NOT_VERIFIED: "Please confirm your email address first. We have sent you a link.",
  TENANT_SUSPENDED: "Nobody can sign in here at the moment.",
  TENANT_DELETING: "It is too late to cancel this. The tenant is about to be deleted.",
  POLICY_LOCKS_OUT:
    "With this policy you could not sign in again yourself. Please allow a method that you use, and sign in with a second factor before you require one.",
  SIGN_UP_CLOSED: "Nobody new can join at the moment.",
  INVITATION_REQUIRED: "You can join by invitation only.",
  EMAIL_DOMAIN_NOT_ALLOWED: "Email addresses at this domain cannot join.",
  SIGN_IN_METHOD_NOT_ALLOWED: "This sign-in method is not allowed here.",
  TWO_FACTOR_REQUIRED: "A second factor is required here. Please sign in with your password.",
  LAST_ADMIN: "This is the last administrator. Please make another user an administrator first.",
  BANNED_USER: "You have been banned here. Please ask an administrator.",
  SESSION_NOT_FRESH: "You signed in some time ago. Please sign out, and sign in again.",
  PASSKEY_NOT_FOUND: "This passkey is not known here. Please choose another way to sign in.",
  AUTH_CANCELLED: NO_PASSKEY,
  ERROR_CEREMONY_ABORTED: NO_PASSKEY,
  ERROR_PASSTHROUGH_SEE_CAUSE_PROPERTY: NO_PASSKEY,
  ERROR_AUTHENTICATOR_PREVIOUSLY_REGISTERED: "There is a passkey of this device already.",
  INVITATION_NOT_FOUND: "This invitation is no longer valid.",
  INVITATION_EXPIRED: "This invitation has expired.",
  INVITATION_ALREADY_ACCEPTED: "This invitation has already been accepted.",
  INVITATION_EMAIL_MISMATCH: "This invitation is for another email address.",
  USER_ALREADY_IN_TENANT: "There is already an account with this email address.",
  ROLE_NOT_ALLOWED: "You cannot give this role.",
  INVALID_DOMAIN: "Please enter domains such as example.com.",
  DOMAIN_LOOKUP_FAILED: "The record cannot be looked up at the moment. Please try again later.",
  // What better-auth finds at the issuer of an identity provider.
  discovery_invalid_url: "Please enter the issuer as an address such as https://acme.okta.com.",
  discovery_not_found: "There is no OpenID Connect provider at this issuer.",
  discovery_untrusted_origin:
    "Identity providers at this address are not allowed here. Please ask an operator.",
  discovery_private_host:
    "Identity providers at this address are not allowed here. Please ask an operator.",
  discovery_timeout: "The identity provider cannot be reached. Is the issuer right?",
  discovery_unexpected_error: "The identity provider cannot be reached. Is the issuer right?",
  discovery_invalid_json: "There is no OpenID Connect provider at this issuer.",
  discovery_incomplete: "What this issuer says about itself is incomplete.",
  issuer_mismatch: "The provider calls itself something else. Please copy the issuer from there.",
  // There is one list of identifiers for all tenants, because they are in addresses.
  VALUE_TAKEN: TAKEN_SSO,
  INVALID_PROVIDER: BROKEN_SSO,
  DISCOVERY_FAILED: BROKEN_SSO,
  INVALID_SAML_RESPONSE: BROKEN_SSO,
  SAML_ERROR: BROKEN_SSO,
};

/** Some errors of better-auth's have no code. */
const WITHOUT_CODE: Record<string, string> = {
  "SSO provider with this providerId already exists": TAKEN_SSO,
  "Cannot change SSO provider identity fields while linked accounts exist":
    "People have signed in with this provider already, so it stays as it is. Please set up a new one, and remove this one.",
};

/** What is wrong with a field, by its name in the body of a call. */
const FIELDS: Record<string, string> = {
  email: "Please enter a valid email address.",
  name: "Please enter a name of 1 to 255 characters.",
  password: "Please enter a password of 8 to 128 characters.",
  newPassword: "Please enter a password of 8 to 128 characters.",
  issuer: "Please enter the issuer as an address such as https://acme.okta.com.",
  clientId: "Please enter the client ID.",
  clientSecret: "Please enter the client secret.",
  "policy.emailDomains": "Please enter domains such as example.com.",
  "policy.methods": "Please choose at least one sign-in method that is set up.",
  "policy.password.minLength": `Please enter a password length of ${LIMITS.minPassword} to ${LIMITS.maxPassword}.`,
  "policy.session.expiresIn": `Please enter a session length of at most ${LIMITS.sessionHours} hours, and at least a minute.`,
};

const UNKNOWN = "Something went wrong. Please try again.";

/** An error in words for the person in front of the screen. */
export function explain({ code, message }: CallError): string {
  if (code && SENTENCES[code]) return SENTENCES[code];
  if (code === "VALIDATION_ERROR") return explainValidation(message);
  if (message && WITHOUT_CODE[message]) return WITHOUT_CODE[message];
  return message ? asSentence(withLabels(message)) : UNKNOWN;
}

/** What it means when a provider's callback leads back with an error. */
export function explainRefusal(refusal: string): string {
  // better-auth writes some of them with spaces.
  const error = refusal.replaceAll(" ", "_");
  if (error === "access_denied") return "You cancelled signing in with this provider.";
  if (error === "account_not_linked") {
    return "There is already an account with this email address. Please sign in as you did before.";
  }
  return (
    SENTENCES[error.toUpperCase()] ??
    "We could not sign you in with this provider. Please try again."
  );
}

/** The plugin names an option of a provider: `options.issuer: …`. */
function withLabels(message: string): string {
  const labels = new Map(
    Object.values(providerFields)
      .flat()
      .map(({ name, label }) => [name, label]),
  );
  return message.replace(/\boptions\.(\w+)/g, (all, name) => labels.get(name) ?? all);
}

/** better-auth names the field of the body: `[body.email] Invalid email address`. */
function explainValidation(message = ""): string {
  const fields = [...message.matchAll(/\[body\.([\w.]+)/g)].map(([, field = ""]) => field);
  // Of a list it names the entry: `policy.emailDomains.0`.
  const named = fields.map((field) => FIELDS[field.replace(/\.\d+$/, "")]);
  const sentences = [...new Set(named)].filter(Boolean);
  return sentences.join(" ") || "Please check what you have entered.";
}

const asSentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);
