import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { SCOPE_TOKEN } from '../../access/identity/permissions.rules.ts';
import { bareName } from '../../audit/masked-names.ts';
import { ConfigError, secretOf } from '../../platform/config/config.ts';
import type { TokenClass } from '../../platform/config/secrets.ts';
import { type Fault, parseYaml } from './yaml-text.ts';

const LOCAL = 'local';

/** Matches an http or https URL without user, query and fragment. */
const PLAIN_URL = /^https?:\/\/[^\s?#@]+$/;

function urlInput(error: string): z.ZodString {
  return z
    .string()
    .regex(PLAIN_URL, { error, abort: true })
    .refine((text) => URL.canParse(text), 'must be a URL');
}

function withoutSlash(text: string): string {
  return text.replace(/\/+$/, '');
}

const url = urlInput('must be local, or an http or https URL without user and query');
const remotePlace = url
  .transform(withoutSlash)
  .meta({ description: 'URL of the service; its path is prefixed to the path of every request.' });

const localSchema = z.strictObject({
  at: z.literal(LOCAL).meta({ description: 'The service runs in this process.' }),
  guards: z.enum(['here', 'front']).default('here').meta({
    description: 'front: a gateway in front of this one has already run the client guards. TRUST_PROXY must list it.',
  }),
});

const remoteSchema = z.strictObject({
  at: remotePlace,
  guards: z.enum(['here', 'upstream']).default('here').meta({
    description: 'Where client guards run: in this gateway, or in the Portcullis at the URL.',
  }),
  timeout_ms: z.int().min(1).optional().meta({
    description: 'Milliseconds until the first byte of a response, unless an endpoint sets its own timeout.',
  }),
  idle_timeout_ms: z.int().min(1).default(120_000).meta({
    description:
      'Milliseconds without progress after which a response is aborted, whether the service or the client is slow.',
  }),
  max_body_bytes: z.int().min(0).optional().meta({
    description: 'Maximum size of a request body, unless an endpoint sets its own; 0 means no limit.',
  }),
  connections: z.int().min(1).max(10_000).default(128).meta({
    description: 'Maximum number of concurrent requests and connections, including event streams.',
  }),
  queue: z.int().min(0).max(100_000).default(256).meta({
    description: 'Maximum number of queued requests; further requests get 503.',
  }),
  websockets: z.int().min(0).max(100_000).default(1_000).meta({ description: 'Maximum number of open WebSockets.' }),
  breaker: z
    .strictObject({
      failures: z
        .int()
        .min(1)
        .default(5)
        .meta({ description: 'Failures without a response in between that open the circuit breaker.' }),
      open_ms: z
        .int()
        .min(1)
        .default(10_000)
        .meta({ description: 'Milliseconds an open circuit breaker waits before it lets requests through on trial.' }),
    })
    .default({ failures: 5, open_ms: 10_000 })
    .meta({ description: 'When to open the circuit breaker; while it is open, requests get 503.' }),
});

/** The schema of a service in `gateway.yaml`: `local`, a URL, or either with its settings. */
const serviceSchema = z
  .union([z.literal(LOCAL), url, localSchema, remoteSchema])
  .transform((service): ServiceConfig => {
    if (service === LOCAL) return localSchema.parse({ at: LOCAL });
    return typeof service === 'string' ? remoteSchema.parse({ at: service }) : service;
  });
export type RemoteService = Readonly<z.output<typeof remoteSchema>>;
type ServiceConfig = Readonly<z.output<typeof localSchema>> | RemoteService;

/** Checks whether a service runs in another process. */
export function isRemote(service: ServiceConfig | undefined): service is RemoteService {
  return service !== undefined && service.at !== LOCAL;
}

/**
 * The schema of `transactions_lookup` in `gateway.yaml`: the service that says which tenant a transaction belongs to.
 */
const lookupSchema = z.strictObject({
  url: urlInput('must be an http or https URL without user and query')
    .transform(withoutSlash)
    .meta({ description: 'GET {url}/{id} returns the owner of a transaction; the id is percent-encoded.' }),
  timeout_ms: z.int().min(1).max(60_000).default(5_000).meta({
    description: 'Milliseconds until the last byte of the response.',
  }),
  bearer_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
    .optional()
    .meta({ description: 'The environment variable that contains the bearer token.' }),
});

export type LookupConfig = Readonly<z.output<typeof lookupSchema>>;

const TOKEN = /^[\x21-\x7e]+$/;

/**
 * Returns the bearer token that `transactions_lookup` names: a variable, or a file by the variable `NAME_FILE`.
 * Undefined if it names none, or if that cannot be used, whose reason is added to `faults`.
 */
export function lookupBearer(
  lookup: LookupConfig | undefined,
  variables: NodeJS.ProcessEnv,
  faults: string[],
): string | undefined {
  const name = lookup?.bearer_env;
  if (name === undefined) return undefined;
  const before = faults.length;
  const value = secretOf(name, variables, faults);
  if (faults.length > before || (value !== undefined && TOKEN.test(value))) return value;
  const problem =
    value === undefined
      ? 'is missing: transactions_lookup in gateway.yaml requires it'
      : 'must be a token of visible ASCII characters';
  faults.push(`${name} ${problem}`);
  return undefined;
}

const MEBIBYTE = 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_TOKENS: TokenClass[] = ['user', 'legacy'];

/** The methods that an endpoint can have. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

const pathPattern = z
  .string()
  .regex(
    /^(\*\*|(\/(\.?[A-Za-z0-9_-][A-Za-z0-9._-]*|\{[a-z_]+\}))+(\/\*|\/\*\*)?)$/,
    'must be a path such as /v1/wallets/{wallet_id}/rules, /swagger/* or **',
  );

const maskedName = z.string().refine((name) => bareName(name) !== '', 'must have a letter or a digit');

/** The names that no endpoint can take back: the specification says that no record holds them. */
const DOCUMENTED_NAMES = ['password', 'token', 'secret', 'authorization'];

const endpointSchema = z.strictObject({
  methods: z
    .array(z.enum(METHODS))
    .min(1)
    .meta({ description: 'The methods that are registered; HEAD is not implied by GET.' }),
  path: pathPattern.meta({
    description: '{name} matches one segment, a trailing * one more segment, and ** any rest.',
  }),
  services: z
    .array(z.string())
    .default([])
    .meta({ description: 'The names in X-Target-Server that select this endpoint; if empty, any known name does.' }),
  visibility: z.enum(['protected', 'public', 'optional']).default('protected').meta({
    description:
      'protected requires a bearer token; public ignores tokens; optional accepts requests with or without one.',
  }),
  tokens: z
    .array(z.enum(['user', 'discover', 'legacy']))
    .min(1)
    .optional()
    .meta({
      description: 'The accepted token classes; user and legacy by default. Not allowed for a public endpoint.',
    }),
  permissions: z
    .array(z.string().regex(SCOPE_TOKEN, 'must be a scope token of RFC 6749'))
    .default([])
    .meta({ description: 'The token must have all of these in its scope. Not allowed for a public endpoint.' }),
  doNotLog: z.boolean().default(false).meta({ description: 'Keeps the bodies out of the audit record.' }),
  mask: z.array(maskedName).optional().meta({
    description: 'Names of further members, parameters and headers to mask in audit records, in any spelling.',
  }),
  unmask: z
    .array(
      maskedName.refine(
        (name) => !DOCUMENTED_NAMES.includes(bareName(name)),
        `must be none of ${DOCUMENTED_NAMES.join(', ')}, which are always masked`,
      ),
    )
    .optional()
    .meta({
      description: 'Names that are no secrets here although they are masked elsewhere; only for remote services.',
    }),
  timeout_ms: z.int().min(1).optional().meta({
    description:
      "Milliseconds until the first byte of a remote service's response. Default: the timeout of its first service, or 30000.",
  }),
  max_body_bytes: z.int().min(0).optional().meta({
    description:
      'Maximum size of a request body; 0 means no limit (only for remote services). Default: the limit of its first service, or 1 MiB.',
  }),
  statuses: z.enum(['open', 'closed']).default('open').meta({
    description: 'closed: the endpoint returns 400 instead of 413, and 500 instead of 502, 503 and 504.',
  }),
});

/** The schema of `gateway.yaml`; published as `schema/gateway.schema.json` for editors. */
const gatewaySchema = z.strictObject({
  services: z.record(z.string(), serviceSchema).meta({ description: 'The services by name, each local or at a URL.' }),
  binding: z.array(z.string()).min(1).optional().meta({
    description: 'The services for requests without X-Target-Server; by default all, local ones first.',
  }),
  webhook_alias: z
    .strictObject(
      { deprecated_at: z.iso.datetime(), sunset: z.iso.datetime() },
      { error: ({ input }) => (input === undefined ? 'is required: set deprecated_at and sunset' : undefined) },
    )
    .meta({
      description: 'When POST /v2/webhooks was deprecated, and when it stops working.',
    }),
  transactions_lookup: lookupSchema.optional().meta({
    description: 'The service that owns transactions, for lookups of unregistered ones. Read only at startup.',
  }),
  endpoints: z.array(endpointSchema).min(1),
});

type Written = z.output<typeof gatewaySchema>;
type WrittenEndpoint = Written['endpoints'][number];

/** An endpoint with its limits: its own, or else its first service's, or else the defaults. */
export type Endpoint = Readonly<
  WrittenEndpoint & {
    tokens: TokenClass[];
    timeout_ms: number;
    max_body_bytes: number;
    upstream?: string;
  }
>;

export interface GatewayConfig extends Readonly<Omit<Written, 'endpoints'>> {
  endpoints: readonly Endpoint[];
  /** The upstream of `/v1/discovers/**`, which callers cannot select by name. */
  discovers?: { name: string; service: RemoteService };
}

/**
 * Returns the JSON Schema (draft 2020-12) of `gateway.yaml`, for `schema/gateway.schema.json`; always the same text.
 */
export function gatewayJsonSchema(): string {
  const schema = z.toJSONSchema(gatewaySchema, { io: 'input', target: 'draft-2020-12' });
  return `${JSON.stringify({ title: 'gateway.yaml of Portcullis', ...schema }, null, 2)}\n`;
}

/**
 * Reads and validates `gateway.yaml`.
 * @throws ConfigError when it cannot be read, or with file, line and field of every issue.
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

/** Returns the error for a `gateway.yaml` that cannot be read. */
export function unreadable(path: string, error: unknown): ConfigError {
  const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  return new ConfigError([`GATEWAY_CONFIG: ${path} cannot be read (${reason}); set it to a readable file`]);
}

/**
 * Validates the text of `gateway.yaml`; `path` is the file name in error messages.
 * @throws ConfigError with file, line and field of every issue.
 */
export function parseGatewayConfig(path: string, source: string): GatewayConfig {
  const { value, lineOf } = parseYaml(path, source);
  const result = gatewaySchema.safeParse(value, { error: (issue) => WORDS[issue.code]?.({ ...issue }) });
  const faults = [...(result.error?.issues ?? []).flatMap(faultsOf), ...crossFaults(value)];
  if (!result.success || faults.length > 0) {
    throw new ConfigError(
      faults.map(({ at, message, line = at }) => `${path}:${lineOf(line)}: ${at.join('.') || 'the file'}: ${message}`),
    );
  }
  const { services, endpoints } = result.data;
  return { ...result.data, endpoints: endpoints.map((endpoint) => limited(endpoint, services)) };
}

/** Returns an endpoint, written as in `gateway.yaml`, with the defaults filled in. */
export function endpointOf(yamlEndpoint: z.input<typeof endpointSchema>): Endpoint {
  return limited(endpointSchema.parse(yamlEndpoint), {});
}

function limited(endpoint: WrittenEndpoint, services: Record<string, ServiceConfig>): Endpoint {
  const first = services[endpoint.services[0] ?? ''];
  const remoteDefaults = isRemote(first) ? first : undefined;
  return {
    ...endpoint,
    tokens: endpoint.tokens ?? DEFAULT_TOKENS,
    timeout_ms: endpoint.timeout_ms ?? remoteDefaults?.timeout_ms ?? DEFAULT_TIMEOUT_MS,
    max_body_bytes: endpoint.max_body_bytes ?? remoteDefaults?.max_body_bytes ?? MEBIBYTE,
  };
}

/** Returns a message for the operator by the code of the issue, for schemas without their own message. */
const WORDS: Readonly<Record<string, (issue: Readonly<Record<string, unknown>>) => string>> = {
  invalid_type: ({ input, expected }) =>
    input === undefined ? 'is required' : `must be ${KINDS[String(expected)] ?? `a ${expected}`}`,
  invalid_value: ({ values }) => `must be one of ${[values].flat().join(', ')}`,
  invalid_format: () => 'must be a time in UTC such as 2026-11-21T10:30:00Z',
  too_small: ({ origin, minimum }) => (origin === 'array' ? 'must not be empty' : `must be at least ${minimum}`),
  too_big: ({ maximum }) => `must be at most ${maximum}`,
};

const KINDS: Readonly<Record<string, string>> = {
  array: 'a list',
  int: 'a whole number',
  object: 'a mapping',
  record: 'a mapping',
};

/**
 * Returns the issues of a value that does not match the schema. If several forms are allowed, returns only those for
 * the form that was probably meant: the one whose type fits.
 */
function faultsOf(issue: z.core.$ZodIssue): Fault[] {
  const { code, path, message } = issue;
  if (code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ at: path, message: `has the unknown member ${key}`, line: [...path, key] }));
  if (code !== 'invalid_union') return [{ at: path, message }];
  const intended = issue.errors.findLast((issues) =>
    issues.every(({ code: kind, path: [member] }) =>
      member === undefined ? kind !== 'invalid_type' && kind !== 'invalid_value' : member !== 'at',
    ),
  );
  return (intended ?? issue.errors.at(-1) ?? []).flatMap(faultsOf).map((fault) => ({
    ...fault,
    at: [...path, ...fault.at],
    line: [...path, ...(fault.line ?? fault.at)],
  }));
}

/** Returns the issues between members; it reads the value as it was written, so that other issues hide none of them. */
function crossFaults(value: unknown): Fault[] {
  const { services = {}, binding, endpoints }: Record<string, unknown> = Object(value);
  const faults: Fault[] = [];
  const seen = new Set<string>();
  const refuseUnknown = (name: string, at: PropertyKey[]) => {
    if (!Object.hasOwn(Object(services), name)) faults.push({ at, message: `"${name}" is not under services` });
  };
  textsIn(binding).forEach((name, index) => void refuseUnknown(name, ['binding', index]));
  const isHere = (name: string) => serviceSchema.safeParse(Reflect.get(Object(services), name)).data?.at === LOCAL;
  const endpointEntries: Record<string, unknown>[] = Array.isArray(endpoints) ? endpoints.map(Object) : [];
  endpointEntries.forEach((endpoint, index) => {
    const names = textsIn(endpoint.services);
    for (const name of names) refuseUnknown(name, ['endpoints', index, 'services']);
    if (endpoint.max_body_bytes === 0 && (names.length === 0 || names.some(isHere))) {
      faults.push({
        at: ['endpoints', index, 'max_body_bytes'],
        message: '0 (no limit) is allowed only for remote services',
      });
    }
    if (textsIn(endpoint.unmask).length > 0 && (names.length === 0 || names.some(isHere))) {
      faults.push({ at: ['endpoints', index, 'unmask'], message: 'is allowed only for remote services' });
    }
    for (const field of ['tokens', 'permissions'] as const) {
      if (endpoint.visibility === 'public' && textsIn(endpoint[field]).length > 0)
        faults.push({ at: ['endpoints', index, field], message: 'must be absent: a public endpoint ignores tokens' });
    }
    for (const method of textsIn(endpoint.methods)) {
      const key = `${method} ${String(endpoint.path).replaceAll(/\{[a-z_]+\}/g, '{}')}`;
      if (seen.has(key)) faults.push({ at: ['endpoints', index, 'path'], message: `${key} is registered twice` });
      seen.add(key);
    }
  });
  return faults;
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

const PATH = '/v1/discovers/**';
/** The name of the upstream; no service in `gateway.yaml` can have it, so that no caller can select it. */
const UPSTREAM = '/v1/discovers';

/**
 * Adds the endpoint `/v1/discovers/**`, for discover tokens, which is forwarded to the service at `url`; returns the
 * table unchanged without a URL.
 * @throws ConfigError when `gateway.yaml` has registered the path as well.
 */
export function withDiscovers(config: GatewayConfig, url: string | undefined): GatewayConfig {
  if (url === undefined) return config;
  if (config.endpoints.some(({ path }) => path === PATH)) {
    throw new ConfigError([`DISCOVERS_UPSTREAM_URL: gateway.yaml has ${PATH} already; remove one of the two`]);
  }
  const endpoint: Endpoint = {
    ...endpointOf({
      methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
      path: PATH,
      services: Object.hasOwn(config.services, 'integration') ? ['integration'] : [],
      tokens: ['discover'],
    }),
    upstream: UPSTREAM,
  };
  return {
    ...config,
    endpoints: [...config.endpoints, endpoint],
    discovers: { name: UPSTREAM, service: remoteSchema.parse({ at: url }) },
  };
}
