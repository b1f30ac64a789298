import type { DBFieldAttribute } from "better-auth/db";
import { expect } from "vitest";
import { tenantAuth } from "../../src/index";
import { tenantInvitations } from "../../src/invitations/index";

/** A table of a generated schema, in words that fit every generator. */
export interface GeneratedTable {
  /** By better-auth's names. */
  columns: Record<string, { type: string; required: boolean; unique: boolean; default?: unknown }>;
  indexes: { fields: string[]; unique: boolean }[];
  /** Foreign keys: the column, the table it refers to, and what a deletion there does. */
  references: { field: string; model: string; onDelete: string }[];
}

type Schema = Record<
  string,
  {
    fields: Record<string, DBFieldAttribute>;
    indexes?: { fields: string[]; unique?: boolean }[];
  }
>;

/** Whatever the plugin's schema asks for has to be in what was generated from it. */
export function expectOurTables(tables: Record<string, GeneratedTable>) {
  for (const [model, { fields, indexes = [] }] of Object.entries(ourSchema())) {
    const table = tables[model];
    for (const [field, { required, unique = false, index, references }] of Object.entries(fields)) {
      const column = table?.columns[field];
      expect([model, field, column?.required]).toEqual([model, field, required !== false]);
      expect([model, field, column?.unique]).toEqual([model, field, unique]);
      if (index) expect(table?.indexes).toContainEqual({ fields: [field], unique: false });
      if (!references) continue;
      const { model: target, onDelete } = references;
      expect(table?.references).toContainEqual({ field, model: target, onDelete });
      expect(column?.type).toBe(tables[target]?.columns.id?.type);
    }
    for (const { fields, unique = false } of indexes) {
      expect(table?.indexes).toContainEqual({ fields, unique });
    }
  }
}

const ourSchema = () =>
  ({
    ...tenantAuth().schema,
    ...tenantInvitations({ sendInvitationEmail: () => {} }).schema,
  }) as unknown as Schema;

/** What must never get lost, whatever becomes of the schema. */
export function expectUniqueKeys(tables: Record<string, GeneratedTable>) {
  const isUnique = (model: string, ...fields: string[]) => {
    const [field = "", ...rest] = fields;
    const alone = !rest.length && tables[model]?.columns[field]?.unique;
    const index = tables[model]?.indexes.find((index) => index.fields.join() === fields.join());
    return alone || index?.unique === true;
  };
  expect(isUnique("tenant", "slug")).toBe(true);
  expect(isUnique("tenantOauthConfig", "tenantId", "providerId")).toBe(true);
  expect(isUnique("tenantInvitation", "tenantId", "pendingFor")).toBe(true);
  expect(isUnique("user", "tenantId", "email")).toBe(true);
  expect(isUnique("user", "email")).toBe(false);
}
