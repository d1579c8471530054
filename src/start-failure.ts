import type { Config } from './config/config.ts';
import { StartError } from './errors/start-error.ts';

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/** SQLSTATE codes of a database that is there and refuses to be used. */
const DATABASE_REFUSALS: Readonly<Record<string, string>> = {
  '28000': 'the server refuses the user of DATABASE_URL',
  '28P01': 'the server refuses the password of DATABASE_URL',
  '3D000': 'the server has no database of that name: create it, or change DATABASE_URL',
  '42501': 'the user of DATABASE_URL lacks a privilege',
  '53300': 'the server has no connection left',
  '57P03': 'the server is starting up or shutting down: try again',
};

/** Of Node's TLS: what is wrong with a certificate, or no TLS at all. */
const TLS_CODES = /^(?:ERR_(?:TLS|SSL)_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|EPROTO)/;

/** What made a start fail, in one sentence for the operator; undefined for what only a stack can tell. */
export function startFailure(error: unknown, config: Config | undefined): string | undefined {
  if (error instanceof StartError) return error.message;
  const chain = [...causes(error)];
  const codes = chain.flatMap((link) => ('code' in link && typeof link.code === 'string' ? link.code : []));
  if (chain.some(({ name }) => name.startsWith('KafkaJS'))) return kafkaFailure(chain, config);
  const path = chain.map((link) => ('path' in link ? link.path : undefined)).find((found) => typeof found === 'string');
  const host = databaseHost(config);
  if (path !== undefined && isNamedByDatabaseUrl(path, config)) {
    return `${path} cannot be read (${codes[0]}): DATABASE_URL names it`;
  }
  if (path !== undefined) return `${path} cannot be used (${codes[0]}): DATA_DIR and AUDIT_SPOOL_DIR must be writable`;
  const refusal = codes.map((code) => DATABASE_REFUSALS[code]).find((found) => found !== undefined);
  if (refusal !== undefined) return `the database at ${host} cannot be used: ${refusal}`;
  const tls = codes.find((code) => TLS_CODES.test(code)) ?? withoutTls(chain);
  if (tls !== undefined) return `the database at ${host} cannot be used by TLS (${tls}): see sslmode in DATABASE_URL`;
  const code = codes.find((found) => UNREACHABLE.has(found)) ?? timeoutOf(chain);
  if (code === undefined) return undefined;
  return `the database at ${host} does not answer (${code}): start it, or change DATABASE_URL`;
}

function kafkaFailure(chain: readonly Error[], config: Config | undefined): string {
  const reason = chain.findLast(({ message }) => message !== '')?.message ?? 'no answer';
  const brokers = config?.kafka?.brokers.join(', ');
  return `Kafka at ${brokers} cannot be used (${reason}): start it, or change the KAFKA_ variables`;
}

/** pg has no code for a server that takes the connection and stays silent. */
function timeoutOf(chain: readonly Error[]): string | undefined {
  return chain.some(({ message }) => /^timeout exceeded|^connection terminated/i.test(message)) ? 'timeout' : undefined;
}

/** pg has no code for a server that refuses TLS either. */
function withoutTls(chain: readonly Error[]): string | undefined {
  return chain.some(({ message }) => message.includes('does not support SSL'))
    ? 'the server does not support it'
    : undefined;
}

function databaseHost(config: Config | undefined): string {
  if (config?.databaseUrl === undefined) return 'DATA_DIR';
  const { host, searchParams } = new URL(config.databaseUrl);
  return searchParams.get('host') ?? host;
}

/** Certificates and their key are files. */
function isNamedByDatabaseUrl(path: string, config: Config | undefined): boolean {
  return config?.databaseUrl !== undefined && [...new URL(config.databaseUrl).searchParams.values()].includes(path);
}

/** An error, what caused it, and what it gathers. */
function* causes(error: unknown): Generator<Error> {
  if (!(error instanceof Error)) return;
  yield error;
  if (error instanceof AggregateError) for (const part of error.errors) yield* causes(part);
  yield* causes(error.cause);
}
