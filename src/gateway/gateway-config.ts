import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError } from '../config/config.ts';
import type { TokenClass } from '../config/secrets.ts';
import { SCOPE_TOKEN } from '../oauth/permissions.rules.ts';
import { lookupSchema } from './lookup-config.ts';
import { isRemote, type RemoteService, type ServiceConfig, serviceSchema } from './service-config.ts';
import { type Fault, faultLines, parseYaml } from './yaml-text.ts';

const MEBIBYTE = 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_TOKENS: TokenClass[] = ['user', 'legacy'];

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

const pathPattern = z
  .string()
  .regex(
    /^(\*\*|(\/(\.?[A-Za-z0-9_-][A-Za-z0-9._-]*|\{[a-z_]+\}))+(\/\*|\/\*\*)?)$/,
    'must be a path such as /v1/wallets/{wallet_id}/rules, /swagger/* or **',
  );

const endpointSchema = z.strictObject({
  methods: z
    .array(z.enum(METHODS))
    .min(1)
    .meta({ description: 'The methods that are registered; HEAD is not implied by GET.' }),
  path: pathPattern.meta({ description: '{name} takes one segment, a trailing * one more segment, ** any rest.' }),
  services: z
    .array(z.string())
    .default([])
    .meta({ description: 'The names in X-Target-Server that reach it; none: any known name.' }),
  visibility: z.enum(['protected', 'public', 'optional']).default('protected').meta({
    description: 'protected needs a bearer token; public looks at none; optional passes without one.',
  }),
  tokens: z
    .array(z.enum(['user', 'discover', 'legacy']))
    .min(1)
    .optional()
    .meta({
      description: 'The token classes that are accepted, user and legacy by default; none of a public endpoint.',
    }),
  permissions: z
    .array(z.string().regex(SCOPE_TOKEN, 'must be a scope token of RFC 6749'))
    .default([])
    .meta({ description: 'All of these must be in the scope of the token; none of a public endpoint.' }),
  doNotLog: z.boolean().default(false).meta({ description: 'Keeps the bodies out of the audit record.' }),
  timeout_ms: z.int().min(1).optional().meta({
    description: 'How long a remote service may take to begin its answer; else as its first service says, else 30000.',
  }),
  max_body_bytes: z.int().min(0).optional().meta({
    description:
      'The largest request body; 0: no limit, of remote services alone; else as its first service says, else 1 MiB.',
  }),
  statuses: z.enum(['open', 'closed']).default('open').meta({
    description: 'closed: senders know no 413, 502, 503 or 504; they get 400 and 500 instead.',
  }),
});

/** What `gateway.yaml` may say; printed as `schema/gateway.schema.json`, so that editors complete it. */
const gatewaySchema = z.strictObject({
  services: z.record(z.string(), serviceSchema).meta({ description: 'The services by name, each local or at a URL.' }),
  binding: z.array(z.string()).min(1).optional().meta({
    description: 'The services that a request without X-Target-Server reaches; by default all, local ones first.',
  }),
  webhook_alias: z.strictObject({ deprecated_at: z.iso.datetime(), sunset: z.iso.datetime() }).meta({
    description: 'Since when POST /v2/webhooks is deprecated, and until when it answers.',
  }),
  transactions_lookup: lookupSchema.optional().meta({
    description: 'Who is asked for transactions that notifications name and nobody has registered; read at a start.',
  }),
  endpoints: z.array(endpointSchema).min(1),
});

type Written = z.output<typeof gatewaySchema>;
type WrittenEndpoint = Written['endpoints'][number];

/** An endpoint with its limits: its own, else its first service's, else the defaults. */
export type Endpoint = Readonly<
  WrittenEndpoint & { tokens: TokenClass[]; timeout_ms: number; max_body_bytes: number; upstream?: string }
>;

export interface GatewayConfig extends Readonly<Omit<Written, 'endpoints'>> {
  endpoints: readonly Endpoint[];
  /** The upstream of `/v1/discovers/**`, which no service names. */
  discovers?: { name: string; service: RemoteService };
}

/** `gateway.yaml` as JSON Schema (draft 2020-12), for `schema/gateway.schema.json`; always the same text. */
export function gatewayJsonSchema(): string {
  const schema = z.toJSONSchema(gatewaySchema, { io: 'input', target: 'draft-2020-12' });
  return `${JSON.stringify({ title: 'gateway.yaml of Portcullis', ...schema }, null, 2)}\n`;
}

/**
 * Reads and validates `gateway.yaml`.
 * @throws ConfigError that names file, line and field of every fault.
 */
export function readGatewayConfig(path: string): GatewayConfig {
  let source: string;
  try {
    source = readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(path, error);
  }
  return parseGatewayConfig(path, source);
}

/** The fault of a file that cannot be read. */
export function unreadable(path: string, error: unknown): ConfigError {
  const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  return new ConfigError([`GATEWAY_CONFIG: ${path} cannot be read (${reason}); name a readable file`]);
}

/** Validates the text of a gateway configuration; `path` is what faults are reported under. */
export function parseGatewayConfig(path: string, source: string): GatewayConfig {
  const { value, lineOf } = parseYaml(path, source);
  const parsed = gatewaySchema.safeParse(value);
  const faults = parsed.success ? crossFaults(parsed.data) : parsed.error.issues.flatMap(faultsOf);
  if (!parsed.success || faults.length > 0) throw new ConfigError(faultLines(path, lineOf, faults));
  const { services, endpoints } = parsed.data;
  return { ...parsed.data, endpoints: endpoints.map((endpoint) => limited(endpoint, services)) };
}

/** An endpoint as `gateway.yaml` would have it, with the defaults. */
export function endpointOf(written: z.input<typeof endpointSchema>): Endpoint {
  return limited(endpointSchema.parse(written), {});
}

function limited(endpoint: WrittenEndpoint, services: Record<string, ServiceConfig>): Endpoint {
  const first = services[endpoint.services[0] ?? ''];
  const given = isRemote(first) ? first : undefined;
  return {
    ...endpoint,
    tokens: endpoint.tokens ?? DEFAULT_TOKENS,
    timeout_ms: endpoint.timeout_ms ?? given?.timeout_ms ?? DEFAULT_TIMEOUT_MS,
    max_body_bytes: endpoint.max_body_bytes ?? given?.max_body_bytes ?? MEBIBYTE,
  };
}

/** Of what may be written in several ways, the faults of the way that was meant: the one whose kind is right. */
function faultsOf(issue: z.core.$ZodIssue): Fault[] {
  if (issue.code !== 'invalid_union') return [{ at: issue.path, message: issue.message }];
  const meant = issue.errors.findLast((issues) => issues.every(isOfItsKind)) ?? issue.errors.at(-1) ?? [];
  return meant.flatMap(faultsOf).map(({ at, message }) => ({ at: [...issue.path, ...at], message }));
}

function isOfItsKind({ code, path: [member] }: z.core.$ZodIssue): boolean {
  return member === undefined ? code !== 'invalid_type' && code !== 'invalid_value' : member !== 'at';
}

function crossFaults(config: Written): Fault[] {
  const faults: Fault[] = [];
  const seen = new Set<string>();
  config.binding?.forEach((name, index) => {
    if (!Object.hasOwn(config.services, name)) {
      faults.push({ at: ['binding', index], message: `"${name}" is not under services` });
    }
  });
  config.endpoints.forEach((endpoint, index) => {
    for (const service of endpoint.services) {
      if (!Object.hasOwn(config.services, service)) {
        faults.push({ at: ['endpoints', index, 'services'], message: `"${service}" is not under services` });
      }
    }
    const remote = endpoint.services.filter((name) => isRemote(config.services[name]));
    if (endpoint.max_body_bytes === 0 && (remote.length === 0 || remote.length < endpoint.services.length)) {
      faults.push({ at: ['endpoints', index, 'max_body_bytes'], message: 'no limit (0) is for remote services alone' });
    }
    for (const field of ['tokens', 'permissions'] as const) {
      if (endpoint.visibility !== 'public' || (endpoint[field] ?? []).length === 0) continue;
      faults.push({ at: ['endpoints', index, field], message: 'a public endpoint looks at no token' });
    }
    for (const method of endpoint.methods) {
      const key = `${method} ${endpoint.path.replaceAll(/\{[a-z_]+\}/g, '{}')}`;
      if (seen.has(key)) faults.push({ at: ['endpoints', index, 'path'], message: `${key} is registered twice` });
      seen.add(key);
    }
  });
  return faults;
}
