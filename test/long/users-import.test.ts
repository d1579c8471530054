import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, openAsBlob } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type Portcullis, startOnRealServers } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { printed, type Spawned, spawnInstance, startInstance } from '../support/start/process.ts';

const ROWS = 1_000_000;
const KILLED_AFTER = 300_000;
/** Of so many rows one has a KYC event to come, one is at fault, one is of a wallet that another has. */
const EVERY = 100;
const MAX_RESIDENT_MB = 400;
const SAMPLE_MS = 200;

const MUTATION = `mutation ($file: File!) { startUserMigration(file: $file) {
  __typename ... on Migration { id total } ... on Error { message } } }`;

describeReal(['postgres', 'redis', 'kafka'], 'a million users out of a file', () => {
  it('D7-09: the file is uploaded to one replica and run by another that is killed: each row is applied once', async () => {
    await using stack = new AsyncDisposableStack();
    const folder = stack.adopt(await mkdtemp(join(tmpdir(), 'portcullis-million-')), (path) =>
      rm(path, { recursive: true, force: true }),
    );
    const p = stack.use(await startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } }));
    const bytes = await writeUsers(join(folder, 'users.csv'));
    const memory = new Memory();
    stack.defer(() => memory.stop());
    const env = (name: string, role: string) => ({
      ...p.env,
      AUDIT_SPOOL_DIR: join(folder, name),
      PORTCULLIS_ROLE: role,
    });

    const gateway = stack.use(await startInstance(env('gateway', 'gateway')));
    memory.watch('gateway', gateway.pid);
    const startedAt = performance.now();
    const id = await upload(gateway.baseUrl, await p.clientToken(), join(folder, 'users.csv'));
    const uploadedAt = performance.now();

    const first = stack.use(await startWorker(env('first', 'worker')));
    memory.watch('first worker', first.pid);
    await processed(p, id, KILLED_AFTER, first);
    await first.kill('SIGKILL');
    const then = await progressOf(p, id);
    expect(then).toMatchObject({ total: ROWS, done: false });
    const second = stack.use(await startWorker(env('second', 'worker')));
    memory.watch('second worker', second.pid);
    await processed(p, id, ROWS, second);
    const endedAt = performance.now();

    const part = ROWS / EVERY;
    const { migration } = await progressOf(p, id);
    expect(migration).toMatchObject({ status: 'done', success: ROWS - 2 * part, skipped: part, failed: part });
    expect(await countsOf(p)).toEqual({
      rows: ROWS,
      indexes: ROWS,
      last: ROWS,
      users: ROWS - 2 * part,
      chunks: 0,
      jobs: 0,
    });
    const report = {
      megabytes: Math.round(bytes / 1e6),
      uploadSeconds: Math.round((uploadedAt - startedAt) / 1_000),
      killedAt: then.processed,
      runSeconds: Math.round((endedAt - uploadedAt) / 1_000),
      mostResidentMb: memory.most(),
    };
    process.stdout.write(`${JSON.stringify(report)}\n`);
    for (const most of Object.values(memory.most())) expect(most).toBeLessThan(MAX_RESIDENT_MB);
  });
});

/** Writes the file, and gives its bytes. */
async function writeUsers(path: string): Promise<number> {
  const stream = createWriteStream(path);
  stream.write('wallet_address,email,external_id,name,surname,kyc_sent\n');
  for (let row = 1; row <= ROWS; row += 1) {
    if (!stream.write(lineOf(row))) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'close');
  return stream.bytesWritten;
}

function lineOf(row: number): string {
  const identifiers = `user-${row}@example.com,external-${row}`;
  switch (row % EVERY) {
    case 0:
      return `0x${row},${identifiers},"never closed,Family,true\n`;
    case 1:
      return `0x${row},${identifiers},Given,Family,false\n`;
    case 2:
      return `0X${row - 1},${identifiers},Given,Family,true\n`;
    default:
      return `0x${row},${identifiers},"Given ${row}","Family, of ${row}",true\n`;
  }
}

/** Sends the file as a GraphQL multipart request. */
async function upload(baseUrl: string, token: string, path: string): Promise<string> {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query: MUTATION, variables: { file: null } }));
  form.append('map', JSON.stringify({ file: ['variables.file'] }));
  form.append('file', await openAsBlob(path, { type: 'text/csv' }), 'users.csv');
  const response = await fetch(`${baseUrl}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: form,
  });
  const body = await response.text();
  expect({ status: response.status, body }).toMatchObject({
    status: 200,
    body: expect.stringContaining('"Migration"'),
  });
  const { id, total } = JSON.parse(body).data.startUserMigration;
  expect(total).toBe(ROWS);
  return id;
}

async function startWorker(env: Record<string, string>): Promise<Spawned> {
  const worker = spawnInstance(env);
  await printed(worker, /"msg":"started"/);
  return worker;
}

async function progressOf(p: Portcullis, id: string) {
  const progress = await p.service.context.migrationFiles.progress(p.demo.node_id, id);
  if (!progress) throw new Error(`there is no migration ${id}`);
  return progress;
}

/** Waits until so many rows are applied by a worker that lives; all of them: until the migration has ended. */
async function processed(p: Portcullis, id: string, rows: number, worker: Spawned): Promise<void> {
  let isAlive = true;
  void worker.ended.then(() => {
    isAlive = false;
  });
  for (;;) {
    const progress = await progressOf(p, id);
    if (rows < ROWS ? progress.processed >= rows : progress.done) return;
    if (progress.done || !isAlive) throw new Error(`it ended after ${progress.processed} rows`);
    await delay(SAMPLE_MS);
  }
}

async function countsOf(p: Portcullis): Promise<object> {
  const [counts] = await p.service.context.database.db.unscoped('test').raw(
    (sql) => sql<object>`
      select (select count(*)::int from migration_rows) as rows, (select count(distinct index)::int from migration_rows)
        as indexes, (select max(index) from migration_rows) as last, (select count(*)::int from users
          where external_id like 'external-%') as users, (select count(*)::int from migration_files) as chunks, (select count(*)::int from migration_jobs) as jobs`,
  );
  return counts ?? {};
}

/** The most resident memory of processes, in 10^6 bytes, sampled. */
class Memory {
  readonly #most = new Map<string, number>();
  readonly #timers: NodeJS.Timeout[] = [];

  watch(name: string, pid: number): void {
    this.#most.set(name, 0);
    this.#timers.push(
      setInterval(() => {
        this.#most.set(name, Math.max(this.#most.get(name) ?? 0, residentMb(pid)));
      }, SAMPLE_MS),
    );
  }

  most(): Record<string, number> {
    return Object.fromEntries([...this.#most].map(([name, mb]) => [name, Math.round(mb)]));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}

function residentMb(pid: number): number {
  try {
    return (Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1_024) / 1e6;
  } catch {
    // It has ended.
    return 0;
  }
}
