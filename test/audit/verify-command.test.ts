import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { Recorder } from '../support/events/recorder.ts';
import { asOwner } from '../support/harness/database-roles.ts';
import { type Portcullis, startOnRealServers, startPortcullis, startReplica } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, startedFolder } from '../support/start/folders.ts';
import { runCli, type Variables } from '../support/start/process.ts';

const verify = (env: Variables, ...flags: string[]) => portcullis(['audit', 'verify', ...flags], env);

it('D8-20: audit verify succeeds beside a running embedded instance, and on a stopped one', async () => {
  await using folder = await startedFolder();
  const env = { DATA_DIR: folder.path };
  {
    await using p = await startPortcullis({ dataDir: folder.path });
    for (let count = 0; count < 3; count += 1) await p.call('GET', `/v1/accounts?n=${count}`);
    const running = await verify(env, '--json');
    expect([running.code, JSON.parse(running.out).findings]).toEqual([0, []]);
  }
  const { code, out } = await verify(env, '--json');
  expect(code).toBe(0);
  const report = JSON.parse(out);
  expect(report).toMatchObject({ unsigned: 0, findingCount: 0, findings: [], signatures_checked: true });
  expect(report.records).toBeGreaterThanOrEqual(3);
  expect(await verify(env, '--from', 'yesterday')).toMatchObject({ code: 2, out: '' });
  const missing = join(folder.path, 'no-such-file');
  const { code: failed, err } = await verify(env, '--checkpoints', missing);
  expect({ failed, err }).toEqual({ failed: 1, err: expect.stringContaining(`${missing} cannot be read`) });
  expect(err).not.toMatch(/\n\s+at /);
});

describeReal(['postgres', 'redis', 'kafka'], 'audit verify on servers', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const AUDIT_SIGNING_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

  async function addUser(p: Portcullis): Promise<{ id: string; email: string }> {
    const [client] = await p.service.context.database.db
      .unscoped('test')
      .run((k) => k.selectFrom('clients').select('node_id').where('id', '=', p.demo.client.client_id));
    const user = { id: randomUUID(), name: 'Ann', email: `${randomUUID()}@example.com`, address: randomUUID() };
    await p.service.context.database.db.forNode(client?.node_id ?? '').run((k) => k.insertInto('users').values(user));
    return user;
  }

  it('succeeds with seals exported to a file and a topic, after an erasure by command and one by GraphQL', async () => {
    await using folder = await emptyFolder();
    await using p = await startOnRealServers({ env: { AUDIT_SIGNING_KEY, AUDIT_CHECKPOINTS: 'kafka:audit.seals' } });
    const kept = join(folder.path, 'seals.ndjson');
    const env = { ...p.env, AUDIT_CHECKPOINTS: `file:${kept}`, AUDIT_SPOOL_DIR: join(folder.path, 'spool') };
    const users = [await addUser(p), await addUser(p)];
    const token = await p.loginToken();
    {
      await using replica = await startReplica(p, { env });
      for (const { email } of users) {
        for (const one of [replica, p]) await one.call('GET', `/v2/users/${email}`, { token });
      }
    }
    expect(await portcullis(['users', 'erase', users[0]?.id ?? ''], env)).toMatchObject({ code: 0 });
    const erased = await p.call('POST', '/graphql', {
      token,
      json: { query: `mutation { eraseUser(id: "${users[1]?.id}") { __typename } }` },
    });
    expect(erased.json).toMatchObject({ data: { eraseUser: { __typename: 'User' } } });
    const { db } = p.service.context.database;
    const seals = await db
      .unscoped('test')
      .raw(
        (sql) => sql<{ kind: string; signed: boolean }>`select kind, signature is not null as signed from audit_seals`,
      );
    expect(seals.filter(({ kind }) => kind === 'erasure').length).toBeGreaterThanOrEqual(2);
    expect(seals.every(({ signed }) => signed)).toBe(true);

    expect(readFileSync(kept, 'utf8').trim().split('\n').length).toBeGreaterThanOrEqual(2);
    const topic = new Recorder();
    await topic.follow(p.service.context.bus, 'audit.seals');
    await topic.count(2);
    // A file has the seals of one process, the topic those of another: together they have all.
    const dump = join(folder.path, 'topic.ndjson');
    writeFileSync(dump, `${topic.texts.join('\n')}\n${readFileSync(kept, 'utf8')}`);
    const whole = expect.stringMatching(/^OK: verified .*\. Nothing was altered or is missing\./m);
    const spawned = await runCli(['audit', 'verify', '--checkpoints', dump], env);
    expect(spawned).toMatchObject({ code: 0, stdout: whole });
    await asOwner(p, (door) =>
      door.raw((sql) => sql`delete from audit_seals where position = (select max(position) from audit_seals)`),
    );
    writeFileSync(dump, `${JSON.stringify(JSON.parse(topic.texts.at(-1) ?? ''))}\n{"torn`);
    const found = await verify(env, '--checkpoints', dump);
    expect(found).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^CUT OFF: seal \d+ is in line 1 of the checkpoint file but not in the database/m),
    });
    expect(found.out).toMatch(/^CHANGED: line 2 of the checkpoint file is not a valid seal/m);
  });
});
