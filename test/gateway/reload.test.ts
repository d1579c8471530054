import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { type ChangingFile, changingFile, hangUp, logLine, tableText } from '../support/gateway/reloaded.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { startOnRealServers } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, startedFolder } from '../support/start/folders.ts';
import {
  printed,
  type Running,
  type Spawned,
  spawnCli,
  spawnInstance,
  startInstance,
} from '../support/start/process.ts';

// Each starts processes, on machines that are busy with other tests.
/** An endpoint that no handler has: 503 where it is registered, 404 where it is not. */
function tableWith(...paths: string[]): string {
  const endpoints = paths.map((path) => ({ methods: ['GET'], path, services: ['integration'], visibility: 'public' }));
  return tableText({ endpoints });
}

const folder = beforeTests(startedFolder);
let file: ChangingFile;
let instance: Running;

beforeAll(async () => {
  file = await changingFile(tableWith('/there'));
  instance = await startInstance({ DATA_DIR: folder.path, GATEWAY_CONFIG: file.path });
});
afterAll(async () => {
  await instance[Symbol.asyncDispose]();
  await file[Symbol.asyncDispose]();
});

async function statusesOf(...paths: string[]): Promise<number[]> {
  const answers = await Promise.all(paths.map((path) => fetch(`${instance.baseUrl}${path}`)));
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  return answers.map(({ status }) => status);
}

async function becomes(statuses: number[], ...paths: string[]): Promise<void> {
  await vi.waitFor(async () => expect(await statusesOf(...paths)).toEqual(statuses));
}

describe('SIGHUP', () => {
  it('changes the reachable paths, and logs how many', async () => {
    expect(await statusesOf('/there', '/new')).toEqual([503, 404]);
    await file.replace(tableWith('/new', '/newer'));
    hangUp(instance);
    await becomes([404, 503, 503], '/there', '/new', '/newer');
    const line = await logLine(instance, /"endpoints_added":2,"endpoints_removed":1/);
    expect(line).toMatchObject({ level: 'info', file: file.path, services_changed: 0 });
  });

  it('with an invalid file keeps the table, and logs file, line and field as a start does', async () => {
    const faulty = tableWith('/new').replace('{', '{\n\n"pernissions": 1,').replace('"/new"', '\n"new"');
    await file.replace(faulty);
    hangUp(instance);
    const { faults } = await logLine(instance, /"level":"error".*pernissions/);
    const { err: told } = await portcullis(['config', 'check'], { GATEWAY_CONFIG: file.path });
    expect((faults as string[]).map((fault) => `${fault}\n`).join('')).toBe(told);
    expect(told).toMatch(/gateway\.yaml:3: endpoints\.\d+\.path: must be a path/);
    expect(told).toMatch(/gateway\.yaml:3: the file: .*pernissions/);
    expect(await statusesOf('/new', '/newer')).toEqual([503, 503]);
    await rm(file.path);
    hangUp(instance);
    await logLine(instance, /"level":"error".*cannot be read \(ENOENT\)/);
    expect(await statusesOf('/new', '/newer')).toEqual([503, 503]);
    const metrics = await (await fetch(`${instance.adminUrl}/metrics`)).text();
    expect(metrics).toContain('portcullis_gateway_file_in_force 0');
  });

  it('updates the dates of the deprecated alias', async () => {
    await file.replace(tableText({ sunset: '2030-01-01T00:00:00Z' }));
    hangUp(instance);
    await vi.waitFor(async () => {
      const answer = await fetch(`${instance.baseUrl}/v2/webhooks`, { method: 'POST' });
      expect(answer.headers.get('sunset')).toBe('Tue, 01 Jan 2030 00:00:00 GMT');
    });
  });
});

it('an embedded instance applies a changed file by itself: changed in place, renamed over, and after an incomplete write', async () => {
  await writeFile(file.path, tableWith('/in-place'));
  await becomes([503, 404], '/in-place', '/renamed');
  await file.replace(tableWith('/renamed'));
  await becomes([404, 503], '/in-place', '/renamed');
  await writeFile(file.path, tableWith('/half').slice(0, -7));
  await logLine(instance, /"level":"error".*not valid YAML/);
  expect(await statusesOf('/renamed', '/half')).toEqual([503, 404]);
  await writeFile(file.path, tableWith('/half'));
  await becomes([404, 503], '/renamed', '/half');
});

/** Whether a process has a handler for SIGHUP, as the kernel says. */
function heeds(pid: number): boolean {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '0';
  return (BigInt(`0x${caught}`) & 1n) === 1n;
}

/** A request whose body has begun and not ended. */
async function begunRequest(url: string): Promise<{ finish(): Promise<number | undefined> }> {
  const headers = { 'content-type': 'application/json', 'content-length': 2, expect: '100-continue' };
  const sent = request(`${url}/v2/oauth/token`, { method: 'POST', headers });
  sent.flushHeaders();
  await once(sent, 'continue');
  return {
    async finish() {
      const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
      sent.end('{}');
      const [response] = await answered;
      response.resume();
      return response.statusCode;
    },
  };
}

type Program = [name: string, spawn: (variables: Record<string, string>) => Spawned];
const BY_NPM: Program = ['npm start', spawnInstance];

describeReal('postgres', 'SIGHUP during start and stop', () => {
  it
    .skipIf(process.platform !== 'linux')
    .each<Program>([
      ...(inject('isThorough') ? [BY_NPM] : []),
      [
        'portcullis start',
        (variables: Record<string, string>) => spawnCli(['start'], { PORT: '0', ADMIN_PORT: '0', ...variables }),
      ],
    ])(
    'while %s starts or stops, SIGHUP does not end it, and the file of that moment is applied',
    async (_name, spawn) => {
      await using data = await emptyFolder();
      await using database = await realDatabase();
      await using own = await changingFile(tableWith('/first'));
      await using starting = spawn({
        DATA_DIR: data.path,
        DATABASE_URL: database.url,
        GATEWAY_CONFIG: own.path,
      });
      await vi.waitFor(() => expect(heeds(starting.pid)).toBe(true), { interval: 1 });
      const hangUps = setInterval(() => hangUp(starting), 20);
      let begun: Awaited<ReturnType<typeof begunRequest>>;
      try {
        const { url = '' } = await printed(starting, /"base_url":"(?<url>[^"]+)".*"msg":"started"/);
        await own.replace(tableWith('/last'));
        await vi.waitFor(async () => expect((await fetch(`${url}/last`)).status).toBe(503));
        begun = await begunRequest(url);
        process.kill(starting.pid, 'SIGTERM');
        await printed(starting, /"msg":"stopping"/);
        // It stays in its stop while the request does.
        for (let count = 0; count < 20; count++) await setImmediate(hangUp(starting));
      } finally {
        clearInterval(hangUps);
      }
      expect(await begun.finish()).toBe(400);
      expect(await starting.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    },
  );
});

describeReal(['postgres', 'redis', 'kafka'], 'on shared stores', () => {
  it('a gateway reloads the file on SIGHUP; a worker logs that it has no gateway, and keeps running', async () => {
    await using file = await changingFile(tableWith('/before'));
    const env = { PORTCULLIS_ROLE: 'gateway', GATEWAY_CONFIG: file.path };
    await using gateway = await startOnRealServers({ env });
    await using spool = await emptyFolder();
    await using worker = spawnInstance({ ...gateway.env, PORTCULLIS_ROLE: 'worker', AUDIT_SPOOL_DIR: spool.path });
    await printed(worker, /"msg":"started"/);
    await file.replace(tableWith('/after'));
    await gateway.service.reload();
    const statuses = ['/before', '/after'].map(async (path) => (await gateway.call('GET', path)).status);
    expect(await Promise.all(statuses)).toEqual([404, 503]);
    hangUp(worker);
    await printed(worker, /"level":"info".*nothing to reload: this process is not a gateway/);
    process.kill(worker.pid, 'SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });
});
