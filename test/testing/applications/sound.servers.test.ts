import { it } from "vitest";
import { applications } from "./index";
import { check, share } from "./support";

const sound = applications.filter(({ hole }) => !hole);

it.each(share(sound))("$name is sound", { timeout: 120_000 }, async (application) => {
  (await check(application)).assert();
});
