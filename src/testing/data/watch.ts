import { tenantInPrefix } from "../../core/prefix";
import type { Subject } from "../instance/subject";
import type { IsolationOptions, Row, Values } from "../options";
import { type Place, SIDES, type SideName } from "../sides/places";
import { openEntries } from "./entries";
import type { OwnTables } from "./own-tables";
import { createOwnership, keyOf, type Ownership } from "./ownership";
import { type Change, changesBetween, noteWrites, openTables, type Tables } from "./rows";
import { isSecret, textsIn } from "./texts";

/** What a row is known by; one without an id is another row when it changes. */
const idOf = (row: Values) => String(row.id ?? JSON.stringify(row));

type Texts = Record<SideName, string[]>;

/** All that is stored, in the database and in secondary storage, who owns it, and the way back to it. */
export class Watch {
  /** What was put into the verification table or its replacement last. */
  lastVerification = "";
  secrets: Texts = { a: [], b: [], platform: [] };
  /** Whether the application's own tables were changed by the last request. */
  isOwnChanged = false;
  guardAgain: () => Promise<void> = async () => {};

  private readonly tables;
  private readonly entries;
  private readonly stopNoting: () => void;
  private readonly written = new Set<string>();
  private readonly created = new Set<string>();
  private readonly made = new Map<string, SideName>();
  private readonly effects = new Map<string, Change[][]>();
  private ownership: Ownership | undefined;
  private initial: Tables = new Map();
  private before: Tables = new Map();
  private ownInitial: Tables = new Map();
  private own: Tables = new Map();

  constructor(
    subject: Subject,
    private readonly ownTables: OwnTables,
    private readonly options: IsolationOptions,
  ) {
    this.tables = openTables(subject);
    this.stopNoting = noteWrites(subject, (model, data, createdId) => {
      this.written.add(model);
      if (createdId !== undefined) this.created.add(keyOf(model, createdId));
      if (model === "verification" && data) this.lastVerification = String(Object(data).value);
    });
    this.entries = openEntries(subject, (key, value) => {
      if (key.includes("verification:")) this.lastVerification = textsIn(value).join("\n");
    });
  }

  async begin(): Promise<void> {
    await this.readEverything();
    this.initial = this.before;
    this.ownInitial = this.own;
  }

  private async readEverything(): Promise<void> {
    this.before = await this.tables.readAll();
    this.own = await this.readOwn();
    this.written.clear();
  }

  private async readOwn(): Promise<Tables> {
    const tables = Object.entries(await this.ownTables.read());
    return new Map(
      tables.map(([name, rows]) => [
        name,
        new Map(rows.map((row) => [idOf(row), { row: row as Row, text: JSON.stringify(row) }])),
      ]),
    );
  }

  /** What has come since it was last asked belongs to the side that it was made on. */
  async attribute(side: SideName): Promise<void> {
    await this.readEverything();
    for (const { table, id, was } of [
      ...changesBetween(this.initial, this.before),
      ...changesBetween(this.ownInitial, this.own),
    ]) {
      const key = keyOf(table, id);
      if (!was && !this.made.has(key)) this.made.set(key, side);
    }
  }

  /** Remembers what an endpoint has done since `attribute`. A deletion is undone at once. */
  async noteEffects(endpoint: string): Promise<void> {
    const now = await this.tables.readAll();
    const own = changesBetween(this.own, await this.readOwn());
    const changes = [...own, ...changesBetween(this.before, now)];
    if (changes.every((change) => change.now)) {
      this.effects.set(endpoint, [...(this.effects.get(endpoint) ?? []), changes]);
      return;
    }
    await this.tables.restore(this.before, now, this.isOurs);
    await this.putBackOwn(own);
  }

  private async putBackOwn(changes: Change[]): Promise<void> {
    const own = this.ownTables;
    // First what is there now: the row that comes back may have the same key.
    for (const { table, now } of changes) {
      if (now) await own.remove(table, now.row).catch(() => false);
    }
    for (const { table, was } of changes) {
      if (was) await own.putBack(table, was.row).catch(() => false);
    }
  }

  /** Undoes what an endpoint did as test data: sent again, its input would change nothing. */
  async undoEffects(endpoint: string): Promise<void> {
    const effects = this.effects.get(endpoint) ?? [];
    if (!effects.length) return;
    this.effects.delete(endpoint);
    const goal = new Map([...this.before].map(([model, table]) => [model, new Map(table)]));
    for (const changes of effects.toReversed()) {
      await this.putBackOwn(changes);
      for (const { table, id, was } of changes) {
        if (was) goal.get(table)?.set(id, was);
        else goal.get(table)?.delete(id);
      }
    }
    await this.tables.restore(goal, await this.tables.readAll(), this.isOurs);
    await this.readEverything();
  }

  /** From here on nothing may change. */
  async guard(subject: Subject, places: Place[], extra: Texts): Promise<void> {
    // After a leak, test data is created again, and all of it is guarded from then on.
    this.guardAgain = () => this.guard(subject, places, extra);
    await this.readEverything();
    this.ownership = createOwnership(subject, places, this.made);
    // Twice: the owner of a row may be known by the row that it refers to.
    this.ownership.learn(this.before);
    this.ownership.learn(this.before);
    this.entries.remember();
    this.secrets = this.findSecrets(this.ownership, extra);
  }

  private findSecrets(ownership: Ownership, extra: Texts): Texts {
    const models = [...this.before.keys(), ...this.own.keys()];
    const textsOf = (side: SideName) => {
      const ofRows = models.flatMap((model) => this.rowsOf(side, model).flatMap(textsIn));
      const all = [...ofRows, ...this.entries.textsOf(side, ownership), ...extra[side]];
      return new Set(all.filter(isSecret));
    };
    const texts = { a: textsOf("a"), b: textsOf("b"), platform: textsOf("platform") };
    const onlyAt = (side: SideName) =>
      [...texts[side]].filter((text) =>
        SIDES.every((other) => other === side || !texts[other].has(text)),
      );
    return { a: onlyAt("a"), b: onlyAt("b"), platform: onlyAt("platform") };
  }

  /** The rows of a side in a table of better-auth, or of the application's own. */
  rowsOf(side: SideName, model: string): Row[] {
    const own = this.own.get(model);
    const ownerOf = own ? undefined : this.ownership?.ownerOf;
    const isTheirs = (row: Row) =>
      (ownerOf ? ownerOf(model, row) : this.made.get(keyOf(model, idOf(row)))) === side;
    const rows = [...(own ?? this.before.get(model) ?? new Map<string, never>()).values()];
    return rows.map(({ row }) => row).filter(isTheirs);
  }

  /** The table that a text is from: "note". */
  sourceOf(side: SideName, text: string): string | undefined {
    const models = [...this.own.keys(), ...this.before.keys()];
    return models.find((model) =>
      this.rowsOf(side, model).some((row) => textsIn(row).includes(text)),
    );
  }

  /** Whether a row is of this run: only such rows are compared, put back or deleted. */
  private readonly isOurs = ({ table, id, row }: Change): boolean => {
    // Without other tenants, all changes during the run are its own.
    if (!this.options.allowExistingTenants) return true;
    if (this.initial.get(table)?.has(id)) return false;
    if (this.created.has(keyOf(table, id))) return true;
    // New rows of the platform may be of users who signed up meanwhile.
    const owner = this.ownership?.ownerOf(table, row) ?? this.made.get(keyOf(table, id));
    return owner === "a" || owner === "b";
  };

  /** Changes of the sides; undoes all changes. What the request said, `known`, may be stored. */
  async changesOf(sides: SideName[], everywhere = false, known?: string): Promise<string[]> {
    const { ownership, tables } = this;
    if (!ownership) throw new Error("nothing is guarded yet");
    const now = await tables.readAll(everywhere ? undefined : tables.withDependents(this.written));
    const changes = changesBetween(this.before, now);
    const owned = changes.flatMap((change) => {
      const owner = ownership.ownerOf(change.table, change.row);
      return owner && sides.includes(owner) && this.isOurs(change) ? [{ ...change, owner }] : [];
    });
    const found = summariesOf(owned);
    for (const { table, now: is } of known === undefined ? [] : changes) {
      if (is)
        found.push(...this.foreignTexts(table, is.row, ownership.ownerOf(table, is.row), known));
    }
    await tables.restore(this.before, now, this.isOurs);
    this.written.clear();
    return [...found, ...(await this.entries.changesOf(sides, ownership))];
  }

  /** What one side now stores that belongs to another: a job that ran in the wrong tenant. */
  private foreignTexts(model: string, row: Row, owner: SideName | undefined, known = "") {
    // A row of this table may hold the address that is to be verified and what it is for.
    if (!owner || model === "verification") return [];
    const texts = textsIn(row).filter((text) => isSecret(text) && !known.includes(text));
    return SIDES.filter((side) => side !== owner).flatMap((side) => {
      const foreign = texts.find((text) => this.secrets[side].includes(text));
      return foreign
        ? [`${model} of ${owner}: it now holds what belongs to ${side}: ${foreign}`]
        : [];
    });
  }

  /**
   * What a request on one side has changed in the application's own tables, of others. These rows
   * are not put back. A row without an owner belongs to the first side that writes it.
   */
  async changesOfOwn(side: SideName, known = "", countsNew = false): Promise<string[]> {
    const before = this.own;
    this.own = await this.readOwn();
    const { sharedTables = [] } = this.options;
    const changes = changesBetween(before, this.own).filter(
      ({ table }) => !sharedTables.includes(table),
    );
    this.isOwnChanged = changes.length > 0;
    const owned = changes.map((change) => {
      const key = keyOf(change.table, change.id);
      const owner = this.made.get(key) ?? this.ownership?.namedIn(change.row) ?? side;
      // While test data is created, what a side has overwritten is its own from then on.
      this.made.set(key, this.ownership ? owner : side);
      return { ...change, owner };
    });
    return [
      ...summariesOf(owned.filter(({ owner, was }) => owner !== side && (was || countsNew))),
      ...owned.flatMap(({ table, now, owner }) =>
        now ? this.foreignTexts(table, now.row, owner, known) : [],
      ),
    ];
  }

  /** Undoes what a request on a side has changed, if its changes do not count. */
  async ignoreChanges(side: SideName, everywhere = true): Promise<void> {
    await this.changesOf([], everywhere);
    await this.changesOfOwn(side);
  }

  /** Deletes all sessions in the table, and one in secondary storage: there may be no table. */
  async forgetSessions(token: string): Promise<void> {
    const now = await this.tables.readAll(new Set(["session"]));
    await this.tables.restore(new Map(), now, this.isOurs);
    const tenantId = tenantInPrefix(token);
    await this.entries.forget([tenantId === null ? token : `tenant:${tenantId}:${token}`]);
  }

  /** Deletes all that the run has made, and stops watching. */
  async end(keep: boolean): Promise<void> {
    this.stopNoting();
    try {
      if (keep) return;
      await this.entries.forget();
      await this.tables.restore(this.initial, await this.tables.readAll(), this.isOurs);
    } finally {
      this.entries.stop();
    }
  }

  /** Deletes rows of the application's tables that the run has caused. Returns what is left. */
  async removeOwn(): Promise<string[]> {
    const isCaused = ({ was, table, id }: Change) =>
      !was && (!this.options.allowExistingTenants || this.made.has(keyOf(table, id)));
    let left = changesBetween(this.ownInitial, await this.readOwn()).filter(isCaused);
    for (let many = Number.POSITIVE_INFINITY; left.length && left.length < many; ) {
      many = left.length;
      const stay: Change[] = [];
      for (const change of left) {
        const isGone = this.ownTables.remove(change.table, change.row).catch(() => false);
        if (!(await isGone)) stay.push(change);
      }
      left = stay;
    }
    const counts = new Map<string, number>();
    for (const { table } of left) counts.set(table, (counts.get(table) ?? 0) + 1);
    return [...counts].map(([table, many]) => `${many} rows of "${table}"`);
  }
}

/** By table and owner: "user of a: 1 new, 2 changed (name)". */
function summariesOf(changes: (Change & { owner: SideName })[]): string[] {
  const groups = new Map<string, Change[]>();
  for (const change of changes) {
    const name = `${change.table} of ${change.owner}`;
    groups.set(name, [...(groups.get(name) ?? []), change]);
  }
  return [...groups].map(([name, its]) => {
    const changed = its.filter(({ was, now }) => was && now);
    const columns = changed.flatMap(({ row, now }) =>
      Object.keys(row).filter(
        (column) => JSON.stringify(row[column]) !== JSON.stringify(now?.row[column]),
      ),
    );
    const counts: [number, string][] = [
      [its.filter(({ was }) => !was).length, "new"],
      [its.filter(({ now }) => !now).length, "gone"],
      [changed.length, `changed (${[...new Set(columns)].join(", ")})`],
    ];
    const kinds = counts.flatMap(([many, kind]) => (many ? [`${many} ${kind}`] : []));
    return `${name}: ${kinds.join(", ")}`;
  });
}
