import { describe } from 'vitest';
import { embeddedDatabase, realDatabase } from '../harness/databases.ts';
import { describeReal } from '../services/real.ts';
import { historyContract } from './history.contract.ts';
import { mirrorContract } from './mirror.contract.ts';
import { registrationContract } from './registration.contract.ts';

describe('the mirror on the embedded database', () => {
  describe('notifications', () => mirrorContract(embeddedDatabase));
  describe('registrations', () => registrationContract(embeddedDatabase));
  describe('histories', () => historyContract(embeddedDatabase, 30));
});

describeReal('postgres', 'the mirror on PostgreSQL', () => {
  describe('notifications', () => mirrorContract(realDatabase));
  describe('registrations', () => registrationContract(realDatabase));
  describe('histories', () => historyContract(realDatabase, 15));
});
