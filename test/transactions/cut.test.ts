import { inject } from 'vitest';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { cutContract } from './cut.contract.ts';

describeEmbedded('an interrupted delivery, on the embedded database', () => {
  cutContract(embeddedDatabase, inject('isThorough') ? 1 : 3);
});

describeReal('postgres', 'a delivery that is cut, on PostgreSQL', () => {
  cutContract(realDatabase);
});
