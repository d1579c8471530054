import { setTimeout as delay } from 'node:timers/promises';
import { portcullis } from '../cli/in-process.ts';
import { familyOf } from '../services/freeze.ts';
import { copyCluster, startPostgres } from '../services/postgres.ts';
import type { Cluster } from './cluster.ts';
import type { Fault } from './faults.ts';

const OLD_MS = 10_000;

/** What `portcullis recover --json` answers. */
export interface Recovered {
  groups: { groupId: string; topic: string; messages: number }[];
  nodes: number;
  clients: number;
  audit_gap: { from: string; to: string };
}

/** When the copy was begun and ended, and when the server was lost; performance.now() and the clock. */
export interface Restored {
  copyFrom: Moment;
  copyTo: Moment;
  lost: Moment;
  recovered: Recovered;
}

interface Moment {
  tick: number;
  atMs: number;
}

const now = (): Moment => ({ tick: performance.now(), atMs: Date.now() });

/**
 * PostgreSQL is lost with everything of the last ten seconds, and a copy of its files from then takes its place, in the
 * order of the runbook: every process is stopped, `portcullis recover`, every process is started.
 */
export function restored(told: (restored: Restored) => void): Fault {
  return {
    name: 'postgres: lost, a copy from 10 s before restored',
    run: async (cluster) => {
      const { postgres } = cluster.servers;
      const dataDir = cluster.folder('copy');
      const copyFrom = now();
      await copyCluster({ url: postgres.address(), dataDir: postgres.dataDir }, dataDir);
      const copyTo = now();
      await delay(OLD_MS);
      const lost = now();
      for (const pid of familyOf(postgres.pid())) process.kill(pid, 'SIGKILL');
      await Promise.all(cluster.replicas.map((replica) => replica.kill()));
      postgres.become(await startPostgres({ dataDir }));
      const recovered = await recover(cluster, copyFrom.atMs, '--keep-tokens');
      await Promise.all(cluster.replicas.map((replica) => replica.restart()));
      told({ copyFrom, copyTo, lost, recovered });
    },
  };
}

/** Runs `portcullis recover`, as soon as the members of the groups are forgotten. */
export async function recover(cluster: Cluster, sinceMs: number, ...flags: string[]): Promise<Recovered> {
  const args = ['recover', '--since', new Date(sinceMs).toISOString(), '--json', ...flags];
  for (;;) {
    const { code, out, err } = await portcullis(args, cluster.env);
    if (code === 0) return JSON.parse(out);
    if (!err.includes('consumers are running in')) throw new Error(err);
    await delay(1_000);
  }
}
