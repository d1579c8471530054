import { randomUUID } from 'node:crypto';
import { uuidV7 } from '../lib/uuid-v7.ts';
import type { Db } from '../platform/database/database.ts';
import { AuditChain, unchained } from './audit-record.ts';
import { AuditStore } from './audit-writer.ts';
import { maskBody } from './mask.ts';
import { type AuditSeals, ChainKeeper } from './seals.ts';

/** The method of the records of commands. */
const METHOD = 'CLI';
/** Means that the command was accepted, as in HTTP. */
const ACCEPTED = 202;
const WHOLE = { maxBytes: 64 * 1024, truncated: false };

/**
 * Records that an operator has a command executed, in a chain of its own that is closed at once. Resolves when the record
 * is in the database: no spool keeps it, and the command must not be executed before.
 */
export async function recordCommand(
  { db, seals }: { db: Db; seals: AuditSeals },
  {
    command,
    by,
    input,
    nodeId = null,
    users = null,
  }: {
    /** The name of the command, such as `dead-letters discard`. */
    command: string;
    /** The operating system's user. */
    by: string;
    /** What the command was given; it is masked. */
    input: object;
    /** The tenant that it concerns; null for none or several. */
    nodeId?: string | null;
    /** The users whose personal data may be in `input`. */
    users?: readonly string[] | null;
  },
): Promise<void> {
  const lines: Buffer[] = [];
  const chain = new AuditChain(randomUUID(), {
    append: (...added) => void lines.push(...added.map((line) => Buffer.from(line))),
  });
  const atMs = Date.now();
  const request = Buffer.from(JSON.stringify(input).replaceAll('\\u0000', ' ').toWellFormed());
  chain.append(
    unchained({
      ...{ at: new Date(atMs).toISOString(), id: uuidV7(atMs), node_id: nodeId, correlation_id: randomUUID() },
      ...{ method: METHOD, path: command, query: null, operation: command, status_code: ACCEPTED, elapsed: 0 },
      ...{ headers: {}, remote_address: '', real_ip: '', is_api: false, aborted: false, subject: by, client_id: null },
      ...{
        noted_users: users,
        request_body: maskBody('application/json', request, WHOLE),
        request_bytes: request.length,
      },
      ...{ response_body: null, response_bytes: 0 },
    }),
  );
  const keeper = new ChainKeeper({ db, seals, own: chain });
  await keeper.write(lines, () => new AuditStore(db).insertAll(lines));
  await keeper.close(chain.id);
}
