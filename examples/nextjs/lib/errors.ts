import { providerFields } from "./providers";

/** The error of a call to better-auth. */
interface CallError {
  code?: string;
  message?: string;
}

const SENTENCES: Record<string, string> = {
  INVALID_EMAIL: "Please enter a valid email address.",
  INVALID_EMAIL_OR_PASSWORD: "Invalid email or password.",
  INVALID_TOKEN: "This link has expired or has already been used.",
  TENANT_ALREADY_EXISTS: "This slug is already taken.",
  SLUG_RESERVED: "This slug is reserved. Please choose another one.",
  INVALID_SLUG:
    "A slug has 2 to 63 lowercase letters, digits and hyphens, and no hyphen at either end.",
  PROVIDER_NOT_FOUND: "This provider is not available any more.",
};

/** What is wrong with a field, by its name in the body of a call. */
const FIELDS: Record<string, string> = {
  email: "Please enter a valid email address.",
  name: "Please enter a name of 1 to 255 characters.",
  password: "Please enter a password of 8 to 128 characters.",
  newPassword: "Please enter a password of 8 to 128 characters.",
  clientId: "Please enter the client ID.",
  clientSecret: "Please enter the client secret.",
};

const UNKNOWN = "Something went wrong. Please try again.";

/** An error in words for the person in front of the screen. */
export function explain({ code, message }: CallError): string {
  if (code && SENTENCES[code]) return SENTENCES[code];
  if (code === "VALIDATION_ERROR") return explainValidation(message);
  return message ? asSentence(withLabels(message)) : UNKNOWN;
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
  const named = [...message.matchAll(/\[body\.(\w+)/g)].map(([, field = ""]) => FIELDS[field]);
  const sentences = [...new Set(named)].filter(Boolean);
  return sentences.join(" ") || "Please check what you have entered.";
}

const asSentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);
