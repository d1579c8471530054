import { setTimeout as delay } from 'node:timers/promises';
import { vi } from 'vitest';
import { type FaultProxy, faultProxy } from '../services/fault-proxy.ts';
import { familyOf, freezeFamily } from '../services/freeze.ts';
import { type PostgresClient, withPostgres } from '../services/pg-client.ts';
import { type PostgresServer, startStandby } from '../services/postgres.ts';
import type { Cluster } from './cluster.ts';
import type { Fault } from './faults.ts';

/** How the primary leaves: its machine dies, is frozen for good, or it is told to write no more and stays. */
export type Leave = 'killed' | 'frozen' | 'read-only';

export interface Promotion {
  leave: Leave;
  /** With it a commit waits for the standby; without it the standby lacks what was committed in the last `lagMs`. */
  isSynchronous: boolean;
  lagMs?: number;
}

const LAG_MS = 1_000;
/** What an operator or a tool takes to notice and to decide. */
const DECISION_MS = 2_000;

/** A time whose commits the standby has, just before it heard the last of the primary, by performance.now() and by the clock. */
export interface Heard {
  tick: number;
  atMs: number;
}

/**
 * A streaming replica of the cluster's PostgreSQL is promoted and takes over its address. Connections to the former
 * primary are left to themselves: nobody ends them.
 */
export function promoted(
  { leave, isSynchronous, lagMs = LAG_MS }: Promotion,
  told: (heard: Heard) => void = () => undefined,
): Fault {
  const mode = isSynchronous ? 'synchronous' : `asynchronous, ${lagMs / 1_000} s behind`;
  return {
    name: `postgres: ${leave}, its replica promoted (${mode})`,
    run: async (cluster) => {
      const { standby, link } = await standbyOf(cluster, isSynchronous);
      const { postgres } = cluster.servers;
      const primary = { pid: postgres.pid(), url: postgres.address() };
      await delay(500);
      told({ tick: performance.now(), atMs: Date.now() });
      await withPostgres(primary.url, (client) => caughtUp(client, standby.url));
      if (!isSynchronous && lagMs > 0) {
        link.set('frozen');
        await delay(lagMs);
      }
      if (leave === 'killed') killAll(familyOf(primary.pid));
      else if (leave === 'frozen') {
        // A frozen process has to end with the test; the cluster ends only the parent.
        const family = await freezeFamily(primary.pid);
        cluster.defer(() => killAll(family));
      } else await stopWriting(primary.url, standby.url);
      await delay(DECISION_MS);
      await withPostgres(standby.url, (client) => client.query('select pg_promote(true, 30)'));
      postgres.become(standby);
    },
  };
}

/** For a while the address names a standby, which reads and does not write; connections to it are left open afterwards. */
export function misled(forMs: number): Fault {
  return {
    name: `postgres: the address names its replica for ${forMs / 1_000} s`,
    run: async (cluster) => {
      const { standby } = await standbyOf(cluster, false);
      const { proxy } = cluster.servers.postgres;
      const port = proxy.targetPort;
      try {
        proxy.set('cut');
        proxy.targetPort = standby.port;
        proxy.set('passing');
        await delay(forMs);
      } finally {
        // Its connections stay open while the readers and writers come back.
        proxy.targetPort = port;
      }
    },
  };
}

let standbys = 0;

async function standbyOf(
  cluster: Cluster,
  isSynchronous: boolean,
): Promise<{ standby: PostgresServer; link: FaultProxy }> {
  const { postgres } = cluster.servers;
  const url = postgres.address();
  standbys += 1;
  const link = await faultProxy(Number(new URL(url).port));
  cluster.defer(() => link[Symbol.asyncDispose]());
  const dataDir = cluster.folder(`standby-${standbys}`);
  const standby = await startStandby({ url, dataDir: postgres.dataDir }, { dataDir, primaryPort: link.port });
  cluster.defer(() => standby.stop());
  await withPostgres(url, async (client) => {
    if (isSynchronous) {
      await client.query(`alter system set synchronous_standby_names = 'standby'`);
      await client.query('select pg_reload_conf()');
    }
    await vi.waitFor(
      async () => {
        const { rows } = await client.query('select sync_state from pg_stat_replication');
        const wanted = isSynchronous ? 'sync' : 'async';
        if (rows[0]?.sync_state !== wanted) throw new Error(`the standby is ${JSON.stringify(rows)}`);
      },
      { timeout: 20_000, interval: 100 },
    );
  });
  return { standby, link };
}

/** As for a planned change: the primary takes no more writes, and the standby has everything. */
async function stopWriting(primary: string, standby: string): Promise<void> {
  await withPostgres(primary, async (client) => {
    await client.query('alter system set default_transaction_read_only = on');
    await client.query('select pg_reload_conf()');
    await delay(500);
    await caughtUp(client, standby);
  });
}

/** Resolves when the standby has what the primary has had committed by now. */
async function caughtUp(primary: PostgresClient, standby: string): Promise<void> {
  const { rows } = await primary.query('select pg_current_wal_lsn() as lsn');
  await withPostgres(standby, (other) =>
    vi.waitFor(
      async () => {
        const { rows: reached } = await other.query('select pg_last_wal_replay_lsn() >= $1::pg_lsn as is', [
          rows[0]?.lsn,
        ]);
        if (reached[0]?.is !== true) throw new Error('the standby is behind');
      },
      { timeout: 20_000, interval: 10 },
    ),
  );
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended with its parent.
    }
  }
}
