import type { ClientRow } from '../clients/client-pages.service.ts';
import { DEFAULT_DURATION_SECONDS } from '../clients/clients.service.ts';
import { isoFromPg, isoFromPgOrNull } from '../lib/pg-time.ts';

/** A client in the REST names; an absent limit is null. It has no secret. */
export function clientView(row: ClientRow) {
  return {
    client_id: row.id,
    node_id: row.node_id,
    name: row.name,
    grant_types: row.grant_types,
    scopes: row.scopes,
    token_expiry: {
      enabled: row.token_expiry_enabled,
      duration: row.token_expiry_duration ?? DEFAULT_DURATION_SECONDS,
    },
    allowed_ips: row.allowed_ips,
    require_certificate: row.require_certificate,
    cert_fingerprint: row.cert_fingerprint,
    rate_limit: {
      requests_per_second: row.requests_per_second,
      requests_per_minute: row.requests_per_minute,
      requests_per_hour: row.requests_per_hour,
    },
    monthly_limit: row.monthly_limit,
    refresh_reuse_detection: row.refresh_reuse_detection,
    status: row.status,
    last_used_at: isoFromPgOrNull(row.last_used_at),
    created_at: isoFromPg(row.created_at),
    updated_at: isoFromPg(row.updated_at),
  };
}
