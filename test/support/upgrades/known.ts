import { join } from 'node:path';
import type { ClientCredentials } from '../oauth/clients.ts';

/**
 * The archives of what 0.1.0 left behind, and what is in each beside the `DATA_DIR`. Its own code (6003582) made them by the program
 * `test/upgrades/make-fixtures.ts` of fa15b62; they stay as they are.
 */
export const FIXTURES = join(import.meta.dirname, 'fixtures');
export const KNOWN = 'known.json';
export const DUMP = 'dump.sql';

/** What a release told the clients that its traffic came from: a later version must go on from there. */
export interface Known {
  release: string;
  /** The time at which the last of it was told, in milliseconds since 1970. */
  atMs: number;
  /** Names, texts and numbers that few encodings survive. */
  texts: { name: string; surname: string; gasUsed: string; amount: string; error: string };
  tables: Record<string, number>;
  /** The tokens of a client whose tokens have no end, of the demo's client, of a login, and one that was revoked. */
  endlessToken: string;
  clientToken: string;
  clientRefreshToken: string;
  loginToken: string;
  loginRefreshToken: string;
  revokedToken: string;
  disabledClient: ClientCredentials;
  limitedClient: ClientCredentials & { token: string; used: number };
  createdSupervisor: { username: string; password: string };
  accountIds: string[];
  cursor: { after: string; next: string[] };
  eventCursor: string;
  userId: string;
  erased: { userId: string; name: string };
  keyed: { key: string; body: string; answer: string };
  ruleId: string;
  assetAddress: string;
  /** A transaction that is done, one that waits for its registration, one of which the last notification is not applied. */
  doneId: string;
  parkedId: string;
  behindId: string;
  bulk: { id: string; rows: unknown[] };
  file: { id: string; rows: number; failed: number; applied: number };
  waitingUser: string;
  parkedWallet: { id: string; accountId: string };
  deletedAccount: string;
  /** Correlation ids of records that the database has, and of those that only the spool has. */
  writtenRecords: string[];
  spooledRecords: string[];
}
