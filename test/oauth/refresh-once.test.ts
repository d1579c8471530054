import { startOnRealServers, startPortcullis, startReplica } from '../harness.ts';
import { describeReal } from '../services/real.ts';
import { refreshOnceContract } from './refresh-once.contract.ts';

refreshOnceContract(
  'embedded',
  async (overrides) => {
    const p = await startPortcullis({ overrides });
    return [p, p];
  },
  async ([p]) => {
    await p[Symbol.asyncDispose]();
  },
);

describeReal(['postgres', 'redis', 'kafka'], '8-04 D3-20 D3-21: two replicas on one database', () => {
  refreshOnceContract(
    'two replicas',
    async (overrides) => {
      const p = await startOnRealServers({ overrides });
      return [p, await startReplica(p, { overrides })];
    },
    async ([p, replica]) => {
      await replica[Symbol.asyncDispose]();
      await p[Symbol.asyncDispose]();
    },
  );
});
