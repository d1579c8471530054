import { lookupBearer, readGatewayConfig, withDiscovers } from '../../gateway/endpoints/gateway-config.ts';
import { silentLog } from '../../lib/log.ts';
import { ConfigError, gatewayConfigPath, readConfig } from '../../platform/config/config.ts';
import { type ResolvedVariable, resolvedVariables } from '../../platform/config/resolved-variables.ts';
import { type CommandBody, EXIT_FAILED } from '../kit/command.ts';

/** `portcullis config check`: prints the configuration in force, or everything that is wrong with it. */
export const configCheck: CommandBody = {
  description: [
    'Reads the environment, gateway.yaml and the persisted operations as a start would, validates the operations against',
    'the schema, and shows each variable with its value and source; secrets are masked. If the configuration is invalid,',
    'it lists every error and exits with status 1. It names what endpoints take back from the names that are masked. It writes',
    'nothing, and connects to no service unless --connect is set: then it makes the checks of a start, and exits with 1 where one fails.',
  ].join(' '),
  flags: {
    connect: {
      help: 'check privileges, schema, topics, clock, Redis, AUDIT_CHECKPOINTS and space for the spool, as a start does',
      isSwitch: true,
    },
  },
  examples: [
    'portcullis config check',
    'portcullis config check --connect',
    'NODE_ENV=production portcullis config check --json',
  ],
  async run({ flags, env, json, stack, print, printError, answer }) {
    const result = await check(env);
    if ('faults' in result) {
      if (json) print(`${JSON.stringify(result)}\n`);
      else printError(result.faults.map((fault) => `${fault}\n`).join(''));
      return EXIT_FAILED;
    }
    const checks = flags.connect === true ? await connect(env, stack) : undefined;
    const findings = checks?.map(({ level, message }) => `${LEVELS[level]}: ${message}`) ?? [];
    if (!json) printError([...result.warnings, ...findings].map((line) => `${line}\n`).join(''));
    const passed = checks?.length === 0 ? ['All checks of a start have passed.'] : [];
    const text = table(result.variables) + [...result.unmasked, ...passed].map((line) => `${line}\n`).join('');
    const code = answer({ ...result, checks }, text);
    return checks?.some(({ level }) => level !== 'warn') ? EXIT_FAILED : code;
  },
};

const LEVELS = { fatal: 'a start would be refused', error: 'error', warn: 'warning' };

/** Makes the checks of a start. The stores of an embedded run need none: its start creates them. */
async function connect(env: NodeJS.ProcessEnv, stack: AsyncDisposableStack) {
  const { config } = readConfig(env);
  const [{ openBus, openCache, openStore }, { checkStart }, { startFailure }] = await Promise.all([
    import('../../app/stores.ts'),
    import('../../app/start-checks.ts'),
    import('../../app/run.ts'),
  ]);
  const open = async () => {
    const database = await openStore(config, stack);
    const cache = await openCache(config, silentLog, stack);
    return { database, cache, bus: await openBus(config, database.db, silentLog, stack) };
  };
  const stores = config.databaseUrl === undefined ? undefined : await open();
  return checkStart({ config, nowMs: Date.now, stores }, (error) => startFailure(error, config) ?? String(error));
}

/**
 * Reads the environment, `gateway.yaml` and the persisted documents, all of them even if one is invalid, so that every
 * issue is reported at once.
 */
async function check(env: NodeJS.ProcessEnv) {
  const faults: string[] = [];
  const read = collecting(faults, () => readConfig(env));
  const table = collecting(faults, () => readGatewayConfig(gatewayConfigPath(env.GATEWAY_CONFIG)));
  if (read && table) collecting(faults, () => withDiscovers(table, read.config.discoversUpstreamUrl));
  if (read?.config.role !== 'gateway') lookupBearer(table?.transactions_lookup, env, faults);
  const file = read?.config.graphqlPersistedFile;
  if (file !== undefined) faults.push(...(await persistedFaults(file)));
  if (!read || faults.length > 0) return { faults };
  // The names that endpoints do not mask although the list has them.
  const unmasked = (table?.endpoints ?? [])
    .filter(({ unmask = [] }) => unmask.length > 0)
    .map(({ methods, path, unmask = [] }) => `not masked at ${methods.join(', ')} ${path}: ${unmask.join(', ')}`);
  return { variables: resolvedVariables(read), warnings: read.warnings, unmasked };
}

/** Returns what is wrong with the file of persisted documents or with a document in it; an empty list if nothing is. */
async function persistedFaults(path: string): Promise<readonly string[]> {
  const [{ readPersistedDocuments }, { documentFaults }] = await Promise.all([
    import('../../api/graphql/execution/persisted-file.ts'),
    import('../../app/graphql-schema.ts'),
  ]);
  try {
    return documentFaults(await readPersistedDocuments(path)).map((fault) => `GRAPHQL_PERSISTED_FILE ${path} ${fault}`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults;
  }
}

function collecting<Result>(faults: string[], read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    faults.push(...error.faults);
    return undefined;
  }
}

function table(variables: readonly ResolvedVariable[]): string {
  const width = Math.max(...variables.map(({ name }) => name.length));
  const mark = { environment: '*', file: '+', default: ' ' };
  const lines = variables.map(({ name, value, source }) => `${mark[source]} ${name.padEnd(width)}  ${value}\n`);
  return `${lines.join('')}\n* from the environment, + from the file named by a _FILE variable\n`;
}
