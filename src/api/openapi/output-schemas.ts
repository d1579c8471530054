import { z } from 'zod';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import type { serverMetadata } from '../../access/token-endpoint/metadata.ts';
import type { TokenResponse } from '../../access/tokens/token-issuer.ts';
import type { AccountRow } from '../../domain/accounts/accounts.service.ts';
import type { AssetRow } from '../../domain/assets/assets.service.ts';
import type { userView } from '../../domain/users/users.service.ts';
import type { HealthReport } from '../../platform/health.ts';

const uuid = () => z.string().meta({ format: 'uuid' });
const instant = () => z.string().meta({ format: 'date-time' });
const uri = () => z.string().meta({ format: 'uri' });
/** The schema of a whole number of the smallest unit of a currency, as decimal text. */
const wei = () => z.string().regex(/^[0-9]+$/);
const state = () => z.enum(['ok', 'down']);

/**
 * The schemas of response bodies by name; bodies have no other members. Their types are checked against the types of
 * the services.
 */
export const outputSchemas = {
  TokenResponse: z.strictObject({
    access_token: z.string(),
    refresh_token: z.string(),
    expires_in: z.int().min(1),
    token_type: z.literal('Bearer'),
    scope: z.string(),
    created_at: z.int(),
  }) satisfies z.ZodType<TokenResponse>,
  // One object: a generated client cannot have a boolean with a single value.
  Introspection: z
    .strictObject({
      active: z.boolean(),
      scope: z.string().optional(),
      username: z.string().optional(),
      token_type: z.literal('Bearer').optional(),
      client_id: z.string().optional(),
      exp: z.number().optional(),
      iat: z.number().optional(),
      sub: z.string().optional(),
      aud: z.string().optional(),
      iss: z.string().optional(),
      jti: z.string().optional(),
      token_use: z.enum(['login', 'api', 'forgot_password', 'refresh']).optional(),
    })
    .meta({ description: 'For an inactive token only `active` is returned; otherwise at least `token_use`.' }),
  ServerMetadata: z.strictObject({
    issuer: uri(),
    token_endpoint: uri(),
    token_endpoint_auth_methods_supported: z.array(z.string()),
    grant_types_supported: z.array(z.string()),
    response_types_supported: z.array(z.never()),
    scopes_supported: z.array(z.enum(PERMISSIONS)),
    revocation_endpoint: uri(),
    revocation_endpoint_auth_methods_supported: z.array(z.string()),
    introspection_endpoint: uri(),
    introspection_endpoint_auth_methods_supported: z.array(z.string()),
  }) satisfies z.ZodType<Omit<ReturnType<typeof serverMetadata>, 'scopes_supported'>>,
  ResourceMetadata: z.strictObject({
    resource: uri(),
    authorization_servers: z.array(uri()),
    scopes_supported: z.array(z.enum(PERMISSIONS)),
    bearer_methods_supported: z.array(z.string()),
    resource_name: z.string(),
  }),
  AccountPage: z.strictObject({
    data: z.array(
      z.strictObject({
        id: uuid(),
        name: z.string(),
        node_id: uuid(),
        type: z.string(),
        status: z.int32(),
        created_at: instant(),
        updated_at: instant(),
        deleted_at: instant().nullable(),
      }) satisfies z.ZodType<AccountRow>,
    ),
    page: z.int().min(1),
    per_page: z.int().min(1),
    total: z.int().min(0),
  }),
  Asset: z.strictObject({
    id: uuid(),
    name: z.string(),
    symbol: z.string(),
    type: z.string(),
    node_id: uuid(),
    network_id: uuid(),
    contract_address: z.string().nullable(),
    status: z.string(),
    created_at: instant(),
    updated_at: instant(),
  }) satisfies z.ZodType<AssetRow>,
  MigratedUser: z.strictObject({
    id: uuid(),
    external_id: z.string().nullable(),
    name: z.string(),
    surname: z.string(),
    email: z.string(),
    address: z.string(),
    // Not a constant: generators take one that is empty for none.
    identity_number: z.string().max(0),
    kyc: z
      .strictObject({
        is_verified: z.boolean(),
        token_sent: z.boolean(),
        token_sent_at: instant(),
        token_tx_hash: z.string().nullable(),
      })
      .nullable(),
  }) satisfies z.ZodType<Omit<ReturnType<typeof userView>, 'kyc'>>,
  BulkResult: z.strictObject({
    total: z.int().min(1),
    success: z.int().min(0),
    skipped: z.int().min(0),
    failed: z.int().min(0),
    results: z.array(
      z.strictObject({
        email: z.string().optional(),
        external_id: z.string().optional(),
        user_id: uuid().optional(),
        status: z.enum(['created', 'skipped', 'failed']),
        reason: z.string().optional(),
      }),
    ),
  }),
  Health: z.strictObject({
    status: z.enum(['ok', 'degraded', 'down']),
    version: z.string(),
    uptime: z.int().min(0),
    checks: z.strictObject({ database: state(), cache: state(), bus: state(), audit: z.enum(['ok', 'full']) }),
  }) satisfies z.ZodType<HealthReport>,
  GasFees: z.strictObject({
    data: z.array(
      z.union([
        z.strictObject({
          network_id: uuid(),
          chain_id: z.union([z.int(), z.string()]),
          base_fee: wei().nullable(),
          priority_fee: z.strictObject({ slow: wei(), standard: wei(), fast: wei() }).nullable(),
          gas_price: wei(),
          block_number: z.union([z.int(), z.string()]),
          updated_at: instant(),
        }),
        z.strictObject({ network_id: uuid(), error: z.string() }),
      ]),
    ),
  }),
};
