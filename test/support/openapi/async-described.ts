import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import type { IncomingMessage } from '../../../src/events/bus/event-bus.ts';

interface Ref {
  $ref: string;
}

interface AsyncApi {
  asyncapi: string;
  channels: Record<string, { address: string; messages: Record<string, Ref> }>;
  operations: Record<string, { action: 'send' | 'receive'; channel: Ref }>;
  components: {
    messages: Record<
      string,
      { contentType?: string; headers: Ref; payload: Ref; bindings: { kafka: { key: object } } }
    >;
    schemas: Record<string, { properties?: Record<string, { type?: unknown }>; required?: string[] }>;
  };
}

export const committed = readFileSync(join(import.meta.dirname, '../../../schema/asyncapi.yaml'), 'utf8');
export const document: AsyncApi = parse(committed);

const ajv = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true });
addFormats.default(ajv);
for (const format of ['int32', 'int64', 'uint64']) ajv.addFormat(format, true);

/** What is wrong with a value by a schema of the document; nothing where it is valid. */
export function faultsOf(value: unknown, name: string): string[] {
  return faultsBy(value, document.components.schemas[name] ?? false);
}

/** What is wrong with a message by the best fitting one of its topic's channel; nothing where one fits. */
export function messageFaults({ topic, key, value, headers }: IncomingMessage): string[] {
  const names = Object.keys(document.channels[topic]?.messages ?? {});
  const faults = names.map((name) => {
    const described = document.components.messages[name];
    if (!described) return [`${name} is not described`];
    const isText = described.contentType !== undefined;
    const payload = value === null ? null : isText ? value.toString('latin1') : jsonOf(value);
    return [
      ...faultsOf(payload, nameOf(described.payload)),
      ...faultsOf(headers, nameOf(described.headers)),
      ...faultsBy(key, described.bindings.kafka.key),
    ];
  });
  return faults.toSorted((a, b) => a.length - b.length)[0] ?? [`${topic} has no message`];
}

export function nameOf({ $ref }: Ref): string {
  return $ref.split('/').at(-1) ?? '';
}

/** What a reference points at. */
export function target({ $ref }: Ref): unknown {
  let value: unknown = document;
  for (const part of $ref.slice('#/'.length).split('/')) value = (value as Record<string, unknown> | undefined)?.[part];
  return value;
}

function faultsBy(value: unknown, schema: object | false): string[] {
  const validate = ajv.compile(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

function jsonOf(value: Buffer): unknown {
  try {
    return JSON.parse(value.toString());
  } catch {
    return undefined;
  }
}
