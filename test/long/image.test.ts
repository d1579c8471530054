import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { only } from '../support/deploy/dockerfile.ts';
import { newSecrets } from '../support/deploy/files.ts';
import { contained, type ImageFolder, imageFolder, mayContain } from '../support/long/image-folder.ts';
import { deleteTopics, freshDatabase, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';
import type { Variables } from '../support/start/process.ts';

interface Container {
  printed: () => string;
  /** The process that the image's command became; another id inside. */
  pid(): Promise<number>;
  ended: Promise<number | null>;
}

/** Runs a command as a container of the image would. As a user without the right to that it runs as itself. */
function start(folder: ImageFolder, command: readonly string[], env: Variables): Container {
  const isContained = mayContain();
  const [program = '', ...args] = isContained ? contained(folder, command) : command;
  const path = `${folder.bin}:${process.env.PATH}`;
  const child = spawn(program, args, { cwd: folder.app, env: { ...env, PATH: path, TMPDIR: folder.tmp } });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part) => (text += part));
  return {
    printed: () => text,
    ended: once(child, 'close').then(([code]) => code),
    pid: async () => {
      const own = child.pid ?? 0;
      if (!isContained) return own;
      return Number((await readFile(`/proc/${own}/task/${own}/children`, 'utf8')).trim());
    },
  };
}

describeReal(['postgres', 'redis', 'kafka'], 'what the Dockerfile makes', () => {
  it('D1-11, D1-13: the image migrates, starts, is healthy, and shuts down cleanly on SIGTERM', async () => {
    await using root = await emptyFolder();
    const folder = await imageFolder(root.path);
    await using database = await freshDatabase();
    await using redis = await freshRedis();
    const prefix = topicPrefix();
    const [port, adminPort] = await freePorts(2);
    const { POSTGRES_PASSWORD, POSTGRES_SERVICE_PASSWORD, REDIS_PASSWORD, ...secrets } = newSecrets();
    const env = {
      ...secrets,
      ...Object.fromEntries(only(folder.image, 'ENV').words.map((word) => word.split('=', 2))),
      DATA_DIR: folder.data,
      HOST: '127.0.0.1',
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      PUBLIC_URL: `http://127.0.0.1:${port}`,
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      KAFKA_BROKERS: serviceAddress('kafka'),
      TOPIC_PREFIX: prefix,
      WEBHOOK_USERNAME: 'chain-processor',
    };
    const { words: command } = only(folder.image, 'CMD');
    const { words: healthcheck } = only(folder.image, 'HEALTHCHECK');

    const early = start(folder, command, env);
    expect([await early.ended, early.printed()]).toEqual([78, expect.stringContaining('run portcullis migrate')]);
    const migrate = start(folder, ['portcullis', 'migrate'], env);
    expect([await migrate.ended, migrate.printed()]).toEqual([0, expect.stringContaining('New migrations: ')]);
    expect(await start(folder, healthcheck, env).ended).toBe(1);

    const instance = start(folder, command, env);
    try {
      await expect.poll(instance.printed, { timeout: 60_000 }).toMatch(/"msg":"started"/);
      expect(await start(folder, healthcheck, env).ended).toBe(0);
      const health = await fetch(`http://127.0.0.1:${port}/health`);
      expect(await health.json()).toMatchObject({ status: 'ok', checks: { database: 'ok', cache: 'ok', bus: 'ok' } });
      if (mayContain()) {
        const status = await readFile(`/proc/${await instance.pid()}/status`, 'utf8');
        expect(status).toMatch(/^Uid:\s+1000\s+1000/m);
        expect(status).toMatch(/^NSpid:\s+\d+\s+1$/m);
      }
    } finally {
      process.kill(await instance.pid(), 'SIGTERM');
      expect(await instance.ended).toBe(0);
      await deleteTopics(serviceAddress('kafka'), prefix);
    }
    expect(instance.printed()).toMatch(/"msg":"stopped"/);
    expect((await readdir(join(folder.data, 'audit'))).filter((name) => name.endsWith('.seg'))).toEqual([]);
  });

  it.runIf(mayContain())('nothing but /data and /tmp can be written', async () => {
    await using root = await emptyFolder();
    const folder = await imageFolder(root.path);
    const write = (path: string) => ['node', '-e', `require('fs').writeFileSync(${JSON.stringify(path)}, '')`];
    for (const path of [join(folder.app, 'src/new.ts'), '/etc/new', '/var/new']) {
      const tried = start(folder, write(path), {});
      expect([await tried.ended, tried.printed()]).toEqual([1, expect.stringContaining('EROFS')]);
    }
    for (const path of [folder.data, folder.tmp])
      expect(await start(folder, write(join(path, 'new')), {}).ended).toBe(0);
  });
});
