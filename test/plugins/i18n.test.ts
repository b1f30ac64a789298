import { i18n } from "@better-auth/i18n";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createPlaces, EMAIL, PLACES } from "./places";

const german = {
  INVALID_EMAIL_OR_PASSWORD: "E-Mail oder Passwort ist falsch",
  TENANT_NOT_FOUND: "Diesen Mandanten gibt es nicht",
  TENANT_SUSPENDED: "Dieser Mandant ist gesperrt",
};
const french = { INVALID_EMAIL_OR_PASSWORD: "Adresse ou mot de passe incorrect" };

/** People choose their language, and so do tenants: by a function of the application's. */
const createTranslatedPlaces = () =>
  createPlaces([i18n({ translations: { en: {}, de: german, fr: french } })]);

const GERMAN = { headers: { "accept-language": "de-CH,de;q=0.9,en;q=0.5" } };
const wrong = { email: EMAIL, password: "not the password" };

describe("i18n", () => {
  it.each(PLACES)("answers in the language of the request on %s", async (place) => {
    const { at, signUp } = await createTranslatedPlaces();
    await signUp(place);
    const answer = await at(place).post("/sign-in/email", wrong, GERMAN);
    expect([answer.status, answer.code, answer.data.message]).toEqual([
      401,
      "INVALID_EMAIL_OR_PASSWORD",
      german.INVALID_EMAIL_OR_PASSWORD,
    ]);
  });

  it("translates at the tenants' own endpoints", async () => {
    const { instance, ids } = await createTranslatedPlaces();
    const body = { ...wrong, tenantId: ids.a };
    const answer = await instance.browser().post("/tenant/sign-in/email", body, GERMAN);
    expect(answer.data.message).toBe(german.INVALID_EMAIL_OR_PASSWORD);
  });

  it("keeps to the language of each request, when two tenants ask at once", async () => {
    const { at } = await createTranslatedPlaces();
    const ask = (place: "a" | "b", language: string) =>
      at(place).post("/sign-in/email", wrong, { headers: { "accept-language": language } });
    const [a, b] = await Promise.all([ask("a", "de"), ask("b", "fr")]);
    expect([a.data.message, b.data.message]).toEqual([
      german.INVALID_EMAIL_OR_PASSWORD,
      french.INVALID_EMAIL_OR_PASSWORD,
    ]);
  });

  it("a translation changes no status and no code, and opens nothing", async () => {
    const { at, signUp, instance, ids } = await createTranslatedPlaces();
    const { browser } = await signUp("a");
    const elsewhere = await browser
      .fork({ "x-tenant-id": ids.b ?? "" })
      .post("/update-user", { name: "X" }, GERMAN);
    expect(elsewhere.status).toBe(401);
    const nowhere = await at("a").get("/list-sessions", {
      headers: { "x-tenant-id": "nowhere", ...GERMAN.headers },
    });
    expect([nowhere.status, nowhere.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    await instance.api.updateTenant({ body: { tenantId: ids.a ?? "", status: "suspended" } });
    const suspended = await at("a").post("/sign-in/email", wrong, GERMAN);
    expect([suspended.status, suspended.code]).toEqual([403, "TENANT_SUSPENDED"]);
  });
});

describe("i18n by tenant", () => {
  it("a tenant has a language of its own, by getLocale and getTenantId", async () => {
    const languages = new Map<string | null, string>();
    const places = await createPlaces([
      i18n({
        translations: { en: {}, de: german, fr: french },
        detection: ["callback"],
        getLocale: () => languages.get(getTenantId()) ?? null,
      }),
    ]);
    languages.set(places.ids.a, "de").set(places.ids.b, "fr");
    const messages = await Promise.all(
      PLACES.map(async (place) => {
        const { data } = await places.at(place).post("/sign-in/email", wrong);
        return data.message;
      }),
    );
    expect(messages).toEqual([
      german.INVALID_EMAIL_OR_PASSWORD,
      french.INVALID_EMAIL_OR_PASSWORD,
      "Invalid email or password",
    ]);
  });
});
