import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { sso } from "@better-auth/sso";
import { oAuthProxy } from "better-auth/plugins";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { isolationOf } from "../../src/core/isolation";
import { tenantDomains } from "../../src/features/domains/index";
import { tenantInvitations } from "../../src/features/invitations/index";
import { createInstance } from "../support/instance";

/*
 * The core can be read, compiled and trusted without the features. `biome.json` forbids its imports
 * from outside as well; here are the ones that a linter does not see, and the words.
 */

const ROOT = join(import.meta.dirname, "../..");
const SRC = join(ROOT, "src");
const FEATURES = readdirSync(join(SRC, "features"));

/** Every source file except the isolation kit's, as `core/scope.ts`. */
const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => path.endsWith(".ts") && !path.startsWith("testing/"));
const core = files.filter((file) => file.startsWith("core/"));

const parsed = new Map(
  files.map((file) => {
    const text = readFileSync(join(SRC, file), "utf8");
    return [file, ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)] as const;
  }),
);

function visitAll(file: string, visit: (node: ts.Node) => void) {
  const walk = (node: ts.Node) => {
    visit(node);
    ts.forEachChild(node, walk);
  };
  const source = parsed.get(file);
  if (source) walk(source);
}

/** The modules that a file names: by import, export, `import()` and `import("…")` in a type. */
function importsOf(file: string): string[] {
  const specifiers: string[] = [];
  const add = (node: ts.Node | undefined) => {
    specifiers.push(node && ts.isStringLiteralLike(node) ? node.text : "a computed name");
  };
  visitAll(file, (node) => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier);
    if (ts.isExportDeclaration(node) && node.moduleSpecifier) add(node.moduleSpecifier);
    if (ts.isImportTypeNode(node)) {
      add(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined);
    }
    const isCall = ts.isCallExpression(node);
    if (isCall && node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0]);
  });
  return specifiers;
}

/** The source file that a relative import names; other imports as they are. */
function fileOf(from: string, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  const path = join(dirname(from), specifier).replaceAll("\\", "/");
  return [`${path}.ts`, `${path}/index.ts`].find((file) => parsed.has(file)) ?? path;
}

const imported = new Map(
  files.map((file) => [file, importsOf(file).map((specifier) => fileOf(file, specifier))]),
);

describe("src/core", () => {
  it("imports nothing of this package outside itself, not even a type", () => {
    const isInside = (name: string) => core.includes(name);
    const isPackage = (name: string) => /^(better-auth|@better-auth\/core|zod)(\/|$)/.test(name);
    const outside = core.flatMap((file) =>
      (imported.get(file) ?? [])
        .filter((name) => !isInside(name) && !isPackage(name) && !TYPES_ONLY.includes(name))
        .map((name) => `${file} imports ${name}`),
    );
    expect(outside).toEqual([]);
  });

  it("compiles where all features, and the files of src itself, are deleted", () => {
    expect(problemsWithoutTheRest()).toEqual([]);
  }, 120_000);
});

/** Packages that `package.json` does not promise at run time. */
const TYPES_ONLY = ["better-call"];

function problemsWithoutTheRest(): string[] {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const host = ts.createCompilerHost(options);
  const isDeleted = (path: string) => {
    const name = relative(SRC, path).replaceAll("\\", "/");
    return !name.startsWith("..") && !name.startsWith("core/");
  };
  const { fileExists, readFile } = host;
  host.fileExists = (path) => !isDeleted(path) && fileExists(path);
  host.readFile = (path) => (isDeleted(path) ? undefined : readFile(path));
  const program = ts.createProgram(
    core.map((file) => join(SRC, file)),
    options,
    host,
  );
  return core.flatMap((file) => {
    const source = program.getSourceFile(join(SRC, file));
    const found = [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ];
    return found.map(
      ({ messageText }) => `${file}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`,
    );
  });
}

/** Groups of names that lead to each other, at whatever distance. */
function circlesIn(edges: [from: string, to: string][]): string[][] {
  const next = new Map<string, Set<string>>();
  for (const [from, to] of edges) next.set(from, (next.get(from) ?? new Set()).add(to));
  const reached = (start: string) => {
    const found = new Set<string>();
    for (const name of next.get(start) ?? []) found.add(name);
    for (const name of found) for (const further of next.get(name) ?? []) found.add(further);
    return found;
  };
  const circles = [...next.keys()]
    .filter((name) => reached(name).has(name))
    .map((name) => [...reached(name)].filter((other) => reached(other).has(name)).sort());
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()];
}

const edges = files.flatMap((from) =>
  (imported.get(from) ?? [])
    .filter((to) => parsed.has(to))
    .map((to): [string, string] => [from, to]),
);

describe("imports go in one direction, types included", () => {
  it("between the files of the core", () => {
    const inside = edges.filter(([from, to]) => core.includes(from) && core.includes(to));
    expect(circlesIn(inside)).toEqual([]);
  });

  it("between the folders of the core", () => {
    const areaOf = (file: string) => file.split("/").slice(0, -1).join("/");
    const inside = edges
      .filter(([from, to]) => core.includes(from) && core.includes(to))
      .map(([from, to]): [string, string] => [areaOf(from), areaOf(to)])
      .filter(([from, to]) => from !== to);
    expect(circlesIn(inside)).toEqual([]);
  });

  it("between the core, the features and the files of src itself", () => {
    const areaOf = (file: string) => /^(core|features\/[^/]+)\//.exec(file)?.[1] ?? file;
    // Clients take types of the server, which no server file takes from them.
    const between = edges
      .filter(([from]) => !/(^|\/)client\.ts$/.test(from))
      .map(([from, to]): [string, string] => [areaOf(from), areaOf(to)])
      .filter(([from, to]) => from !== to);
    expect(circlesIn(between)).toEqual([]);
  });
});

/**
 * Names that belong to a feature: models, columns, options, error codes. Paths of endpoints, actions
 * and codes that a feature defines itself are collected from its files.
 */
const WORDS: Record<string, string[]> = {
  credentials: [],
  domains: ["tenantDomain", "tenantDomains", "tenant-domains", "domain"],
  email: [],
  enterprise: ["scimUser", "createdUser", "ssoProvider", "XML_TOO_LARGE"],
  integrations: ["PLATFORM_ONLY", "stripe", "stripeCustomerId"],
  invitations: [
    ...["tenantInvitation", "tenantInvitations", "tenant-invitations", "sendInvitationEmail"],
    ...["invitation", "INVITATION_REQUIRED", "x-tenant-invitation"],
  ],
  management: [
    ...[
      "adminRoles",
      "adminUserIds",
      "canManageTenants",
      "tenantRoles",
      "onTenantEvent",
      "reset-two-factor",
    ],
    ...["TENANT_MANAGEMENT_NOT_ALLOWED", "TENANT_ALREADY_EXISTS", "LAST_ADMIN"],
    ...["ROLE_NOT_ALLOWED", "INVALID_SLUG", "SLUG_RESERVED"],
  ],
  oauth: [
    ...[
      "tenantOauthConfig",
      "oauth-config",
      "redirectBaseURL",
      "trustedProviderHosts",
      "secretChangedAt",
    ],
    ...["UNSUPPORTED_PROVIDER", "INVALID_PROVIDER_OPTIONS", "UNTRUSTED_PROVIDER_HOST"],
    ...["INVALID_REDIRECT_URI", "OAUTH_CONFIG_NOT_FOUND", "OAUTH_CONFIG_NOT_SAVED"],
    ...["OAUTH_CREDENTIAL_DECRYPT_FAILED"],
  ],
  policy: [
    ...[
      "policy",
      "platformPolicy",
      "sign-in-methods",
      "signInMethod",
      "secondFactorAt",
      "emailDomains",
    ],
    ...["SIGN_UP_CLOSED", "EMAIL_DOMAIN_NOT_ALLOWED", "SIGN_IN_METHOD_NOT_ALLOWED"],
    ...["TWO_FACTOR_REQUIRED", "POLICY_LOCKS_OUT"],
  ],
  "sign-in-page": ["sign-in-methods"],
};

/** Names and texts of a file's code, and the parts of paths in its texts. No comments. */
function namesIn(file: string): Set<string> {
  const names = new Set<string>();
  visitAll(file, (node) => {
    if (ts.isIdentifier(node)) names.add(node.text);
    if (
      ts.isStringLiteralLike(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node)
    ) {
      for (const name of [node.text, ...node.text.split("/")]) names.add(name);
    }
  });
  return names;
}

/** Paths and actions such as `/tenant/update` and `domain:add`. */
const OF_ENDPOINTS = /^(\/tenant\/[a-z-]+(\/[a-z-]+)*|[a-z-]+:[a-z-]+)$/;

/** Routes of a tenant stand for better-auth's own endpoints, which the core has to know. */
const isTenantRoute = (name: string) => /^\/tenant\/(sign-(in|up)|callback)\//.test(name);

function wordsOf(feature: string): string[] {
  const own = files.filter((file) => file.startsWith(`features/${feature}/`));
  const codes = own.filter((file) => file.endsWith("/error-codes.ts"));
  return [
    ...(WORDS[feature] ?? []),
    ...codes.flatMap((file) =>
      [...namesIn(file)].filter((name) => /^[A-Z]+(?!.*_CODES)_[A-Z_]+$/.test(name)),
    ),
    ...own.flatMap((file) => [...namesIn(file)].filter((name) => OF_ENDPOINTS.test(name))),
  ].filter((name) => !isTenantRoute(name) && !name.startsWith("node:"));
}

describe("the core names no feature", () => {
  const named = new Set(core.flatMap((file) => [...namesIn(file)]));

  it("every feature has its words here", () => {
    expect(Object.keys(WORDS)).toEqual(FEATURES);
    expect(wordsOf("management")).toContain("/tenant/create");
    expect(wordsOf("domains")).toContain("DOMAIN_NOT_FOUND");
  });

  it.each(FEATURES)("%s", (feature) => {
    expect(wordsOf(feature).filter((word) => named.has(word))).toEqual([]);
  });
});

it("plugin.ts lists every feature", async () => {
  const { context } = await createInstance({
    plugins: [
      sso(),
      oAuthProxy(),
      tenantInvitations({ sendInvitationEmail: async () => {} }),
      tenantDomains(),
    ],
    tenant: { scopedModels: ["ssoProvider"] },
  });
  const running = isolationOf(context)?.extensions.map(({ name }) => name) ?? [];
  const listed = imported.get("plugin.ts") ?? [];
  // A feature without an index.ts has endpoints only.
  const forgotten = FEATURES.filter((feature) =>
    files.includes(`features/${feature}/index.ts`)
      ? !running.includes(feature)
      : !listed.some((file) => file.startsWith(`features/${feature}/`)),
  );
  expect(forgotten).toEqual([]);
});

/** Names under which the core hands out the adapter without isolation. */
const WITHOUT_ISOLATION = ["unscoped", "unscopedAdapter", "unscopedAdapterFor"];

/** The files of features that ask the database without isolation. Each has to be read like the core. */
const UNSCOPED = [
  "features/credentials/endings.ts",
  "features/credentials/guard.ts",
  "features/domains/store.ts",
  "features/email/sign-up-values.ts",
  "features/enterprise/scim-linking.ts",
  "features/enterprise/scim.ts",
  "features/enterprise/sso-providers.ts",
  "features/integrations/key-owners.ts",
  "features/integrations/stripe.ts",
  "features/invitations/inviter.ts",
  "features/invitations/opener.ts",
  "features/invitations/store.ts",
  "features/management/delete.ts",
  "features/management/impersonation.ts",
  "features/management/remove-credentials.ts",
  "features/management/roles.ts",
];

it("only these files of features ask the database without isolation", () => {
  const asks = (file: string) => WITHOUT_ISOLATION.some((name) => namesIn(file).has(name));
  const found = files.filter((file) => file.startsWith("features/") && asks(file));
  expect(found.sort()).toEqual(UNSCOPED);
});
