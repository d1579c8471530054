import { readFileSync } from 'node:fs';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { ConfigError } from '../config/config.ts';

const MEBIBYTE = 1024 * 1024;

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
    .default(['user', 'legacy'])
    .meta({
      description: 'The token classes that are accepted.',
    }),
  permissions: z.array(z.string()).default([]).meta({ description: 'All of these must be in the scope of the token.' }),
  doNotLog: z.boolean().default(false).meta({ description: 'Keeps the bodies out of the audit record.' }),
  timeout_ms: z.int().min(1).default(30_000).meta({ description: 'How long an answer may take.' }),
  max_body_bytes: z.int().min(0).default(MEBIBYTE).meta({ description: 'The largest request body, in bytes.' }),
  statuses: z.enum(['open', 'closed']).default('open').meta({
    description: 'closed: senders know no 413 or 503; they get 400 and 500 instead.',
  }),
});

/** What `gateway.yaml` may say; printed as `schema/gateway.schema.json`, so that editors complete it. */
export const gatewaySchema = z.strictObject({
  services: z.record(z.string(), z.literal('local')).meta({ description: 'The services by name.' }),
  webhook_alias: z.strictObject({ deprecated_at: z.iso.datetime(), sunset: z.iso.datetime() }).meta({
    description: 'Since when POST /v2/webhooks is deprecated, and until when it answers.',
  }),
  endpoints: z.array(endpointSchema).min(1),
});

export type GatewayConfig = z.output<typeof gatewaySchema>;
export type Endpoint = Readonly<z.output<typeof endpointSchema>>;

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
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new ConfigError([`GATEWAY_CONFIG: ${path} cannot be read (${reason}); name a readable file`]);
  }
  return parseGatewayConfig(path, source);
}

/** Validates the text of a gateway configuration; `path` is what faults are reported under. */
export function parseGatewayConfig(path: string, source: string): GatewayConfig {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    throw new ConfigError(
      document.errors.map((error) => `${path}:${lines.linePos(error.pos[0]).line}: not valid YAML: ${error.message}`),
    );
  }
  const parsed = gatewaySchema.safeParse(document.toJS());
  if (!parsed.success) {
    throw new ConfigError(
      parsed.error.issues.map(
        (issue) =>
          `${path}:${lineOf(document, lines, issue.path)}: ${issue.path.join('.') || 'the file'}: ${issue.message}`,
      ),
    );
  }
  const faults = crossFaults(parsed.data).map(
    (fault) => `${path}:${lineOf(document, lines, fault.at)}: ${fault.at.join('.')}: ${fault.message}`,
  );
  if (faults.length > 0) throw new ConfigError(faults);
  return parsed.data;
}

interface CrossFault {
  at: PropertyKey[];
  message: string;
}

function crossFaults(config: GatewayConfig): CrossFault[] {
  const faults: CrossFault[] = [];
  const seen = new Set<string>();
  config.endpoints.forEach((endpoint, index) => {
    for (const service of endpoint.services) {
      if (!Object.hasOwn(config.services, service)) {
        faults.push({ at: ['endpoints', index, 'services'], message: `"${service}" is not under services` });
      }
    }
    for (const method of endpoint.methods) {
      const key = `${method} ${endpoint.path.replaceAll(/\{[a-z_]+\}/g, '{}')}`;
      if (seen.has(key)) faults.push({ at: ['endpoints', index, 'path'], message: `${key} is registered twice` });
      seen.add(key);
    }
  });
  return faults;
}

function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}
