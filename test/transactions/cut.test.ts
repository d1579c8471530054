import { describe, inject } from 'vitest';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { cutContract } from './cut.contract.ts';

describe('an interrupted delivery, on the embedded database', () => {
  cutContract(embeddedDatabase, inject('isThorough') ? 1 : 3);
});

describeReal('postgres', 'a delivery that is cut, on PostgreSQL', () => {
  cutContract(realDatabase);
});
