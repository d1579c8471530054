import { inject } from 'vitest';
import { startOnSharedStores, startPortcullis, startReplica } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { refreshOnceContract } from './refresh-once.contract.ts';

const racers = inject('isThorough') ? 20 : 6;

refreshOnceContract(
  { name: 'embedded', racers },
  async (overrides) => {
    const p = await startPortcullis({ overrides });
    return [p, p];
  },
  async ([p]) => {
    await p[Symbol.asyncDispose]();
  },
);

describeReal(['postgres', 'redis'], '8-04 D3-20 D3-21: two replicas on one database', () => {
  refreshOnceContract(
    { name: 'two replicas', racers },
    async (overrides) => {
      const p = await startOnSharedStores({ overrides });
      return [p, await startReplica(p, { overrides })];
    },
    async ([p, replica]) => {
      await replica[Symbol.asyncDispose]();
      await p[Symbol.asyncDispose]();
    },
  );
});
