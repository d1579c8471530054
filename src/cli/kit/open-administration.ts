import { buildAdministration } from '../../access/access.ts';
import { Passwords } from '../../access/sessions/passwords.ts';
import { MemoryCache } from '../../platform/cache/memory-cache.ts';
import { readConfig } from '../../platform/config/config.ts';
import { readSecrets } from '../../platform/config/secrets.ts';
import type { Db } from '../../platform/database/database.ts';
import { RefusalError } from '../../platform/errors.ts';
import { CommandError, type CommandInput } from './command.ts';
import { openMigrated } from './open-database.ts';

/**
 * Opens what administers clients and supervisors; running servers hear of its changes from the database. `operation` is
 * the one of GraphQL that does the same, for whoever has an embedded instance running.
 * @throws CommandError where the schema is older than the program.
 */
export async function openAdministration({ env, stack }: CommandInput, operation: string) {
  const { config, env: variables } = readConfig(env);
  const database = await openMigrated(config, { advice: adviceOf(operation) }, stack);
  const { db, isEmbedded } = database;
  const administration = buildAdministration({
    database,
    cache: stack.adopt(new MemoryCache(), (opened) => opened.stop()),
    isCacheShared: false,
    pepper: readSecrets(config, variables).pepper,
    passwords: { hash: (password: string) => new Passwords().hash(password) },
    maxSessions: config.maxSessions,
    nowMs: Date.now,
    isOwnClock: isEmbedded,
    onError: () => undefined,
  });
  const { clients, clientAdministration, supervisorAdministration } = administration;
  return {
    clients: clientAdministration,
    supervisors: supervisorAdministration,
    /** Returns the node of a client. @throws CommandError where there is no such client. */
    nodeOfClient: async (id: string) => found((await clients.find(id))?.nodeId, `there is no client ${id}`),
    /** Returns the node of a supervisor. @throws CommandError where there is no such supervisor. */
    nodeOfSupervisor: async (id: string) => found(await nodeOfSupervisor(db, id), `there is no supervisor ${id}`),
  };
}

/** Opens the database alone, for what needs no secrets: none are made for it. `operation` is as above. */
export async function openReading({ env, stack }: CommandInput, operation: string): Promise<Db> {
  return (await openMigrated(readConfig(env).config, { advice: adviceOf(operation) }, stack)).db;
}

function adviceOf(operation: string): string {
  return `use its GraphQL ${operation}, which does the same`;
}

/** Waits for the result; a refusal is put in words for the user. `absent` says what it is that was not found. */
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

/** Returns what was found. @throws CommandError with the message where nothing was. */
export function found<Value>(value: Value | undefined, absent: string): Value {
  if (value === undefined) throw new CommandError(absent);
  return value;
}
