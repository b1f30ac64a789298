import type { Leak } from "../findings";
import { PASSWORD } from "../sides/people";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";

/** More wrong passwords than any limit lets pass. */
const WRONG = 12;
const PATH = "/sign-in/email";

/** Whether wrong passwords in one tenant lock out the user with the same email in another. */
export async function lockOut({ sides, subject, endpoints, watch }: World): Promise<Leak[]> {
  const { a, b } = sides;
  const isPassword = endpoints.some(({ path }) => path === PATH);
  if (!isPassword || subject.tenantOptions.keepEmailGloballyUnique) return [];
  const signIn = async (side: Side, password: string) => {
    const body = { email: side.main.email, password };
    return (await side.fresh().post(PATH, body)).status;
  };
  const before = await signIn(b, PASSWORD);
  for (let turn = 0; turn < WRONG; turn++) await signIn(a, "a wrong password");
  const after = await signIn(b, PASSWORD);
  await watch.changesOf([]);
  await watch.changesOfOwn("a");
  if (before !== 200 || after === 200) return [];
  const found = `wrong passwords for an email of a lock out its user at b: ${after}`;
  return [
    {
      attempt: `POST ${PATH}, ${WRONG} wrong passwords at a, then the right one at b`,
      endpoint: `POST ${PATH}`,
      found,
      summary: `not signed in, POST ${PATH} with wrong passwords at tenant A locks out the user with the same email at tenant B: ${after}`,
      request: {
        method: "POST",
        url: `${a.place.origin}${subject.basePath}${PATH}`,
        headers: { "content-type": "application/json", ...a.place.headers },
        body: JSON.stringify({ email: a.main.email, password: "a wrong password" }),
      },
    },
  ];
}
