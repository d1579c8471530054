import { MemoryCache } from '../cache/memory-cache.ts';
import { ClientAdministration } from '../clients/client-administration.service.ts';
import { Clients } from '../clients/clients.service.ts';
import { readConfig } from '../config/config.ts';
import { readSecrets } from '../config/secrets.ts';
import type { Db } from '../db.ts';
import { RefusalError } from '../errors/refusal.ts';
import { AccessChanges } from '../oauth/access-changes.ts';
import { DatabaseClock } from '../oauth/database-clock.ts';
import { LoginLocks } from '../oauth/login-locks.ts';
import { Passwords } from '../oauth/passwords.ts';
import { Sessions } from '../oauth/sessions.ts';
import { SupervisorAdministration } from '../supervisors/supervisor-administration.service.ts';
import { CommandError } from './command.ts';
import { openMigrated } from './database.ts';

/** What a command administers with. Running servers hear of its changes from the database. */
export interface Administration {
  db: Db;
  clients: ClientAdministration;
  supervisors: SupervisorAdministration;
  /** The node of a client. @throws CommandError where there is no such client. */
  nodeOfClient(clientId: string): Promise<string>;
  /** The node of a supervisor. @throws CommandError where there is no such supervisor. */
  nodeOfSupervisor(id: string): Promise<string>;
}

/**
 * Opens the database until `stack` is disposed of. `operation` is the one of the GraphQL interface that does the same,
 * for whoever has an embedded instance running.
 * @throws CommandError where the schema is older than the program.
 */
export async function openAdministration(
  env: NodeJS.ProcessEnv,
  operation: string,
  stack: AsyncDisposableStack,
): Promise<Administration> {
  const { config, env: variables } = readConfig(env);
  const advice = adviceOf(operation);
  const { db, isEmbedded } = await openMigrated(config, { advice }, stack);
  const nowMs = Date.now;
  const { pepper } = readSecrets(config, variables);
  // Neither polls: what this process changes, it tells by the table of changes.
  const changes = new AccessChanges({ db, nowMs, onError: () => undefined });
  const cache = stack.adopt(new MemoryCache(), (opened) => opened.stop());
  const sessions = new Sessions({ db, cache, isShared: false, changes, maxSessions: config.maxSessions, nowMs });
  const passwords = { hash: (password: string) => new Passwords().hash(password) };
  const locks = new LoginLocks({ db, nowMs });
  const clock = new DatabaseClock({ db, isOwn: isEmbedded, nowMs });
  const clients = new Clients(db, pepper);
  return {
    db,
    clients: new ClientAdministration({ db, changes, clock, sessions, pepper: pepper.current, nowMs }),
    supervisors: new SupervisorAdministration({ db, changes, sessions, passwords, locks, nowMs }),
    nodeOfClient: async (clientId) =>
      (await clients.find(clientId))?.nodeId ?? refuse(`there is no client ${clientId}`),
    nodeOfSupervisor: async (id) => (await nodeOfSupervisor(db, id)) ?? refuse(`there is no supervisor ${id}`),
  };
}

/** The database alone, as `openAdministration` opens it, for what needs no secrets: none are made for it. */
export async function openReading(env: NodeJS.ProcessEnv, operation: string, stack: AsyncDisposableStack): Promise<Db> {
  return (await openMigrated(readConfig(env).config, { advice: adviceOf(operation) }, stack)).db;
}

function adviceOf(operation: string): string {
  return `use its GraphQL ${operation}, which does the same`;
}

/** The result, or the refusal in words for the user. `absent` says what it is that was not found. */
export async function orCommandError<Result>(absent: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    const { refusal } = error;
    throw new CommandError(refusal.kind === 'not_found' ? absent : refusal.message);
  }
}

async function nodeOfSupervisor(db: Db, id: string): Promise<string | undefined> {
  const [row] = await db
    .unscoped('the operator names a supervisor without the node')
    .run((k) => k.selectFrom('supervisors').select('node_id').where('id', '=', id));
  return row?.node_id;
}

function refuse(message: string): never {
  throw new CommandError(message);
}
