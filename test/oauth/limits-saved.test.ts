import { describe } from 'vitest';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { savedLimitsContract } from './limits-saved.contract.ts';

describe('use that is saved in the database of this process', () => savedLimitsContract(embeddedDatabase));

describeReal('postgres', 'use that is saved on PostgreSQL', () => savedLimitsContract(realDatabase));
