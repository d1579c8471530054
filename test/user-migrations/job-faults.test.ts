import { expect, it } from 'vitest';
import { isPassing } from '../../src/features/user-migrations/migration-jobs.service.ts';
import { serviceUnavailable } from '../../src/platform/errors.ts';

const error = (message: string, code?: string) => Object.assign(new Error(message), code === undefined ? {} : { code });

it.each([
  ['a refused connection', error('connect ECONNREFUSED 127.0.0.1:5432', 'ECONNREFUSED')],
  ['a connection that was reset', error('write EPIPE', 'EPIPE')],
  ['a connection that ended', error('Connection terminated unexpectedly')],
  ['an exhausted pool', error('timeout exceeded when trying to connect')],
  ['a server that shuts down', error('terminating connection due to administrator command', '57P01')],
  ['a server that starts', error('the database system is starting up', '57P03')],
  ['a replica that took over as read-only', error('cannot execute INSERT in a read-only transaction', '25006')],
  ['a full disk', error('could not extend file', '53100')],
  ['a deadlock', error('deadlock detected', '40P01')],
  ['a connection error wrapped by the ORM', new Error('insert failed', { cause: error('gone', 'ECONNRESET') })],
  ['an overloaded pool', serviceUnavailable()],
])('D7-09: %s is temporary: the job waits', (_name, fault) => {
  expect(isPassing(fault)).toBe(true);
});

it.each([
  ['a bug', new TypeError('undefined is not a function')],
  ['a value that no column accepts', error('invalid byte sequence', '22021')],
  ['a table that is missing', error('relation does not exist', '42P01')],
  ['a constraint', error('violates check constraint', '23514')],
  ['a value that is not an Error', 'terminated'],
])('D7-09: %s is permanent: it counts as an attempt', (_name, fault) => {
  expect(isPassing(fault)).toBe(false);
});
