import type { Tables } from './entities.ts';
import type { TenantDb } from './lib/tenant-db.ts';

/** The database as services see it: two doors and a transaction. */
export type Db = TenantDb<Tables>;
