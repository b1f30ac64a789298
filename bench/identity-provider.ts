/** The application's credentials at Google. */
export const CLIENT = { clientId: "global-client", clientSecret: "global-secret" };

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

const TOKEN_ENDPOINT = "https://oauth2.googleapis.com/token";

interface Person {
  sub: string;
  email: string;
}

/**
 * Google, answered inside this process: every code is good, and says whose it is. Nothing else gets
 * out.
 */
export function fakeGoogle(personOf: (code: string) => Person): void {
  globalThis.fetch = async (input, init) => {
    const call = new Request(input, init);
    if (call.url !== TOKEN_ENDPOINT) throw new Error(`No network here: ${call.url}`);
    const person = personOf(new URLSearchParams(await call.text()).get("code") ?? "");
    const claims = { ...person, email_verified: true, name: "Somebody" };
    const idToken = `${encode({ alg: "RS256", typ: "JWT" })}.${encode(claims)}.signature`;
    const answer = { access_token: "token", token_type: "Bearer", expires_in: 3600 };
    return Response.json({ ...answer, id_token: idToken });
  };
}
