import { describe } from 'vitest';
import { MemoryWakeUps } from '../../src/events/streams/wake-ups.ts';
import { wakeUpsContract } from './wake-ups.contract.ts';

describe('the wake-ups of one process', () => {
  wakeUpsContract(async () => {
    const both = new MemoryWakeUps();
    return [both, both];
  });
});
