import type { Selectable } from 'kysely';
import { identifierKey } from '../../lib/identifier-key.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetList } from '../../platform/database/keyset-list.ts';
import type { Tables } from '../../tables/tables.ts';
import { permissionsOfRole } from '../identity/permissions.rules.ts';

/** A supervisor as used by the token endpoint. */
export type SupervisorRecord = ReturnType<typeof toRecord>;

/** Reads the supervisors of a tenant. */
export class Supervisors {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Returns the supervisor whose username has the same key, and whether others have it, too: of several, which earlier
   * releases allowed, the one with exactly this username. Undefined when the tenant has none.
   */
  async findByUsername(
    nodeId: string,
    username: string,
  ): Promise<(SupervisorRecord & { clashes: boolean }) | undefined> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('supervisors')
        .selectAll()
        .where((eb) => eb(eb.fn<string>('identifier_key', ['username']), '=', identifierKey(username))),
    );
    const clashes = rows.length > 1;
    const row = clashes ? rows.find((candidate) => candidate.username === username) : rows[0];
    return row && { ...toRecord(row), clashes };
  }

  /** Returns the supervisor with this id; undefined when the tenant has none. */
  async find(nodeId: string, supervisorId: string): Promise<SupervisorRecord | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('supervisors').selectAll().where('id', '=', supervisorId));
    return row && toRecord(row);
  }
}

function toRecord(row: Selectable<Tables['supervisors']>) {
  return {
    supervisorId: row.id,
    nodeId: row.node_id,
    username: row.username,
    passwordHash: row.password_hash,
    role: row.role,
    permissions: permissionsOfRole(row.role),
    active: row.status === 'active',
  };
}

/** The columns of a supervisor that may be shown: all but the hash of the password. */
export const SUPERVISOR_COLUMNS = ['id', 'node_id', 'username', 'role', 'status', 'created_at', 'updated_at'] as const;

/** A row of `supervisors` without the hash of its password; times are PostgreSQL's text in UTC, to the microsecond. */
export type SupervisorRow = Pick<Selectable<Tables['supervisors']>, (typeof SUPERVISOR_COLUMNS)[number]>;

/** Reads the supervisors of a tenant by keyset, active or not, oldest first. */
export const SupervisorPages = keysetList({
  rows: (k) => k.selectFrom('supervisors').select(SUPERVISOR_COLUMNS),
  order: ['created_at', 'id'],
});
