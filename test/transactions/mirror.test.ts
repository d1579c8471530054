import { describe, inject } from 'vitest';
import type { Database } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { historyContract } from './history.contract.ts';
import { mirrorContract } from './mirror.contract.ts';
import { registrationContract } from './registration.contract.ts';

const RUNS = inject('isThorough') ? 15 : 4;

/** The contracts share a database, in which each has nodes of its own. */
function mirrorSuite(open: () => Promise<Database>, runs: number): void {
  const database = beforeTests(open);

  describe('notifications', () => mirrorContract(database));
  describe('registrations', () => registrationContract(database));
  describe('histories', () => historyContract(database, runs));
}

describeEmbedded('the mirror on the embedded database', () => mirrorSuite(embeddedDatabase, 2 * RUNS));

describeReal('postgres', 'the mirror on PostgreSQL', () => mirrorSuite(realDatabase, RUNS));
