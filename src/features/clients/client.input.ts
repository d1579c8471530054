import { isIP } from 'node:net';
import { z } from 'zod';
import { SCOPE_TOKEN } from '../../access/identity/permissions.rules.ts';
import { boundedTextInput, objectInput } from '../../lib/input.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';

const ENTRY = /^([0-9a-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/i;

/**
 * Checks whether a text is an IPv4 or IPv6 address without a zone, or a network of either in CIDR notation (RFC 4632,
 * RFC 4291).
 */
function isAddressOrNetwork(text: string): boolean {
  const [, address = '', prefix] = ENTRY.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(prefix ?? 0) <= (family === 6 ? 128 : 32);
}

/** The greatest number of scopes, and of addresses, of a client. */
export const MAX_ENTRIES = 1_000;
/** The greatest length of a scope, in characters. */
export const MAX_SCOPE_LENGTH = 255;
const WHOLE_NUMBER = 'must be a whole number, at most 2147483647';
const MAX_OVERLAP_SECONDS = 30 * 86_400;
/** Matches a digest of SHA-1, SHA-256, SHA-384 or SHA-512, or nothing. */
const FINGERPRINT = /^(?:[0-9a-f]{2}(?::?[0-9a-f]{2}){19}(?:(?::?[0-9a-f]{2}){12}(?:(?::?[0-9a-f]{2}){16}){0,2})?)?$/i;

/** The grant types that a client can have, each with what it is for (docs/contract.md, 5.2). */
export const GRANTS = {
  password: 'A supervisor logs in through the client.',
  client_credentials: 'The client gets a token for itself.',
  refresh_token: 'Exchanges a refresh token for a new pair.',
} as const;

export const GRANT_TYPES = Object.keys(GRANTS) as (keyof typeof GRANTS)[];

const limitInput = z.int32(WHOLE_NUMBER).min(1, 'must be at least 1; omit it for no limit').optional();

/**
 * The schema of a client to create or to replace in full: an absent member takes its default (docs/contract.md,
 * 2.2-01).
 */
export const clientInput = objectInput({
  name: boundedTextInput(MAX_LENGTHS.clients.name).refine((name) => name.trim() !== '', 'must not be empty'),
  grant_types: z.array(z.enum(GRANT_TYPES)).min(1, 'must have at least one grant').transform(withoutDuplicates),
  scopes: z
    .array(
      boundedTextInput(MAX_SCOPE_LENGTH).regex(
        SCOPE_TOKEN,
        'must be a scope token of RFC 6749: visible ASCII without quotes and backslashes',
      ),
    )
    .max(MAX_ENTRIES, `must have at most ${MAX_ENTRIES} scopes`)
    .transform(withoutDuplicates),
  token_expiry: objectInput({
    enabled: z.boolean('must be a boolean'),
    duration: z.int32(WHOLE_NUMBER).min(1, 'must be at least 1 second'),
  }).default({ enabled: true, duration: 3_600 }),
  allowed_ips: z
    .array(
      z.string('must be a string').refine(isAddressOrNetwork, 'must be an IP address or a network in CIDR notation'),
    )
    .max(MAX_ENTRIES, `must have at most ${MAX_ENTRIES} addresses`)
    .default([]),
  require_certificate: z.boolean('must be a boolean').default(false),
  cert_fingerprint: z
    .string('must be a string')
    .regex(
      FINGERPRINT,
      'must be hexadecimal, with or without colons between the bytes, and nothing else: 40 digits (SHA-1), 64 (SHA-256), 96 (SHA-384) or 128 (SHA-512)',
    )
    .optional(),
  rate_limit: objectInput({
    requests_per_second: limitInput,
    requests_per_minute: limitInput,
    requests_per_hour: limitInput,
  }).default({}),
  monthly_limit: limitInput,
  refresh_reuse_detection: z.boolean('must be a boolean').default(false),
  is_console: z.boolean('must be a boolean').default(false),
});

const { out } = clientInput;
const limitPatch = z.int32(WHOLE_NUMBER).min(0, 'must not be negative; 0 removes the limit').optional();

/**
 * The schema of changes to a client: an absent member stays. An empty `allowed_ips` or `cert_fingerprint` removes that
 * restriction, and 0 a limit.
 */
export const clientPatchInput = objectInput({
  name: out.shape.name.optional(),
  grant_types: out.shape.grant_types.optional(),
  scopes: out.shape.scopes.optional(),
  token_expiry: objectInput({
    enabled: z.boolean('must be a boolean').optional(),
    duration: z.int32(WHOLE_NUMBER).min(1, 'must be at least 1 second').optional(),
  }).optional(),
  allowed_ips: out.shape.allowed_ips.unwrap().optional(),
  require_certificate: out.shape.require_certificate.unwrap().optional(),
  cert_fingerprint: out.shape.cert_fingerprint,
  rate_limit: objectInput({
    requests_per_second: limitPatch,
    requests_per_minute: limitPatch,
    requests_per_hour: limitPatch,
  }).optional(),
  monthly_limit: limitPatch,
  refresh_reuse_detection: out.shape.refresh_reuse_detection.unwrap().optional(),
});

/** Changes to a client as parsed by `clientPatchInput`. */
export type ClientPatch = z.output<typeof clientPatchInput>;

/** The schema of a secret's rotation: the number of seconds for which the current secret stays valid; 0 by default. */
export const rotationInput = objectInput({
  overlap_seconds: z
    .int32(WHOLE_NUMBER)
    .min(0, 'must not be negative')
    .max(MAX_OVERLAP_SECONDS, `must be at most ${MAX_OVERLAP_SECONDS} (30 days)`)
    .default(0),
});

/** A client as parsed by `clientInput`. */
export type ClientInput = z.output<typeof clientInput>;

function withoutDuplicates<Item>(items: Item[]): Item[] {
  return [...new Set(items)];
}
