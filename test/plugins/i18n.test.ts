import { i18n } from "@better-auth/i18n";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createWorld, EMAIL, outcome, PLACES, shareWorld } from "../support/world";

const german = {
  INVALID_EMAIL_OR_PASSWORD: "E-Mail oder Passwort ist falsch",
  TENANT_NOT_FOUND: "Diesen Mandanten gibt es nicht",
  TENANT_SUSPENDED: "Dieser Mandant ist gesperrt",
};
const french = { INVALID_EMAIL_OR_PASSWORD: "Adresse ou mot de passe incorrect" };
const translations = { en: {}, de: german, fr: french };

const world = shareWorld({ plugins: [i18n({ translations })] });

const speaking = (language: string) => ({ headers: { "accept-language": language } });
const GERMAN = speaking("de-CH,de;q=0.9,en;q=0.5");
const wrong = { email: EMAIL, password: "not the password" };

describe("i18n", () => {
  it.each(PLACES)("answers in the language of the request on %s", async (place) => {
    await world.as("jane", place);
    const answer = await world.at(place).post("/sign-in/email", wrong, GERMAN);
    expect([...outcome(answer), answer.data.message]).toEqual([
      401,
      "INVALID_EMAIL_OR_PASSWORD",
      german.INVALID_EMAIL_OR_PASSWORD,
    ]);
  });

  it("translates at the tenants' own endpoints", async () => {
    const body = { ...wrong, tenantId: world.ids.acme };
    const answer = await world.at("platform").post("/tenant/sign-in/email", body, GERMAN);
    expect(answer.data.message).toBe(german.INVALID_EMAIL_OR_PASSWORD);
  });

  it("keeps to the language of each request, when two tenants ask at once", async () => {
    const ask = (place: "acme" | "globex", language: string) =>
      world.at(place).post("/sign-in/email", wrong, speaking(language));
    const answers = await Promise.all([ask("acme", "de"), ask("globex", "fr")]);
    expect(answers.map(({ data }) => data.message)).toEqual([
      german.INVALID_EMAIL_OR_PASSWORD,
      french.INVALID_EMAIL_OR_PASSWORD,
    ]);
  });

  it("changes no status and no code, and opens nothing", async () => {
    const jane = await world.as("jane", "acme");
    const elsewhere = world.at("globex", jane);
    expect((await elsewhere.post("/update-user", { name: "X" }, GERMAN)).status).toBe(401);
    const nowhere = await world.at("nowhere").get("/list-sessions", GERMAN);
    expect(outcome(nowhere)).toEqual([404, "TENANT_NOT_FOUND"]);
    const { id } = await world.createTenant();
    await world.change(id, { status: "suspended" });
    const suspended = await world.at(id).post("/sign-in/email", wrong, GERMAN);
    expect(outcome(suspended)).toEqual([403, "TENANT_SUSPENDED"]);
  });

  it("gives a tenant a language of its own, by getLocale and getTenantId", async () => {
    const languages = new Map<string | null, string>();
    const getLocale = () => languages.get(getTenantId()) ?? null;
    const { ids, at } = await createWorld({
      plugins: [i18n({ translations, detection: ["callback"], getLocale })],
    });
    languages.set(ids.acme, "de").set(ids.globex, "fr");
    const answers = await Promise.all(
      PLACES.map((place) => at(place).post("/sign-in/email", wrong)),
    );
    expect(answers.map(({ data }) => data.message)).toEqual([
      german.INVALID_EMAIL_OR_PASSWORD,
      french.INVALID_EMAIL_OR_PASSWORD,
      "Invalid email or password",
    ]);
  });
});
