import type { Db } from '../db.ts';
import { permissionsOfRole } from '../oauth/permissions.rules.ts';

export const MAX_USERNAME_LENGTH = 255;

/** A supervisor as the token endpoint knows one. */
export interface SupervisorRecord {
  supervisorId: string;
  nodeId: string;
  username: string;
  passwordHash: string;
  role: string;
  permissions: readonly string[];
  active: boolean;
}

/** Reads the supervisors of a node. */
export class Supervisors {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** The supervisor of this node with this name, in any case of its letters; nobody has one over `MAX_USERNAME_LENGTH`. */
  async findByUsername(nodeId: string, username: string): Promise<SupervisorRecord | undefined> {
    const [row] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('supervisors')
        .selectAll()
        .where((eb) => eb(eb.fn<string>('lower', ['username']), '=', eb.fn<string>('lower', [eb.val(username)]))),
    );
    return row && username.length <= MAX_USERNAME_LENGTH ? toRecord(row) : undefined;
  }

  /** The supervisor of this node with this id. */
  async find(nodeId: string, supervisorId: string): Promise<SupervisorRecord | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('supervisors').selectAll().where('id', '=', supervisorId));
    return row && toRecord(row);
  }
}

function toRecord(row: {
  id: string;
  node_id: string;
  username: string;
  password_hash: string;
  role: string;
  status: 'active' | 'disabled';
}): SupervisorRecord {
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
