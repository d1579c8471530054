import { expect, it } from 'vitest';
import { startFailure } from '../../src/app/run.ts';
import type { Config } from '../../src/platform/config/config.ts';

const missing = (path: string) => Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT', path });

it('D1-04: a folder that cannot be used is told of, and a missing file of the program has its stack trace', () => {
  expect(startFailure(missing('/data/spool'), undefined)).toBe(
    '/data/spool cannot be used (ENOENT): DATA_DIR and AUDIT_SPOOL_DIR must be writable',
  );
  for (const path of ['/app/src/app/service.ts', '/app/node_modules/kysely/dist/index.js'])
    expect(startFailure(missing(path), undefined)).toBeUndefined();
});

it.each([
  ['ECONNREFUSED', 'Kafka at broker:9092 cannot be used (no): start it, or change the KAFKA_ variables'],
  [
    'UNKNOWN_TOPIC_OR_PARTITION',
    'Kafka at broker:9092 cannot be used (no): a topic is missing; create it by portcullis migrate',
  ],
])('D1-04: of a broker that fails with %s the message says what to do', (type, message) => {
  const error = Object.assign(new Error('no'), { name: 'KafkaJSProtocolError', type });
  const config = { kafka: { brokers: ['broker:9092'] } } as Config;
  expect(startFailure(error, config)).toBe(message);
});
