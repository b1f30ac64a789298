import type { BetterAuthPlugin } from "better-auth";
import {
  admin,
  anonymous,
  bearer,
  emailOTP,
  genericOAuth,
  haveIBeenPwned,
  jwt,
  lastLoginMethod,
  multiSession,
  openAPI,
  phoneNumber,
  twoFactor,
  username,
} from "better-auth/plugins";
import type { InstanceOptions } from "../support/instance";

type Arrange = NonNullable<InstanceOptions["arrange"]>;

/** Where our plugin can stand among the others. */
export const ORDERS: [name: string, arrange: Arrange][] = [
  ["first", (ours, others) => [ours, ...others]],
  ["last", (ours, others) => [...others, ours]],
  [
    "in between",
    (ours, others) => {
      const middle = Math.ceil(others.length / 2);
      return [...others.slice(0, middle), ours, ...others.slice(middle)];
    },
  ],
];

const SEEDS = [1, 2, 3, 4, 5];

/** The same orders in every run. */
export const SHUFFLED: typeof ORDERS = SEEDS.map((seed) => [
  `shuffled, seed ${seed}`,
  (ours, others) => shuffle([ours, ...others], seed),
]);

function shuffle<T>(list: T[], seed: number): T[] {
  let state = seed;
  const random = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  return list
    .map((item) => ({ item, rank: random() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ item }) => item);
}

/** The official plugins that do something when better-auth starts. */
export const STARTING: [name: string, create: () => BetterAuthPlugin][] = [
  ["admin", () => admin()],
  ["username", () => username()],
  ["phoneNumber", () => phoneNumber({ sendOTP: () => {} })],
  ["lastLoginMethod", () => lastLoginMethod()],
  ["lastLoginMethod in the database", () => lastLoginMethod({ storeInDatabase: true })],
  [
    "emailOTP",
    () => emailOTP({ overrideDefaultEmailVerification: true, sendVerificationOTP: async () => {} }),
  ],
  ["haveIBeenPwned", () => haveIBeenPwned({ enabled: false })],
  ["genericOAuth", () => genericOAuth({ config: [] })],
  ["jwt", () => jwt()],
  ["openAPI", () => openAPI()],
];

/** Many plugins at once, for the orders that mix them. */
export const manyPlugins = (): BetterAuthPlugin[] => [
  ...STARTING.filter(([name]) => !/^(admin|emailOTP|lastLoginMethod)$/.test(name)).map(
    ([, create]) => create(),
  ),
  anonymous(),
  bearer(),
  multiSession(),
  twoFactor(),
];

/** An official plugin's neighbour that an application wrote: its `init` brings options. */
export function bringing(options: object, id = "brings-options"): BetterAuthPlugin {
  return { id, init: () => ({ options }) };
}
