/**
 * The greatest lengths of the texts that callers store, in characters (Unicode code points), by table and column. The
 * database has a check for each.
 */
export const MAX_LENGTHS = {
  clients: { name: 255, cert_fingerprint: 383 },
  login_failures: { username: 510 },
  migration_jobs: { correlation_id: 1_024 },
  migrations: { created_by: 1_024, file_name: 255 },
  revoked_tokens: { token_id: 255 },
  seen_attention: { note: 1_024, seen_by: 1_024 },
  supervisors: { username: 255 },
  transaction_ids: { id: 128 },
  users: { email: 512, external_id: 512, name: 1_024, surname: 1_024, address: 256, erased_by: 1_024 },
  wallet_rule_versions: { name: 1_024, subject: 1_024, client_id: 1_024, correlation_id: 1_024, reason: 1_024 },
  wallet_rules: { name: 1_024 },
} as const;

/** The greatest sizes of lists and JSON that callers store, as text in bytes, by table and column; checked likewise. */
export const MAX_SIZES = {
  clients: { scopes: 262_144, allowed_ips: 65_536 },
  wallet_rule_versions: { auto_transfer_rule: 524_288 },
  wallet_rules: { auto_transfer_rule: 524_288 },
} as const;
