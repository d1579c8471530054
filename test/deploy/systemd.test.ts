import { expect, it } from 'vitest';
import { STOP_DEADLINE_MS } from '../../src/app/run.ts';
import { envSchema } from '../../src/platform/config/config.ts';
import { faultsOf, newSecrets, read } from '../support/deploy/files.ts';

/** The variables of the unit's nth instance. */
function variablesOf(instance: string): Record<string, string> {
  const lines = read('deploy/systemd/portcullis@.service').matchAll(/^Environment=(.*)$/gm);
  const pairs = lines.flatMap(([, line = '']) => line.replaceAll('%i', instance).split(' '));
  return Object.fromEntries(pairs.map((pair) => pair.split('=', 2) as [string, string]));
}

it('D1-17: instances of the unit share a port, and each has an admin port and a folder of its own', async () => {
  const [first, second] = [variablesOf('1'), variablesOf('2')];
  const names = new Set<string>(envSchema.keyof().options);
  expect(Object.keys(first).filter((name) => !names.has(name))).toEqual([]);
  expect(first).toMatchObject({ REUSE_PORT: 'on', PORT: second.PORT });
  expect([first.ADMIN_PORT, first.DATA_DIR]).not.toEqual([second.ADMIN_PORT, second.DATA_DIR]);
  const secrets = newSecrets();
  const stores = {
    PUBLIC_URL: 'https://gateway.example',
    DATABASE_URL: 'postgres://portcullis_service:x@db/portcullis',
    REDIS_URL: 'redis://cache:6379',
    KAFKA_BROKERS: 'kafka:9092',
    WEBHOOK_USERNAME: 'chain-processor',
  };
  const shared = Object.fromEntries(Object.entries(secrets).filter(([name]) => names.has(name)));
  expect(await faultsOf({ ...shared, ...stores, ...second })).toEqual([]);
});

it('the unit stops a process later than the process stops itself, and leaves one with a wrong configuration alone', () => {
  const unit = read('deploy/systemd/portcullis@.service');
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
  expect(seconds * 1_000).toBeGreaterThan(STOP_DEADLINE_MS);
  expect(unit).toMatch(/^RestartPreventExitStatus=78$/m);
});
