import { expect, it } from 'vitest';
import { startFailure } from '../../src/app/run.ts';

const missing = (path: string) => Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT', path });

it('D1-04: a folder that cannot be used is told of, and a missing file of the program has its stack trace', () => {
  expect(startFailure(missing('/data/spool'), undefined)).toBe(
    '/data/spool cannot be used (ENOENT): DATA_DIR and AUDIT_SPOOL_DIR must be writable',
  );
  for (const path of ['/app/src/app/service.ts', '/app/node_modules/kysely/dist/index.js'])
    expect(startFailure(missing(path), undefined)).toBeUndefined();
});
