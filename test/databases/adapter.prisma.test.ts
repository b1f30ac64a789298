import { beforeAll, describe } from "vitest";
import { behaves } from "./behaviour";
import { preparePrisma } from "./prisma";
import { because, ID_KINDS, type Store } from "./store";

const installed = process.env.TEST_PRISMA;

describe.skipIf(!installed)(
  because(
    "Prisma",
    installed ? undefined : "npm run test:prisma installs it, and wants PostgreSQL",
  ),
  () => {
    for (const ids of ID_KINDS) {
      let open: () => Promise<Store>;
      beforeAll(async () => {
        open = await preparePrisma(ids);
      }, 120_000);
      behaves({ name: "Prisma on PostgreSQL", ids, open: () => open() });
    }
  },
);
